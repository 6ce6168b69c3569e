// The resources of all services at one moment.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/registry/xds/resources.h"

namespace lookout::cmd::registry_cmd::xds {

/// A service and what is made of its instances.
struct Service {
  registry::InstanceSetPtr set;
  std::string scheme;
  ResourcePtr cluster;
  ResourcePtr endpoints;

  const std::string& name() const { return set->service(); }
};

/// Immutable; shared by all streams.
class Snapshot {
 public:
  /// In the order of their names.
  const std::vector<Service>& services() const { return services_; }
  /// Null if there is no such service. Listeners and routes are made when they are asked for.
  ResourcePtr find(Type type, std::string_view name) const;
  /// Another number than before if, and only if, a resource of the type has come, changed or gone.
  std::uint64_t revision(Type type) const { return revisions_[index_of(type)]; }

 private:
  friend class SnapshotBuilder;
  std::vector<Service> services_;
  std::array<std::uint64_t, kTypes.size()> revisions_ = {1, 1, 1, 1};
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// Makes one snapshot after the other; what has not changed is shared. For one thread.
class SnapshotBuilder {
 public:
  /// `schemes` must not be empty.
  explicit SnapshotBuilder(std::vector<std::string> schemes) : schemes_(std::move(schemes)) {}

  /// Null before the first update.
  const SnapshotPtr& latest() const { return latest_; }
  /// `sets` are those of all services, in the order of their names. True if there is a newer
  /// snapshot.
  bool update(const std::vector<registry::InstanceSetPtr>& sets);

 private:
  Service make(const registry::InstanceSetPtr& set, const Service* before) const;

  const std::vector<std::string> schemes_;
  SnapshotPtr latest_;
};

}  // namespace lookout::cmd::registry_cmd::xds
