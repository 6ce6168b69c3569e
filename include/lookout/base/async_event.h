// AsyncEvent: wakes a coroutine from any thread, or at a given time.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "lookout/base/event_loop.h"

namespace lookout {

/// One coroutine waits on `executor` (one thread, or a strand); any thread can ring. A ring is lost
/// if nothing waits, so the waiter must check its condition before it waits: on the executor,
/// nothing can run in between. Copies refer to the same event.
class AsyncEvent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit AsyncEvent(boost::asio::any_io_executor executor)
      : timer_(std::make_shared<boost::asio::steady_timer>(std::move(executor))) {}

  /// Rings from any thread. The ring arrives later, possibly after the event is destroyed.
  void ring() const {
    boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); });
  }

  /// Rings immediately. Call on the executor only.
  void ring_here() const { timer_->cancel(); }

  /// Waits for a ring, for the time `until`, or for cancellation of the waiting coroutine. May
  /// return spuriously. Call on the executor only.
  Awaitable<void> wait(TimePoint until = TimePoint::max()) {
    boost::system::error_code ignored;
    timer_->expires_at(until);
    co_await timer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }

  boost::asio::any_io_executor executor() const { return timer_->get_executor(); }

 private:
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

}  // namespace lookout
