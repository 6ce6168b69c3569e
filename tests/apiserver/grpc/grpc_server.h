// A gRPC server without TLS, controlled by a test's script.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "apiserver/grpc/http2_session.h"

namespace lookout::test {

class GrpcConnection;

/// The server's side of a call. Its script runs on its own thread; functions may block until the client
/// acts, and return when the call or the server ends.
class GrpcCall {
 public:
  GrpcCall(GrpcConnection& connection, apiserver::grpc::StreamId id,
           apiserver::grpc::Headers headers)
      : connection_(connection), id_(id), headers_(std::move(headers)) {}

  /// "/etcdserverpb.KV/Range"
  std::string path() const { return header(":path"); }
  std::string header(std::string_view name) const;
  /// The client's next message; nullopt if there are no more.
  std::optional<std::string> message();

  /// False if the client has disconnected. Waits until the client's window is open for all of it.
  bool send(std::string_view message);
  /// Bytes of a body, which need not be whole messages.
  bool send_raw(std::string_view bytes);
  /// Ends the call with a status.
  void end(int code = 0, std::string_view message = {});
  /// Ends it without one.
  void end_body();
  /// Responds with only these headers.
  void answer(const apiserver::grpc::Headers& headers);
  void reset(apiserver::grpc::Http2Error why);
  /// Ends the connection with a RST.
  void reset_connection();
  /// Sends a GOAWAY with the last processed call.
  void go_away(apiserver::grpc::StreamId last);
  void wait_for_end();

  apiserver::grpc::StreamId id() const { return id_; }
  std::size_t written() const { return written_; }
  /// Whether the last send has waited for a tenth of a second.
  bool stalled() const { return stalled_; }

 private:
  friend class GrpcConnection;

  void begin_answer();  // with the connection's mutex held

  GrpcConnection& connection_;
  const apiserver::grpc::StreamId id_;
  const apiserver::grpc::Headers headers_;
  std::string body_;  // guarded by the connection's mutex, as are those below
  std::deque<std::string> messages_;
  bool client_ended_ = false;
  bool gone_ = false;
  bool answered_ = false;
  bool ended_ = false;
  std::atomic<std::size_t> written_{0};
  std::atomic<bool> stalled_{false};
};

/// Listens on 127.0.0.1 and runs the script for every call, until it goes out of scope.
class GrpcServer {
 public:
  using Script = std::function<void(GrpcCall&)>;

  struct Options {
    /// For each connection; 0: as many as a client likes.
    std::uint32_t max_streams = 0;
  };

  explicit GrpcServer(Script script) : GrpcServer(std::move(script), Options()) {}
  GrpcServer(Script script, Options options);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  std::string url() const;
  /// The number of accepted connections, and of open calls.
  int connections() const { return accepted_; }
  int open_calls() const { return open_calls_; }

 private:
  friend class GrpcConnection;
  void accept_loop();

  const Script script_;
  const Options options_;
  int listen_fd_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_{0};
  std::atomic<int> open_calls_{0};
  std::mutex mutex_;
  bool stopping_ = false;  // guarded by mutex_, as are those below
  std::vector<std::unique_ptr<GrpcConnection>> connections_;
  std::thread acceptor_;
};

}  // namespace lookout::test
