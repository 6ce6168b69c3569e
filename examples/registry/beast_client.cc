#include "examples/registry/beast_client.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace example {

namespace asio = boost::asio;
namespace http = boost::beast::http;

lookout::Awaitable<Response> beast_get(const lookout::registry::Endpoint& endpoint,
                                       std::string path) {
  const std::string host(endpoint.host());
  const std::string port = std::to_string(endpoint.port());
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto addresses = co_await resolver.async_resolve(host, port, asio::use_awaitable);
  boost::beast::tcp_stream stream(executor);
  co_await stream.async_connect(addresses, asio::use_awaitable);

  http::request<http::empty_body> request(http::verb::get, path, 11);
  request.set(http::field::host, std::string(endpoint.authority()));
  request.keep_alive(false);
  co_await http::async_write(stream, request, asio::use_awaitable);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  co_await http::async_read(stream, buffer, response, asio::use_awaitable);
  Response out;
  out.status = static_cast<long>(response.result_int());
  out.body = response.body();
  co_return out;
}

}  // namespace example
