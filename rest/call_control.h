// CallControl: the stop and the deadline of a call.
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

/// Stops what a call is waiting for: an exchange, a credential, or the pause before the next
/// attempt. Created and used on the call's strand; the stop may be requested on any thread.
class CallControl {
 public:
  /// `closing`: stopped when the client is closed. `description` ("list pods") is for messages.
  /// `timeout`: until the deadline; 0 or kNoTimeout: none.
  CallControl(const BoundCall& call, std::chrono::milliseconds timeout, std::stop_token closing,
              boost::asio::any_io_executor executor, std::string description);
  ~CallControl();
  CallControl(const CallControl&) = delete;
  CallControl& operator=(const CallControl&) = delete;

  /// The time until the deadline; 0 if there is none. Throws TransportError if it has passed.
  std::chrono::milliseconds remaining() const { return remaining({}); }
  /// Whether the deadline leaves time for a pause.
  bool has_time_for(std::chrono::milliseconds pause) const;
  /// Throws TransportError when a stop was requested, or the deadline has passed. `plugin`: the
  /// credential plugin that the call waits for, if any.
  void check(std::string_view plugin = {}) const;
  /// Throws TransportError if a stop is requested during the sleep.
  Awaitable<void> sleep(std::chrono::milliseconds duration);
  /// Sets the exchange that a stop cancels, while it exists.
  void watch(const std::shared_ptr<HttpExchange>& exchange);
  /// For waits other than exchanges and pauses: stopped by a stop or when the deadline passes.
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
  // Last: the callbacks use the other members.
  std::list<OnStop> on_stop_;
};

}  // namespace lookout::rest::detail
