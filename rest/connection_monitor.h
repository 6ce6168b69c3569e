// Detects servers that keep connections open but do not respond.
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

/// The kernel acknowledges data for a stopped process, and a proxy for a failed server, so only a
/// response proves that the server is alive. When a connection with waiting transfers is silent, the
/// monitor sends a small request, the probe: with HTTP/2 on the same connection, with HTTP/1.1 on
/// another one. If there is no response, all connections that have been silent since are shut down,
/// and their transfers fail.
///
/// Connections are identified by their local port, which libcurl reports. Everything runs on the
/// strand.
class ConnectionMonitor : public std::enable_shared_from_this<ConnectionMonitor> {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  using Port = std::uint16_t;

  struct Limits {
    std::chrono::milliseconds probe_after{0};    ///< of silence; 0: never
    std::chrono::milliseconds probe_timeout{0};  ///< for the response
        /// A watch that is silent for this long ends even if the server responds elsewhere; 0: never.
        /// Does not apply to other streams: without bookmarks, they may be silent.
    std::chrono::milliseconds stream_silence{0};
  };
  /// A running transfer.
  struct Transfer {
    Port port = 0;  ///< 0: not connected
    TimePoint begun;
    TimePoint heard;  ///< when data last arrived; TimePoint::min() if none has
    bool watch = false;
  };
  /// Callbacks to the owner.
  struct Owner {
    /// Calls the function with all transfers that can receive data, except the probe.
    std::function<void(const std::function<void(const Transfer&)>&)> each_transfer;
    /// Sends a probe; probe_ended() reports the result. False if that is not possible now.
    std::function<bool()> send_probe;
    /// The connection is being closed; its transfers fail.
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
  /// A transfer has ended.
  void ended(const Transfer& transfer);
  void probe_ended(bool answered);
  /// Call before the owner is destroyed.
  void stop();

 private:
  struct Connection {
    TimePoint heard = TimePoint::min();
    TimePoint asked = TimePoint::max();  // since when transfers that ended without data had waited
    TimePoint silent_since = TimePoint::max();  // at the last check
    bool watch = false;
  };

  struct Socket {
    TimePoint opened;
    Port port = 0;  // once known
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
  TimePoint answered_ = TimePoint::min();  // when the last probe was answered
  std::unordered_map<curl_socket_t, Socket> sockets_;
  std::unordered_map<Port, Connection> connections_;
};

}  // namespace lookout::rest::detail
