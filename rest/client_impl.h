// The state that all copies of a Client share.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
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
#include "rest/warnings.h"

namespace lookout::rest {

/// Copies of a Client, and the ResourceClients made of it, share a handle to this that closes it
/// when the last of them goes (Client::Client). Coroutines that are under way hold the object
/// itself, by shared_from_this(), and end soon after it was closed.
class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  Impl(Config config, std::shared_ptr<EventLoop> loop);
  ~Impl();

  /// Cancels everything that is under way; later calls fail. From any thread.
  void close();
  /// Stopped by close().
  std::stop_token closing() const { return closing_.get_token(); }

  struct Answer {
    detail::HttpHead head;
    std::shared_ptr<detail::HttpExchange> exchange;
  };

  /// Sends the request, again where the server asks to come back later, until an answer of success
  /// has begun. Throws api::StatusError or TransportError. To be called on a strand, `control`
  /// being of the same.
  Awaitable<Answer> open(const detail::Request& request, detail::CallControl& control);

  /// open() for objects of a resource, in the encoding that is wanted of it. A server that does not
  /// know protobuf is asked for JSON.
  struct ObjectsAnswer {
    Answer answer;
    detail::Encoding encoding;  // of the body
  };
  Awaitable<ObjectsAnswer> open_objects(detail::Request& request, const api::Resource& resource,
                                        ContentType type, std::string_view metadata_kind,
                                        detail::CallControl& control);

  /// The whole body of the answer. Throws api::DecodeError if it is beyond all measure.
  Awaitable<std::string> fetch(const detail::Request& request, detail::CallControl& control);

  /// The object that is the body of the answer.
  Awaitable<api::Object> fetch_object(const detail::Request& request, detail::CallControl& control);

  /// The same for a resource, in the encoding that is wanted of it; nothing is lost.
  Awaitable<api::Object> get_object(detail::Request request, const api::Resource& resource,
                                    detail::CallControl& control);

  detail::Encodings& encodings() { return encodings_; }
  const Config& config() const { return config_; }
  EventLoop& loop() const { return *loop_; }
  const std::shared_ptr<EventLoop>& shared_loop() const { return loop_; }

 private:
  Awaitable<api::Object> read_object(const detail::Request& request, Answer answer,
                                     api::UnknownFields& unknown);
  Awaitable<std::shared_ptr<const Credential>> credential(detail::CallControl& control);
  detail::HttpRequest prepare(const detail::Request& request, const Credential& credential,
                              detail::CallControl& control);
  /// Where the Config limits the requests.
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
  std::once_flag helper_once_;
  std::unique_ptr<boost::asio::thread_pool> helper_;  // for credential plugins, which block
};

}  // namespace lookout::rest
