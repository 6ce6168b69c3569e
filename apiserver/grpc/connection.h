// A connection to a gRPC server, with the calls on it.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/grpc/call.h"
#include "apiserver/grpc/dialer.h"
#include "apiserver/grpc/http2_session.h"
#include "apiserver/grpc/server.h"
#include "apiserver/grpc/tls.h"  // Asio

namespace lookout::apiserver::grpc {

/// A TCP connection with HTTP/2, and its calls. Closes itself on errors. Everything runs on the
/// strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  /// Receives calls that waited for the connection and exceed the server's limit of streams.
  using GiveBack = std::function<void(std::shared_ptr<CallState>)>;

  /// `too_many_pings` is called if the server closes the connection because of its pings.
  Connection(Strand strand, const Server& server,
             std::shared_ptr<const rest::Credential> certificate,
             std::shared_ptr<const std::string> ca, GiveBack give_back,
             std::function<void()> too_many_pings);

  void connect();

  bool is_closed() const { return state_ == State::kClosed; }
  /// Whether it accepts another call, now or when it is connected.
  bool can_take() const;
  const std::shared_ptr<const rest::Credential>& certificate() const { return certificate_; }
  const std::shared_ptr<const std::string>& ca() const { return ca_; }

  void begin(std::shared_ptr<CallState> call);
  void send(const CallState& call, std::string_view message);
  void consumed(const CallState& call, std::size_t bytes);
  void cancel(const CallState& call);
  /// Accepts no more calls, and closes when the last one has ended.
  void retire();
  /// Ends all calls.
  void close(rest::TransportError::Kind kind, std::string_view why);

 private:
  /// Ready: the server's settings have arrived.
  enum class State { kConnecting, kReady, kClosed };
  /// A call with a stream.
  struct Running {
    std::shared_ptr<CallState> call;
    bool has_head = false;  // the response's headers have arrived
  };
  using Clock = std::chrono::steady_clock;

  // Connecting.
  void dial(Dialer::Addresses addresses);
  void on_connected();
  void begin_session();

  // Transferring.
  template <class F>
  void with_stream(F f);
  void read();
  void on_read(const boost::system::error_code& error, std::size_t size);
  void write();
  void lose(const boost::system::error_code& error);

  // The session's callbacks.
  Http2Session::Callbacks session_callbacks();
  void on_ready();
  void on_headers(StreamId id, Headers headers, bool end);
  void on_data(StreamId id, std::string_view bytes, bool end);
  void on_reset(StreamId id, Http2Error why);
  void on_going_away(StreamId last, Http2Error why, const std::string& text);

  using Calls = std::unordered_map<StreamId, Running>;
  void open(std::shared_ptr<CallState> call);
  void end(Calls::iterator call, Status status);
  void close_if_done();

  // Silence.
  void watch_silence();
  void wake_at(Clock::time_point when);
  void on_wake();

  const Strand strand_;
  const Server server_;
  const std::shared_ptr<const rest::Credential> certificate_;
  const std::shared_ptr<const std::string> ca_;
  const GiveBack give_back_;
  const std::function<void()> too_many_pings_;
  std::string host_;
  std::string port_;
  std::string authority_;
  bool tls_ = false;
  State state_ = State::kConnecting;
  bool leaving_ = false;
  std::optional<rest::TransportError> end_;  // why it is closed

  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer timer_;
  std::weak_ptr<Dialer> dialer_;
  std::optional<boost::asio::ssl::context> tls_context_;
  std::optional<boost::asio::ip::tcp::socket> plain_;
  std::optional<TlsStream> secure_;
  Http2Session session_;
  std::array<char, 64u << 10> input_;
  std::string output_;  // being written
  bool writing_ = false;

  std::vector<std::shared_ptr<CallState>> waiting_;  // for the connection
  Calls running_;
  // When bytes were last received, or when the first call began after an idle time.
  Clock::time_point heard_ = Clock::now();
  bool pinged_ = false;  // since then
  bool armed_ = false;   // timer_ runs
};

}  // namespace lookout::apiserver::grpc
