// The instances of a service at one moment.
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

/// Whether what is known follows the cluster, and since when it does or does not.
struct Freshness {
  /// False: the API server cannot be reached, or has not been heard yet. The last known set
  /// is still served.
  bool live = false;
  /// Live data: the time since which it has been live. Stale data: the time of the last answer of
  /// the server.
  std::chrono::system_clock::time_point since = {};
  /// Why it is not live, as far as that is known: what the API server said, or why it could not be
  /// reached. Also of a part that is not followed while the rest is live. Empty: no error.
  std::string error = {};
};

/// Says how things are now. Called from any thread.
class FreshnessSource {
 public:
  virtual ~FreshnessSource() = default;
  virtual Freshness freshness() const = 0;
};

class InstanceSet;
/// How sets are held: a pointer that counts in the set itself, so that one can be taken from where
/// it is published without a lock and without an allocation.
using InstanceSetPtr = boost::intrusive_ptr<const InstanceSet>;

/// The instances of one service at one moment, in the order of their keys. Immutable; safe to use
/// from any number of threads, for as long as one likes.
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

  /// For backends. Puts the instances in order. `freshness` may be null: then it is always live.
  static InstanceSetPtr make(std::string service, std::uint64_t version,
                             std::vector<InstancePtr> instances,
                             std::shared_ptr<const FreshnessSource> freshness = nullptr);
  const std::string& service() const { return service_; }
  /// The greater of two versions is newer, for sets of one service from one registry.
  std::uint64_t version() const { return version_; }

  std::size_t size() const { return instances_.size(); }
  bool empty() const { return instances_.empty(); }
  iterator begin() const { return iterator(instances_.begin()); }
  iterator end() const { return iterator(instances_.end()); }
  const ServiceInstance& operator[](std::size_t index) const { return *instances_[index]; }
  /// The same as handles, for those who keep single instances. An instance that has not changed is
  /// the same one in the next set.
  const std::vector<InstancePtr>& instances() const { return instances_; }

  /// How fresh the data is now, not when the set was made.
  Freshness freshness() const;

  /// Identical instances, whatever the versions.
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

/// `before` may be null, as an empty set.
InstanceDiff diff(const InstanceSetPtr& before, const InstanceSet& after);

}  // namespace lookout::registry
