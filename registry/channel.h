// One service that somebody follows.
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

/// Keeps the set of one service, and tells its watchers when it changes. Lives as long as somebody
/// follows the service.
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

  /// Brings the set up to the stores as they are now; tells the watchers if it is another one.
  /// Returns it.
  InstanceSetPtr refresh(Hub& hub);
  InstanceSetPtr current() const { return published_->load(); }
  /// Ends all watchers.
  void close();

 private:
  /// The instances that were read from one version of an object.
  struct Read {
    api::Object object;  // keeps the address that it is found by
    std::vector<InstancePtr> instances;
  };
  using ReadObjects = std::unordered_map<const void*, Read>;

  /// In the order of their keys, each once, and those that are as they were as the same objects.
  void put_together(std::vector<InstancePtr>& instances, const InstanceSet& before) const;

  const std::weak_ptr<Hub> hub_;
  const std::string service_;
  const std::shared_ptr<const InstanceReader> reader_;
  const std::shared_ptr<const FreshnessSource> freshness_;

  std::mutex computing_;
  Informers informers_;              // guarded by computing_, as is
  ReadObjects read_;                 // what the current set was made of
  std::vector<std::uint64_t> seen_;  // the stores' versions then

  const std::shared_ptr<Published> published_;  // stored under computing_

  mutable std::mutex mutex_;                        // after computing_
  InOrder<std::shared_ptr<WatcherCore>> watchers_;  // guarded by mutex_
};

}  // namespace lookout::registry::detail
