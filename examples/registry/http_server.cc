#include "examples/registry/http_server.h"

#include <poll.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <thread>
#include <utility>

namespace example {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

/// Waits until the socket is readable; false if a stop is requested first.
bool wait_readable(int socket, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd waiting{socket, POLLIN, 0};
    if (::poll(&waiting, 1, 20) > 0) return true;
  }
  return false;
}

}  // namespace

HttpServer::HttpServer(unsigned short port)
    : acceptor_(context_, tcp::endpoint(tcp::v4(), port)),
      port_(acceptor_.local_endpoint().port()) {}

void HttpServer::serve(const std::stop_token& stop,
                       const std::function<std::string(const std::string& path)>& handler) {
  std::list<std::jthread> connections;
  while (wait_readable(acceptor_.native_handle(), stop)) {
    boost::system::error_code error;
    tcp::socket socket = acceptor_.accept(error);
    if (error) continue;
    connections.emplace_back([this, &stop, &handler, socket = std::move(socket)]() mutable {
      converse(std::move(socket), stop, handler);
    });
  }
}

void HttpServer::converse(tcp::socket socket, const std::stop_token& stop,
                          const std::function<std::string(const std::string& path)>& handler) {
  boost::beast::flat_buffer buffer;
  bool keep = true;
  while (keep && (buffer.size() > 0 || wait_readable(socket.native_handle(), stop))) {
    boost::system::error_code error;
    http::request<http::string_body> request;
    ++in_flight_;
    http::read(socket, buffer, request, error);
    if (!error) {
      http::response<http::string_body> response(http::status::ok, request.version());
      keep = request.keep_alive() && !stop.stop_requested();
      response.keep_alive(keep);
      response.body() = handler(std::string(request.target()));
      response.prepare_payload();
      http::write(socket, response, error);
    }
    --in_flight_;
    if (error) return;
  }
}

}  // namespace example
