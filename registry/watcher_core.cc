#include "registry/watcher_core.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace lookout::registry {

const char* to_string(NextOutcome outcome) {
  switch (outcome) {
    case NextOutcome::kInstances:
      return "instances";
    case NextOutcome::kTimedOut:
      return "timed out";
    case NextOutcome::kCancelled:
      return "cancelled";
    case NextOutcome::kStopped:
      return "stopped";
    case NextOutcome::kClosed:
      return "closed";
  }
  return "?";
}

namespace detail {

void WatcherCore::ring() {
  std::unique_lock lock(mutex_);
  if (end_) return;
  rung_ = true;
  changed(std::move(lock));
}

void WatcherCore::end(NextOutcome reason) {
  // What is let go may be the last of it: after the lock.
  InstanceSetPtr last;
  std::shared_ptr<const Published> published;
  std::unique_lock lock(mutex_);
  if (end_) return;
  end_ = reason;
  last.swap(last_);
  published.swap(published_);
  changed(std::move(lock));
}

bool WatcherCore::ended() const {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

void WatcherCore::changed(std::unique_lock<std::mutex> lock) {
  const auto wake = wake_;
  lock.unlock();
  changed_.notify_all();
  if (wake) (*wake)();
}

void WatcherCore::set_wake(std::function<void()> wake) {
  auto next = wake ? std::make_shared<const std::function<void()>>(std::move(wake)) : nullptr;
  const std::lock_guard lock(mutex_);
  wake_.swap(next);
}

std::optional<NextResult> WatcherCore::take() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

std::optional<NextResult> WatcherCore::take_locked() {
  if (end_) return NextResult(*end_);
  if (!std::exchange(rung_, false)) return std::nullopt;
  InstanceSetPtr set = published_->load();
  const bool news = last_ ? !set->same_instances(*last_) : !set->empty();
  // Also when it says nothing new: it may be the one to keep.
  if (last_ || news) last_ = set;
  if (!news) return std::nullopt;
  return NextResult(std::move(set));
}

NextResult WatcherCore::wait(std::stop_token stop, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto result = take_locked()) return *std::move(result);
    if (stop.stop_requested()) return NextResult(NextOutcome::kCancelled);
    const auto ready = [&] { return end_ || rung_; };
    if (deadline == kNoDeadline) {
      // (A wait until the end of time overflows in some implementations.)
      changed_.wait(lock, stop, ready);
    } else if (!changed_.wait_until(lock, stop, deadline, ready) && !stop.stop_requested()) {
      return NextResult(NextOutcome::kTimedOut);
    }
  }
}

rest::Awaitable<NextResult> WatcherCore::async_wait(std::shared_ptr<WatcherCore> self,
                                                    std::stop_token stop, Deadline deadline) {
  // Timers belong to one thread at a time, whatever the caller runs on.
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return co_await boost::asio::co_spawn(
      boost::asio::make_strand(executor),
      wait_on_strand(std::move(self), std::move(stop), deadline), boost::asio::use_awaitable);
}

rest::Awaitable<NextResult> WatcherCore::wait_on_strand(std::shared_ptr<WatcherCore> self,
                                                        std::stop_token stop, Deadline deadline) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto timer = std::make_shared<boost::asio::steady_timer>(executor, deadline);
  const auto ring = [timer, executor] {
    boost::asio::post(executor, [timer] { timer->cancel(); });
  };
  const std::stop_callback on_stop(stop, ring);
  struct WakeGuard {
    WatcherCore& core;
    ~WakeGuard() { core.set_wake({}); }
  } guard{*self};
  self->set_wake(ring);
  for (;;) {
    if (auto result = self->take()) co_return *std::move(result);
    if (stop.stop_requested()) co_return NextResult(NextOutcome::kCancelled);
    if (deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline) {
      co_return NextResult(NextOutcome::kTimedOut);
    }
    // A ring is posted here, so it cannot come between the look and the wait.
    boost::system::error_code ignored;
    co_await timer->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }
}

}  // namespace detail
}  // namespace lookout::registry
