// Waking a coroutine from any thread, or at some time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "lookout/rest/event_loop.h"

namespace lookout::apiserver {

/// One coroutine on `executor` (one thread, or a strand) waits; anybody rings. A ring while nobody
/// waits is lost, so the waiter looks at its condition first and waits then: on the executor
/// nothing comes in between. May also wake up for nothing.
class Doorbell {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Doorbell(boost::asio::any_io_executor executor)
      : timer_(std::make_shared<boost::asio::steady_timer>(std::move(executor))) {}

  /// From any thread. The doorbell may be gone when the ring arrives.
  void ring() const {
    boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); });
  }
  /// The same on the executor itself.
  void ring_here() const { timer_->cancel(); }

  /// On the executor only.
  rest::Awaitable<void> wait(TimePoint until = TimePoint::max()) {
    boost::system::error_code ignored;
    timer_->expires_at(until);
    co_await timer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }

  boost::asio::any_io_executor executor() const { return timer_->get_executor(); }

 private:
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

}  // namespace lookout::apiserver
