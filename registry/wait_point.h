// WaitPoint: waiting on a thread, in a coroutine, or with a callback.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/registry/watcher.h"

namespace lookout::registry::detail {

/// The base class of watchers' queues. A Result is the next value, or a NextOutcome that says why
/// there is none.
template <class Result>
class WaitPoint {
 public:
  WaitPoint() = default;
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;
  virtual ~WaitPoint() = default;

  /// The result, if one is available.
  std::optional<Result> take() {
    const std::lock_guard lock(mutex_);
    return take_locked();
  }

  /// Waits on the calling thread.
  Result wait(std::stop_token stop, Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (auto result = take_locked()) return *std::move(result);
      if (stop.stop_requested()) return Result(NextOutcome::kCancelled);
      const auto ready = [&] { return ready_locked(); };
      if (deadline == kNoDeadline) {
        // (Waiting until time_point::max() overflows in some implementations.)
        changed_.wait(lock, stop, ready);
      } else if (!changed_.wait_until(lock, stop, deadline, ready) && !stop.stop_requested()) {
        return Result(NextOutcome::kTimedOut);
      }
    }
  }

  /// Waits in a coroutine. If Asio cancels it, no result is taken.
  static Awaitable<Result> async_wait(std::shared_ptr<WaitPoint> self, std::stop_token stop,
                                      Deadline deadline) {
    // Use a strand, as timers are not thread-safe.
    const auto executor = co_await boost::asio::this_coro::executor;
    const boost::asio::any_io_executor strand = boost::asio::make_strand(executor);
    for (;;) {
      if (auto result = self->take()) co_return *std::move(result);
      if (stop.stop_requested()) co_return Result(NextOutcome::kCancelled);
      if (is_over(deadline)) co_return Result(NextOutcome::kTimedOut);
      co_await lookout::detail::run_on(strand, wait_on_strand(self, stop, deadline));
      // After a cancellation, a taken result would be lost.
      const auto state = co_await boost::asio::this_coro::cancellation_state;
      if (state.cancelled() != boost::asio::cancellation_type::none)
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
  }

  /// `wake` is called, without a lock and on any thread, whenever take() may return something. It
  /// must not block. Replaces the previous function; an empty one removes it.
  void set_wake(std::function<void()> wake) {
    auto next = wake ? std::make_shared<const std::function<void()>>(std::move(wake)) : nullptr;
    const std::lock_guard lock(mutex_);
    wake_.swap(next);
  }

 protected:
  /// Called with the mutex held: the result of take(), and whether there may be one.
  virtual std::optional<Result> take_locked() = 0;
  virtual bool ready_locked() const = 0;

  /// Wakes all waits.
  void changed(std::unique_lock<std::mutex> lock) {
    const auto wake = wake_;
    lock.unlock();
    changed_.notify_all();
    if (wake) (*wake)();
  }

  mutable std::mutex mutex_;

 private:
  static bool is_over(Deadline deadline) {
    return deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline;
  }

  bool ready() const {
    const std::lock_guard lock(mutex_);
    return ready_locked();
  }

  /// Waits until there may be a result, or the wait ends.
  static Awaitable<void> wait_on_strand(std::shared_ptr<WaitPoint> self, std::stop_token stop,
                                        Deadline deadline) {
    AsyncEvent event(co_await boost::asio::this_coro::executor);
    const auto ring = [event] { event.ring(); };
    const std::stop_callback on_stop(stop, ring);
    struct WakeGuard {
      WaitPoint& point;
      ~WakeGuard() { point.set_wake({}); }
    } guard{*self};
    self->set_wake(ring);
    // Rings are posted to this strand, so none is lost between the check and the wait.
    while (!self->ready() && !stop.stop_requested() && !is_over(deadline))
      co_await event.wait(deadline);
  }

  std::condition_variable_any changed_;
  std::shared_ptr<const std::function<void()>> wake_;  // guarded by mutex_
};

}  // namespace lookout::registry::detail
