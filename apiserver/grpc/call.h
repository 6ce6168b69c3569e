// Calls of gRPC methods.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/grpc/headers.h"
#include "lookout/base/async_event.h"
#include "lookout/rest/credentials.h"
#include "lookout/rest/error.h"

namespace lookout::apiserver::grpc {

/// The status of a finished call, as the server sent it. Code 0 is success.
struct Status {
  int code = 0;
  std::string message = {};
};

struct CallRequest {
  /// "/etcdserverpb.KV/Range"
  std::string path;
  Headers metadata = {};
  /// The first message; the only one, unless the call is streaming.
  std::string message;
  bool streaming = false;
  /// The client certificate; null: none. Calls with different ones do not share a connection.
  std::shared_ptr<const rest::Credential> certificate = nullptr;
  /// For the whole call; also sent to the server.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Each message is preceded by five bytes: a flag, and the length (big-endian).
constexpr std::size_t kMessageHead = 5;
std::string framed(std::string_view message);

class Connection;

/// The state of a call. The connection writes the response on its strand; a coroutine reads it on
/// another executor, which may end before the call. Functions for both sides are thread-safe.
class CallState {
 public:
  CallState(CallRequest asked, std::string name, boost::asio::any_io_executor reader)
      : request(std::move(asked)), what(std::move(name)), event_(std::move(reader)) {}

  const CallRequest request;
  /// "http://host/etcdserverpb.KV/Range", for messages.
  const std::string what;

  // --- for the connection, on its strand

  std::weak_ptr<Connection> connection = {};
  std::uint32_t stream = 0;  // 0: the call has no stream
  /// The request was passed to the connection.
  void opened();
  void receive(std::string_view bytes);
  /// Ends the call with a status or an error. Only the first call has an effect.
  void finish(Status status);
  void fail(rest::TransportError::Kind kind, std::string_view why);
  bool is_cancelled() const;

  // --- for the reader

  struct Taken {
    bool end = false;
    /// Bytes that the reader has consumed but not yet reported to the connection.
    std::size_t consumed = 0;
  };
  /// Moves the bytes that have been received into `bytes`; it is empty if there are none. Throws
  /// TransportError.
  Taken take(std::string& bytes);
  Awaitable<void> wait(std::chrono::steady_clock::time_point until) { return event_->wait(until); }
  /// False if the call has ended or has been cancelled before.
  bool cancel();
  Status status() const;
  /// Call it last; afterwards the reader's executor may end.
  void leave();
  /// The error of a call whose deadline has passed.
  rest::TransportError timeout() const;

 private:
  /// A reader waits only while the buffer is empty. Call with the mutex locked, so that its executor
  /// cannot end.
  void ring_reader() {
    if (event_ && buffer_.empty()) event_->ring_next();
  }

  mutable std::mutex mutex_;
  std::optional<AsyncEvent>
      event_;  // guarded by mutex_, as are the members below; only leave() resets it
  std::string buffer_;
  std::size_t consumed_ = 0;
  bool opened_ = false;
  bool finished_ = false;
  bool cancelled_ = false;
  std::optional<rest::TransportError> error_;
  Status status_;
};

}  // namespace lookout::apiserver::grpc
