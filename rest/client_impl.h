// The state that all copies of a Client share.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/rest/client.h"
#include "lookout/rest/credentials.h"
#include "lookout/rest/detail/http_transport.h"
#include "rest/ca_source.h"
#include "rest/call_control.h"
#include "rest/encodings.h"
#include "rest/rate_limiter.h"
#include "rest/request.h"
#include "rest/request_metrics.h"
#include "rest/warnings.h"

namespace lookout::rest {

/// Copies of a Client and its ResourceClients share a handle that closes the Impl when the last of
/// them is destroyed (Client::Client). Running coroutines hold the Impl itself with
/// shared_from_this(), and end soon after close().
class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  Impl(Config config, std::shared_ptr<EventLoop> loop);
  ~Impl();

  /// Cancels all running calls; later calls fail. Thread-safe.
  void close();
  /// Stopped by close().
  std::stop_token closing() const { return closing_.get_token(); }

  struct Answer {
    detail::HttpHead head;
    std::shared_ptr<detail::HttpExchange> exchange;
  };

  /// Sends the request, and retries if the server asks for it, until a successful response has
  /// begun. Throws api::StatusError or TransportError. Call it on the strand of `control`.
  Awaitable<Answer> open(const detail::Request& request, detail::CallControl& control);

  /// open() for objects of a resource, in the encoding selected for it. Falls back to JSON if the
  /// server does not support protobuf.
  struct ObjectsAnswer {
    Answer answer;
    detail::Encoding encoding;  // of the body
  };
  Awaitable<ObjectsAnswer> open_objects(detail::Request& request, const api::Resource& resource,
                                        ContentType type, std::string_view metadata_kind,
                                        detail::CallControl& control);

  /// The whole body of the response. Throws api::DecodeError if it is too large.
  Awaitable<std::string> fetch(const detail::Request& request, detail::CallControl& control);

  /// The object in the body of the response.
  Awaitable<api::Object> fetch_object(const detail::Request& request, detail::CallControl& control);

  /// The same for a resource, in the encoding selected for it, without losing unknown fields.
  Awaitable<api::Object> get_object(detail::Request request, const api::Resource& resource,
                                    detail::CallControl& control, bool metadata_only = false);

  detail::Encodings& encodings() { return encodings_; }
  const Config& config() const { return config_; }
  EventLoop& loop() const { return *loop_; }
  const std::shared_ptr<EventLoop>& shared_loop() const { return loop_; }
  std::shared_ptr<const metrics::Source> metrics() const { return metrics_; }

 private:
  Awaitable<api::Object> read_object(const detail::Request& request, Answer answer,
                                     api::UnknownFields& unknown);
  Awaitable<std::shared_ptr<const Credential>> credential(detail::CallControl& control);
  detail::HttpRequest prepare(const detail::Request& request, const Credential& credential,
                              detail::CallControl& control);
  /// Waits for the rate limiter, if the Config has limits.
  Awaitable<void> wait_for_turn(const detail::Request& request, detail::CallControl& control);

  std::stop_source closing_;
  const Config config_;
  const std::shared_ptr<EventLoop> loop_;
  detail::CaSource ca_;
  const std::shared_ptr<Credentials> credentials_;
  const std::shared_ptr<detail::HttpTransport> transport_;
  detail::Encodings encodings_;
  detail::Warnings warnings_;
  std::optional<detail::RateLimiter> limiter_;
  const std::shared_ptr<detail::RequestMetrics> metrics_;
  std::once_flag helper_once_;
  std::unique_ptr<boost::asio::thread_pool> helper_;  // for credential plugins, which block
};

}  // namespace lookout::rest
