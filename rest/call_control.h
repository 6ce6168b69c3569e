// Stopping a call, and its deadline.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/rest/event_loop.h"
#include "lookout/rest/options.h"
#include "rest/http_transport.h"

namespace lookout::rest::detail {

/// Stops whatever one call is waiting for: the exchange that is under way, or a pause before the
/// next attempt. Made and used on the strand of the call; the stop may come from any thread.
class CallControl {
 public:
  /// `description` ("list pods") is for messages.
  CallControl(const CallOptions& options, std::chrono::milliseconds default_timeout,
              boost::asio::any_io_executor executor, std::string description);

  /// What is left until the deadline; 0 if there is none. Throws TransportError when it has passed.
  std::chrono::milliseconds remaining() const;
  /// Throws TransportError when a stop was requested.
  void check() const;
  /// Throws TransportError when a stop is requested meanwhile, or when the deadline would come
  /// before the end.
  Awaitable<void> sleep(std::chrono::milliseconds duration);
  /// The exchange that a stop is to cancel, for as long as it lives.
  void watch(const std::shared_ptr<HttpExchange>& exchange);

  const boost::asio::any_io_executor& executor() const { return executor_; }
  std::stop_token stop_token() const { return token_; }

 private:
  void stop();

  std::stop_token token_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  boost::asio::any_io_executor executor_;
  std::string description_;
  std::shared_ptr<boost::asio::steady_timer> timer_;
  std::mutex mutex_;
  std::weak_ptr<HttpExchange> exchange_;  // guarded by mutex_
  // Last: no stop may come before the rest exists or after it is gone.
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace lookout::rest::detail
