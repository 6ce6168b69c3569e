// Threads, listening, and the connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "apiserver/http/connection.h"

namespace lookout::apiserver::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  /// 0: any that is free.
  std::uint16_t port = 0;
  unsigned threads = 2;
  std::size_t max_connections = 20000;
  Limits limits = {};
  /// Null: without TLS.
  std::shared_ptr<boost::asio::ssl::context> tls = nullptr;
};

/// Listens, and serves each connection on one of a few threads.
class Server {
 public:
  /// Listens at once, but serves only after start(). Throws lookout::Error if the address cannot be
  /// had.
  Server(ServerOptions options, Handler handler, ErrorBody error_body);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  std::uint16_t port() const;
  std::size_t connections() const;
  /// An executor of one of the threads, for work of the application.
  boost::asio::any_io_executor executor();

  /// Takes no new connections, lets requests come to their end for up to `grace`, cuts off what is
  /// left, and joins the threads. Not to be called on one of them.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::http
