#include "lookout/base/clock.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace lookout {
namespace {

class RealClock : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto timer = std::make_shared<boost::asio::steady_timer>(executor, duration);
    // A stop may be requested on any thread; the timer belongs to the strand.
    const std::stop_callback on_stop(
        stop, [timer, executor] { boost::asio::post(executor, [timer] { timer->cancel(); }); });
    if (stop.stop_requested()) co_return false;
    boost::system::error_code ignored;
    co_await timer->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    co_return !stop.stop_requested();
  }
};

}  // namespace

std::shared_ptr<Clock> Clock::real() { return std::make_shared<RealClock>(); }

}  // namespace lookout
