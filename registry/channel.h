// Channel: a service that has watchers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "registry/hub.h"
#include "registry/in_order.h"

namespace lookout::registry::detail {

/// Keeps the set of one service, and notifies its watchers of changes. Lives while the service has
/// watchers.
class Channel {
 public:
  using Informers = std::vector<std::shared_ptr<informer::SharedIndexInformer>>;

  Channel(std::weak_ptr<Hub> hub, std::string service, Informers informers,
          std::shared_ptr<const InstanceReader> reader,
          std::shared_ptr<const FreshnessSource> freshness);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// A watcher of this service.
  std::shared_ptr<WatcherCore> add();
  void remove(const std::shared_ptr<WatcherCore>& watcher);
  std::size_t watchers() const;
  const std::string& service() const { return service_; }
  /// Whether the set has instances whose announcement has become unreadable.
  bool keeps() const { return keeps_.load(std::memory_order_relaxed); }

  /// Computes the set from the current stores, and notifies the watchers if it has changed. Returns
  /// the set.
  InstanceSetPtr refresh(Hub& hub);
  InstanceSetPtr current() const { return published_->load(); }
  /// Ends all watchers.
  void close();

 private:
  /// The instances in one version of an object.
  struct Read {
    api::Object object = {};  // keeps the address, which is the key
    std::vector<InstancePtr> instances = {};
    bool readable = true;
    std::vector<InstancePtr> last = {};  // if it is not: those of the last readable version
  };
  using ReadObjects = std::unordered_map<const void*, Read>;
  /// Versions of objects that are no longer there, by the object's key.
  using Replaced = std::unordered_map<std::string, const Read*>;

  /// Reads an object. Of an unreadable one, keeps what its last readable version had.
  Read read(const api::Object& object, const Replaced& replaced) const;
  /// Sorts the instances by key, merges duplicates and lets the reader choose. Unchanged instances keep
  /// their objects.
  void put_together(std::vector<InstancePtr>& instances, const InstanceSet& before) const;

  const std::weak_ptr<Hub> hub_;
  const std::string service_;
  const std::shared_ptr<const InstanceReader> reader_;
  const std::shared_ptr<const FreshnessSource> freshness_;

  std::mutex computing_;
  Informers informers_;              // guarded by computing_, as is
  ReadObjects read_;                 // the sources of the current set
  std::vector<std::uint64_t> seen_;  // the versions of the stores at that time

  std::atomic<bool> keeps_ = false;

  const std::shared_ptr<Published> published_;  // written under computing_

  mutable std::mutex mutex_;                        // locked after computing_
  InOrder<std::shared_ptr<WatcherCore>> watchers_;  // guarded by mutex_
};

}  // namespace lookout::registry::detail
