// Waking a coroutine from any thread, or at some time.
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

/// One coroutine on `executor` (one thread, or a strand) waits; any thread rings. A ring while
/// nobody waits is lost, so the waiter checks its condition first and waits then: on the executor
/// nothing comes in between. Copies are the same event.
class AsyncEvent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit AsyncEvent(boost::asio::any_io_executor executor)
      : timer_(std::make_shared<boost::asio::steady_timer>(std::move(executor))) {}

  /// From any thread. The event may be gone when the ring arrives.
  void ring() const {
    boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); });
  }

  /// The same on the executor itself, at once.
  void ring_here() const { timer_->cancel(); }

  /// On the executor only. Returns on a ring, at `until`, and when the waiting coroutine is
  /// cancelled. May also return for no reason.
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
