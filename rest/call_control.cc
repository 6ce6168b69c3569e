#include "rest/call_control.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "lookout/rest/error.h"

namespace lookout::rest::detail {

using Kind = TransportError::Kind;

CallControl::CallControl(const CallOptions& options, std::chrono::milliseconds default_timeout,
                         boost::asio::any_io_executor executor, std::string description)
    : token_(options.stop),
      executor_(std::move(executor)),
      description_(std::move(description)),
      timer_(std::make_shared<boost::asio::steady_timer>(executor_)),
      callback_(options.stop, [this] { stop(); }) {
  const auto timeout = options.timeout.count() > 0 ? options.timeout : default_timeout;
  if (timeout.count() > 0) deadline_ = std::chrono::steady_clock::now() + timeout;
}

void CallControl::stop() {
  boost::asio::post(executor_, [timer = timer_] { timer->cancel(); });
  std::shared_ptr<HttpExchange> exchange;
  {
    const std::lock_guard lock(mutex_);
    exchange = exchange_.lock();
  }
  if (exchange) exchange->cancel();
}

void CallControl::watch(const std::shared_ptr<HttpExchange>& exchange) {
  {
    const std::lock_guard lock(mutex_);
    exchange_ = exchange;
  }
  // A stop that came just before found nothing to cancel.
  if (token_.stop_requested()) exchange->cancel();
}

void CallControl::check() const {
  if (token_.stop_requested())
    throw TransportError(Kind::kCancelled, fmt::format("{}: cancelled", description_));
}

std::chrono::milliseconds CallControl::remaining() const {
  if (!deadline_) return std::chrono::milliseconds(0);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      *deadline_ - std::chrono::steady_clock::now());
  if (left.count() <= 0)
    throw TransportError(Kind::kTimeout,
                         fmt::format("{}: no answer within the time limit", description_));
  return left;
}

Awaitable<void> CallControl::sleep(std::chrono::milliseconds duration) {
  check();
  if (deadline_ && remaining() < duration) {
    throw TransportError(
        Kind::kTimeout,
        fmt::format("{}: the server asks to wait longer than the time limit", description_));
  }
  timer_->expires_after(duration);
  boost::system::error_code ignored;
  co_await timer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  check();
}

}  // namespace lookout::rest::detail
