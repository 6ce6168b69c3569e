// LeaseManager: leases that keys share.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::apiserver::storage::etcd3 {

/// Returns leases (k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go). Leases are expensive for etcd,
/// so keys that are written within a minute (or 5 % of their time to live, if that is less) share one,
/// and expire a little later. Thread-safe.
class LeaseManager {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxKeys = 1000;

  explicit LeaseManager(std::shared_ptr<Client> client, Clock::time_point (*now)() = Clock::now)
      : client_(std::move(client)), now_(now) {}

  /// A lease that ends after `ttl` at the earliest.
  Awaitable<std::int64_t> lease_for(std::chrono::seconds ttl);

 private:
  const std::shared_ptr<Client> client_;
  Clock::time_point (*const now_)();
  std::mutex mutex_;
  std::int64_t id_ = 0;
  std::uint64_t lineage_ = 0;  // of the etcd that granted it
  Clock::time_point end_;
  std::size_t keys_ = 0;
};

}  // namespace lookout::apiserver::storage::etcd3
