#include "registry/call_queue.h"

namespace lookout::registry::detail {

CallQueue::CallQueue(std::string what, std::shared_ptr<informer::HandlerPool> pool,
                     std::shared_ptr<UserCalls> calls)
    : what_(std::move(what)), pool_(std::move(pool)), calls_(std::move(calls)) {}

void CallQueue::post(const std::string& key, std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = pending_.try_emplace(key);
    it->second.swap(call);  // (the replaced call is destroyed after the lock)
    if (fresh) {
      order_.push_back(key);
      if (order_.size() > kMaxPending) {
        pending_.erase(order_.front());
        order_.pop_front();
      }
    }
    if (std::exchange(scheduled_, true)) return;
  }
  pool_->post([self = shared_from_this()] { self->drain(); });
}

void CallQueue::drain() {
  for (;;) {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex_);
      if (order_.empty()) {
        scheduled_ = false;
        return;
      }
      const auto it = pending_.find(order_.front());
      call.swap(it->second);
      pending_.erase(it);
      order_.pop_front();
    }
    calls_->run(what_, call);
  }
}

}  // namespace lookout::registry::detail
