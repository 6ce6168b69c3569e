// Server: listens and serves connections on a few threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/base/http/connection.h"
#include "lookout/base/pinned.h"

namespace lookout::http {

struct ServerOptions {
  /// False: no socket; connections come from connect() only.
  bool listens = true;
  /// An unspecified one ("0.0.0.0", "::") means all addresses of the machine, IPv4 and IPv6.
  LOOKOUT_OPTION std::string address = "127.0.0.1";
  /// 0: any free port.
  std::uint16_t port = 0;
  unsigned threads = 2;
  std::size_t max_connections = 20000;
  /// The limit for one client, as defined by counted_address(); further connections are closed. 0:
  /// no limit.
  std::size_t max_connections_per_address = 0;
  Limits limits = {};
  /// Null: no TLS.
  LOOKOUT_OPTION std::shared_ptr<boost::asio::ssl::context> tls = nullptr;
};

/// The address to listen on for a host. An address ("::1", "[::1]") stays as it is. A name becomes its
/// first IPv4 address, or else its first address, as in Go's net.Listen. An empty host becomes
/// "0.0.0.0". May block on a DNS lookup. Throws lookout::Error if there is no such host.
std::string address_of_host(std::string host);

/// The host of a URL for clients on the same machine: "127.0.0.1" if the server listens on all
/// addresses; IPv6 addresses in brackets ("[::1]").
std::string host_for_clients(const std::string& address);

/// The identity under which a client's connections are counted: its address, or with IPv6 its /64
/// network, because one host may use all of its addresses.
std::string counted_address(const std::string& address);

/// Listens, and serves each connection on one of its threads.
class Server : public base::Pinned {
 public:
  /// Listens immediately, but serves only after start(). Throws lookout::Error if it cannot bind
  /// the address.
  Server(ServerOptions options, Handler handler, ErrorBody error_body, HeadCheck check_head = {});
  ~Server();

  void start();
  std::uint16_t port() const;
  std::size_t connections() const;
  /// Serves a connection that does not come from the socket. `make` is called with its executor on
  /// the thread that will serve it. Does nothing after stop(). Safe to call from any thread.
  void connect(
      std::function<std::unique_ptr<Transport>(boost::asio::any_io_executor executor)> make);
  /// An executor of one of the threads, for use by the application.
  boost::asio::any_io_executor executor();

  /// Stops accepting connections and lets running requests finish; returns true if they did within
  /// `time`. Slow clients are still disconnected; those that have not sent a complete request head,
  /// after Limits::drain_header_timeout. May be called again. The threads keep running. Must not be
  /// called on one of them.
  bool drain(std::chrono::milliseconds time);
  /// Closes the remaining connections and waits for them to end (5 s at most). The threads keep
  /// running. Must not be called on one of them.
  void cut_off();

  /// Drains for up to `grace`, closes the remaining connections, and joins the threads. Must not be
  /// called on one of them.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::http
