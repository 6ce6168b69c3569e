// A small HTTP server for the example: Boost.Beast with a thread per connection.
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
  /// Starts listening; port 0: any free port.
  explicit HttpServer(unsigned short port);

  unsigned short port() const { return port_; }
  /// The number of requests being served.
  std::size_t in_flight() const { return in_flight_; }
  /// Responds to each request with handler(path). Returns after a stop is requested and the last
  /// connection has ended.
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
