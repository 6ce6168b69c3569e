#include "registry/callback_subscription.h"

#include <utility>

namespace lookout::registry::detail {

CallbackLoop::CallbackLoop(std::string service, std::shared_ptr<WatcherCore> core,
                           SetCallback callback, std::shared_ptr<informer::HandlerPool> pool,
                           std::shared_ptr<UserCalls> calls)
    : what_("the callback for service " + std::move(service)),
      core_(std::move(core)),
      pool_(std::move(pool)),
      calls_(std::move(calls)),
      callback_(std::move(callback)) {}

void CallbackLoop::start() {
  core_->set_wake([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->schedule();
  });
  schedule();
}

void CallbackLoop::schedule() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return;
    again_ = true;
    if (std::exchange(scheduled_, true)) return;
  }
  pool_->post([self = shared_from_this()] { self->drain(); });
}

void CallbackLoop::drain() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(again_, false)) {
        scheduled_ = false;
        return;
      }
    }
    while (call_once()) {
    }
  }
}

bool CallbackLoop::call_once() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return false;
    caller_ = std::this_thread::get_id();
  }
  const auto result = core_->take();
  const bool called = result && *result;
  if (called) {
    calls_->run(what_, [&] { callback_(result->set()); });
  }
  const std::lock_guard lock(mutex_);
  caller_ = {};
  changed_.notify_all();
  return called;
}

void CallbackLoop::cancel() {
  core_->end(NextOutcome::kStopped);
  // A queued task keeps this object, but must not keep what the callback refers to.
  SetCallback ended;  // destroyed after the lock
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  if (caller_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return caller_ == std::thread::id{}; });
  ended.swap(callback_);
}

}  // namespace lookout::registry::detail
