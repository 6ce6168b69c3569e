// A small HTTP server for the example: Boost.Beast, a thread for each connection.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

namespace example {

class HttpServer {
 public:
  /// Listens from here on; port 0 takes a free one.
  explicit HttpServer(unsigned short port);

  unsigned short port() const { return port_; }
  /// How many requests are being served.
  std::size_t in_flight() const { return in_flight_; }
  /// Answers each request with what `handler` makes of its path. Returns when the stop is requested
  /// and the last connection has ended.
  void serve(const std::stop_token& stop,
             const std::function<std::string(const std::string& path)>& handler);

 private:
  void converse(boost::asio::ip::tcp::socket socket, const std::stop_token& stop,
                const std::function<std::string(const std::string& path)>& handler);

  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const unsigned short port_;
  std::atomic<std::size_t> in_flight_{0};
};

}  // namespace example
