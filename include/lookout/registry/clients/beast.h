// HTTP with Boost.Beast for Balancer::async_call(). Header-only: link lookout::registry_beast.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <string>
#include <utility>

#include "lookout/base/event_loop.h"
#include "lookout/registry/clients/http.h"
#include "lookout/registry/endpoint.h"

namespace lookout::registry {

/// A request on its own connection, without TLS. The call cancels it when its time is over:
///
///     const auto get = [](const registry::Endpoint& e) {
///       registry::HttpRequest hello{.path = "/hello"};
///       return registry::beast_request(e, std::move(hello));
///     };
///     auto answer = co_await web.async_call(policy, get, registry::judge_http);
///
/// Throws boost::system::system_error if there is no response, or if its body exceeds Beast's limit
/// (8 MB).
inline Awaitable<HttpResponse> beast_request(Endpoint endpoint, HttpRequest request) {
  namespace asio = boost::asio;
  namespace http = boost::beast::http;
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const std::string host(endpoint.host());
  const std::string port = std::to_string(endpoint.port());
  const auto addresses = co_await resolver.async_resolve(host, port, asio::use_awaitable);
  boost::beast::tcp_stream stream(executor);
  co_await stream.async_connect(addresses, asio::use_awaitable);

  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(request.path);
  message.set(http::field::host, std::string(endpoint.authority()));
  for (const auto& [name, value] : request.headers) message.insert(name, value);
  message.body() = std::move(request.body);
  message.keep_alive(false);
  message.prepare_payload();
  co_await http::async_write(stream, message, asio::use_awaitable);

  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  co_await http::async_read(stream, buffer, response, asio::use_awaitable);
  HttpResponse out;
  out.status = static_cast<long>(response.result_int());
  out.body = std::move(response.body());
  co_return out;
}

}  // namespace lookout::registry
