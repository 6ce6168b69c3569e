// Stopping a call, and its deadline.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/event_loop.h"
#include "lookout/rest/detail/http_transport.h"
#include "lookout/rest/options.h"
#include "rest/bound_call.h"

namespace lookout::rest::detail {

/// Stops whatever one call is waiting for: the exchange that is under way, a credential, or a pause
/// before the next attempt. Made and used on the strand of the call; the stop may come from any
/// thread.
class CallControl {
 public:
  /// `closing`: the client goes away. `description` ("list pods") is for messages.
  /// `timeout`: until the deadline; 0 or kNoTimeout: none.
  CallControl(const BoundCall& call, std::chrono::milliseconds timeout, std::stop_token closing,
              boost::asio::any_io_executor executor, std::string description);
  ~CallControl();
  CallControl(const CallControl&) = delete;
  CallControl& operator=(const CallControl&) = delete;

  /// The time until the deadline; 0 if there is none. Throws TransportError when it has passed.
  std::chrono::milliseconds remaining() const { return remaining({}); }
  /// Whether the deadline leaves time for a pause.
  bool has_time_for(std::chrono::milliseconds pause) const;
  /// Throws TransportError when a stop was requested, or the deadline has passed. `plugin`: the
  /// credential plugin that the call waits for, if it does.
  void check(std::string_view plugin = {}) const;
  /// Throws TransportError when a stop is requested meanwhile.
  Awaitable<void> sleep(std::chrono::milliseconds duration);
  /// The exchange that a stop is to cancel, for as long as it lives.
  void watch(const std::shared_ptr<HttpExchange>& exchange);
  /// For what neither an exchange nor a pause is: stopped by a stop, and when the deadline passes.
  std::stop_token interruption();

  /// Whether all CallOptions::may_send agree; empty if there is none. May outlive the call.
  std::function<bool()> send_guard() const;

  const boost::asio::any_io_executor& executor() const { return executor_; }

 private:
  using OnStop = std::stop_callback<std::function<void()>>;

  void stop();
  bool stop_requested() const;
  std::chrono::milliseconds remaining(std::string_view plugin) const;

  std::vector<std::stop_token> stops_;
  std::vector<std::function<bool()>> may_send_;
  std::stop_token closing_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  boost::asio::any_io_executor executor_;
  std::string description_;
  std::shared_ptr<boost::asio::steady_timer> timer_;
  std::optional<boost::asio::steady_timer> deadline_timer_;
  std::stop_source interruption_;
  std::mutex mutex_;
  std::weak_ptr<HttpExchange> exchange_;  // guarded by mutex_
  // Last: no stop may come before the rest exists or after it is gone.
  std::list<OnStop> on_stop_;
};

}  // namespace lookout::rest::detail
