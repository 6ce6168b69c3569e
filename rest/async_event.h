// Waking a coroutine from any thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "lookout/rest/event_loop.h"

namespace lookout::rest::detail {

/// A doorbell. One coroutine, on `executor` (a strand), waits; anybody rings. A ring that comes
/// while nobody waits is lost, so the waiter looks at the condition first and waits then: on the
/// strand nothing can come in between.
class AsyncEvent {
 public:
  explicit AsyncEvent(boost::asio::any_io_executor executor)
      : timer_(std::make_shared<boost::asio::steady_timer>(
            std::move(executor), boost::asio::steady_timer::time_point::max())) {}

  /// From any thread.
  void ring() const {
    boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); });
  }

  /// On the executor only. Returns on a ring, and when the waiting coroutine is cancelled.
  Awaitable<void> wait() {
    boost::system::error_code ignored;
    co_await timer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }

 private:
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

}  // namespace lookout::rest::detail
