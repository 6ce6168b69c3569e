// Threads, listening, and the connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/base/http/connection.h"

namespace lookout::http {

struct ServerOptions {
  LOOKOUT_OPTION std::string address = "127.0.0.1";
  /// 0: any that is free.
  std::uint16_t port = 0;
  unsigned threads = 2;
  std::size_t max_connections = 20000;
  Limits limits = {};
  /// Null: without TLS.
  LOOKOUT_OPTION std::shared_ptr<boost::asio::ssl::context> tls = nullptr;
};

/// The host of a URL under which clients on this machine reach a server that listens on an address:
/// "127.0.0.1" for all of them, "[::1]" with the brackets.
std::string host_for_clients(const std::string& address);

/// Listens, and serves each connection on one of a few threads.
class Server {
 public:
  /// Listens at once, but serves only after start(). Throws lookout::Error if the address cannot be
  /// had.
  Server(ServerOptions options, Handler handler, ErrorBody error_body, HeadCheck check_head = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  std::uint16_t port() const;
  std::size_t connections() const;
  /// An executor of one of the threads, for work of the application.
  boost::asio::any_io_executor executor();

  /// Takes no new connections from now on and lets requests come to their end; whether they have
  /// within `time`. Clients that take too long are cut off as ever. May be called again. The threads
  /// go on. Not to be called on one of them.
  bool drain(std::chrono::milliseconds time);
  /// Closes the connections that are left, and waits until they are gone (5 s at most). The threads
  /// go on. Not to be called on one of them.
  void cut_off();

  /// Drains for up to `grace`, cuts off what is left, and joins the threads. Not to be called on one
  /// of them.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::http
