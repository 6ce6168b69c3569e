// Noticing servers that keep their connections and do not answer.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "rest/curl_multi.h"

namespace lookout::rest::detail {

/// The system acknowledges what is sent to a process that is stopped, and a proxy what is sent to a
/// server that is gone: only an answer proves that somebody is there. When nothing has come over a
/// connection that somebody waits for, this asks the server for something small. Over HTTP/2 the
/// question takes the same connection, over HTTP/1.1 another one, because the first is taken. If no
/// answer comes, all connections over which nothing has come since are shut down, and what waits
/// for them fails.
///
/// A connection is known by its local port, which is what libcurl tells of it. Everything happens
/// on the strand.
class ConnectionMonitor : public std::enable_shared_from_this<ConnectionMonitor> {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  using Port = std::uint16_t;

  struct Limits {
    std::chrono::milliseconds probe_after{0};    ///< of silence; 0: never
    std::chrono::milliseconds probe_timeout{0};  ///< for the answer
    /// A watch that is silent for so long ends although the server answers elsewhere; 0: never.
    /// Nothing keeps other streams from being silent: they have no bookmarks.
    std::chrono::milliseconds stream_silence{0};
  };
  /// A transfer that is under way.
  struct Transfer {
    Port port = 0;  ///< 0: not connected
    TimePoint begun;
    TimePoint heard;  ///< when something last came; TimePoint::min() if nothing has
    bool watch = false;
  };
  /// The services of its owner.
  struct Owner {
    /// Calls the function with all transfers that could get something, but for the probe.
    std::function<void(const std::function<void(const Transfer&)>&)> each_transfer;
    /// Asks the server; probe_ended() says what came of it. False if that cannot be done now.
    std::function<bool()> send_probe;
    /// The connection is being closed: transfers on it fail.
    std::function<void(Port, std::string_view why)> lost;
  };

  static std::shared_ptr<ConnectionMonitor> create(const CurlMulti::Strand& strand, Limits limits,
                                                   Owner owner);

  /// For libcurl's sockets.
  void opened(curl_socket_t fd);
  void closed(curl_socket_t fd);

  /// The socket of a connection, or CURL_SOCKET_BAD.
  curl_socket_t socket_of(Port port);

  /// A transfer begins.
  void begun();
  /// A transfer has come to an end.
  void ended(const Transfer& transfer);
  void probe_ended(bool answered);
  /// The owner goes away.
  void stop();

 private:
  struct Connection {
    TimePoint heard = TimePoint::min();
    TimePoint asked = TimePoint::max();  // by what has ended since without having heard anything
    TimePoint silent_since = TimePoint::max();  // of the last look
    bool watch = false;
  };

  struct Socket {
    TimePoint opened;
    Port port = 0;  // once that is known
  };

  ConnectionMonitor(const CurlMulti::Strand& strand, Limits limits, Owner owner);
  static Port port_of(curl_socket_t fd, Socket& socket);
  void look();
  void note(const Transfer& transfer);
  void act(TimePoint now);
  void wake_at(TimePoint when);
  void lose(Port port, std::string_view why);

  const Limits limits_;
  Owner owner_;
  boost::asio::steady_timer timer_;
  bool armed_ = false;
  bool stopped_ = false;
  bool probing_ = false;
  TimePoint probe_begun_;
  TimePoint answered_ = TimePoint::min();  // the last probe
  std::unordered_map<curl_socket_t, Socket> sockets_;
  std::unordered_map<Port, Connection> connections_;
};

}  // namespace lookout::rest::detail
