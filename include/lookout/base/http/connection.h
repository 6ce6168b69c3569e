// Connection: serves HTTP/1.1 on one connection.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/base/async_event.h"
#include "lookout/base/clock.h"
#include "lookout/base/http/message.h"
#include "lookout/base/http/transport.h"

namespace lookout::http {

/// Limits on the time and memory that one client may use.
struct Limits {
  std::size_t max_header_bytes = 64u << 10;
  std::size_t max_body_bytes = 3u << 20;
  /// For the TLS handshake, and for the head of a request, counted from its first byte.
  std::chrono::milliseconds header_timeout{15000};
  /// Replaces header_timeout once the server drains, and applies also to clients that have sent
  /// nothing yet. Go's Server.Shutdown closes such connections after 5 s.
  std::chrono::milliseconds drain_header_timeout{5000};
  std::chrono::milliseconds body_timeout{60000};
  /// Between two requests.
  std::chrono::milliseconds idle_timeout{180000};
  /// For the client to read each piece of an answer.
  std::chrono::milliseconds write_timeout{60000};
};

/// Answers a request. It should not throw; the server answers 500 to an exception.
using Handler = std::function<Awaitable<Response>(Request request)>;

/// Makes the answer to a malformed request.
using ErrorBody = std::function<Response(int status, const std::string& message)>;

/// Checks the head of a request before the server reads its body. Returns an answer to refuse the
/// request without reading the body. Must not throw. May be empty.
using HeadCheck = std::function<std::optional<Response>(const Request& head)>;

/// Reads requests one after another and answers them in order. Lives until its coroutines end. Runs
/// on the executor, which is one thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(boost::asio::any_io_executor executor, std::unique_ptr<Transport> transport,
             const Limits& limits, const Handler& handler, const ErrorBody& error_body,
             const HeadCheck& check_head);

  /// Calls `done` when the connection has ended completely.
  void start(std::function<void()> done);
  /// Called periodically: closes the connection if the client is too slow.
  void check(Clock::time_point now);
  /// Finishes the current request, ends open-ended answers immediately, and closes the connection.
  /// A request counts once its head is complete; see Limits::drain_header_timeout.
  void drain();
  void close();

 private:
  /// The outcome of waiting for a request.
  struct Incoming {
    enum class Kind { kRequest, kNothing, kBroken };
    Kind kind = Kind::kNothing;
    Request request = {};
    /// The answer to a broken request.
    Response failure = {};
    /// The form of the answer that the client supports.
    bool keep_alive = false;
    bool chunked = true;
  };

  Awaitable<void> run();
  Awaitable<void> read_input();
  Awaitable<void> serve();
  Awaitable<void> linger();
  Awaitable<Incoming> read_request();
  Awaitable<bool> wait_for_input();
  bool write_now(std::vector<boost::asio::const_buffer>& buffers);
  Awaitable<void> write_rest(std::span<const boost::asio::const_buffer> buffers);
  Awaitable<void> answer(Response response, bool head_only, bool chunked);
  std::optional<Response> check_head(const Request& head, unsigned version) const;
  Awaitable<void> answer_with_stream(Response& response, std::string head, bool chunked);
  void deadline_in(std::chrono::milliseconds time) {
    deadline_ = Clock::now() + lookout::Clock::limited(time);
  }
  void header_deadline();
  void no_deadline() { deadline_ = Clock::time_point::max(); }

  const std::unique_ptr<Transport> transport_;
  const Limits& limits_;
  const Handler& handler_;
  const ErrorBody& error_body_;
  const HeadCheck& check_head_;
  AsyncEvent bell_;         // rung on more input and at its end
  AsyncEvent reader_bell_;  // rung when there is room for more input
  boost::asio::any_io_executor executor_;

  std::string input_;
  bool input_ended_ = false;
  std::stop_source gone_;
  bool draining_ = false;
  bool keep_alive_ = true;
  bool closed_ = false;
  bool idle_ = true;
  bool has_head_ = false;  // of the current request
  bool writing_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
  BodyStream* stream_ = nullptr;
  int coroutines_ = 0;
  std::function<void()> done_;
};

}  // namespace lookout::http
