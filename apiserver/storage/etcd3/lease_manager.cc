#include "apiserver/storage/etcd3/lease_manager.h"

#include <algorithm>

namespace lookout::apiserver::storage::etcd3 {
namespace {

constexpr std::chrono::seconds kMaxReuse{60};

std::chrono::seconds reuse_of(std::chrono::seconds ttl) { return std::min(kMaxReuse, ttl / 20); }

}  // namespace

Awaitable<std::int64_t> LeaseManager::lease_for(std::chrono::seconds ttl) {
  const auto now = now_();
  const std::chrono::seconds extra = reuse_of(ttl);
  const std::uint64_t lineage = client_->lineage_number();
  {
    const std::lock_guard lock(mutex_);
    ++keys_;
    const bool lasts = now + ttl < end_;
    const bool not_too_long = now + ttl + extra >= end_;
    if (id_ != 0 && lineage_ == lineage && lasts && not_too_long && keys_ <= kMaxKeys)
      co_return id_;
  }
  // With concurrent calls, the last lease is reused.
  const Lease lease = co_await client_->grant_lease(ttl + extra);
  const std::lock_guard lock(mutex_);
  id_ = lease.id;
  lineage_ = lineage;
  end_ = now + ttl + extra;
  keys_ = 1;
  co_return lease.id;
}

}  // namespace lookout::apiserver::storage::etcd3
