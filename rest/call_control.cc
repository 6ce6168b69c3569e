#include "rest/call_control.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "lookout/rest/error.h"

namespace lookout::rest::detail {

using Kind = TransportError::Kind;
using std::chrono::steady_clock;

CallControl::CallControl(const CallOptions& options, std::chrono::milliseconds default_timeout,
                         std::stop_token closing, boost::asio::any_io_executor executor,
                         std::string description)
    : token_(options.stop),
      closing_(std::move(closing)),
      executor_(std::move(executor)),
      description_(std::move(description)),
      timer_(std::make_shared<boost::asio::steady_timer>(executor_)),
      on_stop_(token_, [this] { stop(); }),
      on_closing_(closing_, [this] { stop(); }) {
  const auto timeout = options.timeout.count() > 0 ? options.timeout : default_timeout;
  if (timeout.count() > 0) deadline_ = steady_clock::now() + timeout;
}

CallControl::~CallControl() = default;

void CallControl::stop() {
  boost::asio::post(executor_, [timer = timer_] { timer->cancel(); });
  std::shared_ptr<HttpExchange> exchange;
  {
    const std::lock_guard lock(mutex_);
    exchange = exchange_.lock();
  }
  if (exchange) exchange->cancel();
  interruption_.request_stop();
}

void CallControl::watch(const std::shared_ptr<HttpExchange>& exchange) {
  {
    const std::lock_guard lock(mutex_);
    exchange_ = exchange;
  }
  // A stop that came just before found nothing to cancel.
  if (token_.stop_requested() || closing_.stop_requested()) exchange->cancel();
}

std::stop_token CallControl::interruption() {
  if (deadline_ && !deadline_timer_) {
    deadline_timer_.emplace(executor_, *deadline_);
    deadline_timer_->async_wait(
        [interruption = interruption_](boost::system::error_code error) mutable {
          if (!error) interruption.request_stop();
        });
  }
  return interruption_.get_token();
}

void CallControl::check() const {
  if (token_.stop_requested() || closing_.stop_requested()) {
    throw TransportError(
        Kind::kCancelled,
        fmt::format("{}: {}", description_,
                    token_.stop_requested() ? "cancelled" : "the client was closed"));
  }
  remaining();
}

std::chrono::milliseconds CallControl::remaining() const {
  if (!deadline_) return std::chrono::milliseconds(0);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - steady_clock::now());
  if (left.count() <= 0) {
    throw TransportError(Kind::kTimeout,
                         fmt::format("{}: no answer within the time limit", description_));
  }
  return left;
}

bool CallControl::has_time_for(std::chrono::milliseconds pause) const {
  return !deadline_ || steady_clock::now() + pause < *deadline_;
}

Awaitable<void> CallControl::sleep(std::chrono::milliseconds duration) {
  check();
  timer_->expires_after(duration);
  boost::system::error_code ignored;
  co_await timer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  check();
}

}  // namespace lookout::rest::detail
