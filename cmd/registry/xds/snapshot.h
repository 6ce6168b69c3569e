// The resources of all services at one point in time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/registry/xds/resources.h"

namespace lookout::cmd::registry_cmd::xds {

/// A service and its resources.
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
  /// Sorted by name.
  const std::vector<Service>& services() const { return services_; }
  /// Null if there is no such service. Listeners and routes are created on demand.
  ResourcePtr find(Type type, std::string_view name) const;
  /// Changes if and only if a resource of the type was added, changed or removed.
  std::uint64_t revision(Type type) const { return revisions_[index_of(type)]; }

 private:
  friend class SnapshotBuilder;
  std::vector<Service> services_;
  std::array<std::uint64_t, kTypes.size()> revisions_ = {1, 1, 1, 1};
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// Builds successive snapshots, which share unchanged resources. Not thread-safe.
class SnapshotBuilder {
 public:
  /// `schemes` must not be empty.
  explicit SnapshotBuilder(std::vector<std::string> schemes) : schemes_(std::move(schemes)) {}

  /// Null before the first update.
  const SnapshotPtr& latest() const { return latest_; }
  /// `sets` are those of all services, sorted by name. Returns whether there is a new snapshot.
  bool update(const std::vector<registry::InstanceSetPtr>& sets);

 private:
  Service make(const registry::InstanceSetPtr& set, const Service* before) const;

  const std::vector<std::string> schemes_;
  SnapshotPtr latest_;
};

}  // namespace lookout::cmd::registry_cmd::xds
