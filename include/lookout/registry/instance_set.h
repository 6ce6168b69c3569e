// InstanceSet: the instances of a service at one moment.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/registry/counted.h"
#include "lookout/registry/service_instance.h"

namespace lookout::registry {

/// Says whether the data follows the cluster, and since when.
struct Freshness {
  /// False: the API server cannot be reached, or has not answered yet. The last known set is still
  /// served.
  bool live = false;
  /// Live data: the time since which it has been live. Stale data: the time of the server's last
  /// answer.
  std::chrono::system_clock::time_point since = {};
  /// Why the data is not live, if known: the API server's error, or why it could not be reached.
  /// Also set if only a part is not followed while the rest is live. Empty: no error.
  std::string error = {};
};

/// Provides the current freshness. Called from any thread.
class FreshnessSource {
 public:
  virtual ~FreshnessSource() = default;
  virtual Freshness freshness() const = 0;
};

class InstanceSet;
/// A pointer to a set that counts references in the set itself, so that readers can take a
/// published set without a lock and without an allocation.
using InstanceSetPtr = boost::intrusive_ptr<const InstanceSet>;

/// The instances of one service at one moment, ordered by key. Immutable; safe to use from any
/// number of threads, for any length of time.
class InstanceSet final : public detail::Counted {
 public:
  class iterator {
   public:
    using value_type = ServiceInstance;
    using difference_type = std::ptrdiff_t;
    using reference = const ServiceInstance&;
    using iterator_concept = std::forward_iterator_tag;

    iterator() = default;
    explicit iterator(std::vector<InstancePtr>::const_iterator at) : at_(at) {}
    reference operator*() const { return **at_; }
    const ServiceInstance* operator->() const { return at_->get(); }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) {
      auto copy = *this;
      ++*this;
      return copy;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    std::vector<InstancePtr>::const_iterator at_;
  };

  /// For backends. Sorts the instances. If `freshness` is null, the set is always live.
  static InstanceSetPtr make(std::string service, std::uint64_t version,
                             std::vector<InstancePtr> instances,
                             std::shared_ptr<const FreshnessSource> freshness = nullptr);
  const std::string& service() const { return service_; }
  /// Among the sets of one service from one registry, a greater version is newer.
  std::uint64_t version() const { return version_; }

  std::size_t size() const { return instances_.size(); }
  bool empty() const { return instances_.empty(); }
  iterator begin() const { return iterator(instances_.begin()); }
  iterator end() const { return iterator(instances_.end()); }
  const ServiceInstance& operator[](std::size_t index) const { return *instances_[index]; }
  /// The same instances as handles, for code that keeps single instances. An unchanged instance is
  /// the same object in the next set.
  const std::vector<InstancePtr>& instances() const { return instances_; }

  /// The freshness now, not at the time when the set was made.
  Freshness freshness() const;

  /// True if the instances are identical, regardless of the versions.
  bool same_instances(const InstanceSet& other) const;

 private:
  InstanceSet(std::string service, std::uint64_t version, std::vector<InstancePtr> instances,
              std::shared_ptr<const FreshnessSource> freshness);
  const std::string service_;
  const std::uint64_t version_;
  const std::vector<InstancePtr> instances_;
  const std::shared_ptr<const FreshnessSource> freshness_;
};

/// The difference between two sets. Keys identify instances.
struct InstanceDiff {
  struct Change {
    InstancePtr before;
    InstancePtr after;
  };
  std::vector<InstancePtr> added = {};
  std::vector<InstancePtr> removed = {};
  std::vector<Change> changed = {};

  bool empty() const { return added.empty() && removed.empty() && changed.empty(); }
};

/// A null `before` counts as an empty set.
InstanceDiff diff(const InstanceSetPtr& before, const InstanceSet& after);

}  // namespace lookout::registry
