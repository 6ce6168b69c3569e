#include "rest/call_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "lookout/rest/error.h"

namespace lookout::rest::detail {

using Kind = TransportError::Kind;
using std::chrono::steady_clock;

namespace {

/// A longer time limit is as good as none (and would overflow the time).
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

}  // namespace

CallControl::CallControl(const BoundCall& call, std::chrono::milliseconds timeout,
                         std::stop_token closing, boost::asio::any_io_executor executor,
                         std::string description)
    : closing_(std::move(closing)),
      executor_(std::move(executor)),
      description_(std::move(description)),
      timer_(std::make_shared<boost::asio::steady_timer>(executor_)) {
  if (timeout.count() > 0 && timeout < kLongest) deadline_ = steady_clock::now() + timeout;
  if (call.binding) {
    stops_ = call.binding->stops;
    may_send_ = call.binding->may_send;
  }
  if (call.options.may_send) may_send_.push_back(call.options.may_send);
  if (call.options.stop.stop_possible()) stops_.push_back(call.options.stop);
  for (const auto& token : stops_) on_stop_.emplace_back(token, [this] { stop(); });
  on_stop_.emplace_back(closing_, [this] { stop(); });
}

std::function<bool()> CallControl::send_guard() const {
  if (may_send_.empty()) return {};
  return [all = may_send_] {
    return std::all_of(all.begin(), all.end(), [](const auto& may_send) { return may_send(); });
  };
}

bool CallControl::stop_requested() const {
  return std::any_of(stops_.begin(), stops_.end(),
                     [](const std::stop_token& token) { return token.stop_requested(); });
}

// Destroying a call (because its coroutine is cancelled or its loop ends) ends all its operations.
CallControl::~CallControl() { interruption_.request_stop(); }

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
  // A stop before this found nothing to cancel.
  if (stop_requested() || closing_.stop_requested()) exchange->cancel();
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

void CallControl::check(std::string_view plugin) const {
  const bool stopped = stop_requested();
  if (stopped || closing_.stop_requested()) {
    throw TransportError(
        Kind::kCancelled,
        fmt::format("{}: {}", description_, stopped ? "cancelled" : "the client was closed"));
  }
  remaining(plugin);
}

std::chrono::milliseconds CallControl::remaining(std::string_view plugin) const {
  if (!deadline_) return std::chrono::milliseconds(0);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - steady_clock::now());
  if (left.count() <= 0) {
    const std::string whose =
        plugin.empty() ? "" : fmt::format(" of the credential plugin {}", plugin);
    throw TransportError(Kind::kTimeout,
                         fmt::format("{}: no answer{} within the time limit", description_, whose));
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
