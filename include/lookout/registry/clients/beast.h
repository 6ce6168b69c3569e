// HTTP with Boost.Beast for Balancer::async_call(). Header-only: link lookout::registry_beast.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/event_loop.h"
#include "lookout/registry/call.h"
#include "lookout/registry/clients/http.h"
#include "lookout/registry/endpoint.h"

namespace lookout::registry {

namespace detail {

/// A running lookup of a name.
struct NameLookup {
  explicit NameLookup(const boost::asio::any_io_executor& executor)
      : resolver(executor), over(executor) {}

  boost::asio::ip::tcp::resolver resolver;
  boost::asio::steady_timer over;  // ends when the lookup has ended, or its time
  bool ended = false;
  boost::system::error_code error;
  std::vector<boost::asio::ip::tcp::endpoint> addresses;
};

/// Asio looks up names one after the other, and a lookup cannot be cancelled. So an address is not
/// looked up, and a call whose time is over does not wait for its lookup.
inline Awaitable<std::vector<boost::asio::ip::tcp::endpoint>> addresses_of(
    std::string host, std::uint16_t port, std::chrono::milliseconds time) {
  namespace asio = boost::asio;
  using Addresses = std::vector<asio::ip::tcp::endpoint>;
  constexpr std::chrono::hours kLongest{24};
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) co_return Addresses(1, asio::ip::tcp::endpoint(address, port));
  const auto lookup = std::make_shared<NameLookup>(co_await asio::this_coro::executor);
  lookup->over.expires_after(std::min<std::chrono::milliseconds>(time, kLongest));
  lookup->resolver.async_resolve(
      host, std::to_string(port),
      [lookup](const boost::system::error_code& why, const auto& resolved) {
        lookup->ended = true;
        lookup->error = why;
        lookup->addresses.assign(resolved.begin(), resolved.end());
        lookup->over.cancel();
      });
  co_await lookup->over.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (lookup->ended) {
    error = lookup->error;
  } else if (!error) {
    error = asio::error::timed_out;
  }
  if (error) throw boost::system::system_error(error);
  co_return std::move(lookup->addresses);
}

/// Connects to the first address that accepts. Each attempt gets an equal share of the remaining
/// time, so that an address that does not answer leaves time for the others.
inline Awaitable<boost::beast::tcp_stream> connect_to_any(
    std::vector<boost::asio::ip::tcp::endpoint> addresses, std::chrono::milliseconds time) {
  namespace asio = boost::asio;
  using std::chrono::milliseconds;
  // For calls without a limit: TCP repeats an unanswered SYN after one second.
  constexpr milliseconds kLongest{3'000};
  const auto executor = co_await asio::this_coro::executor;
  const auto begun = std::chrono::steady_clock::now();
  boost::system::error_code error = asio::error::host_not_found;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    boost::beast::tcp_stream stream(executor);
    const auto others = static_cast<milliseconds::rep>(addresses.size() - i - 1);
    if (others > 0) {
      const auto passed =
          std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
      const milliseconds left = std::max(time - passed, milliseconds(0));
      stream.expires_after(std::min(left / (others + 1), kLongest));
    }
    co_await stream.async_connect(addresses[i], asio::redirect_error(asio::use_awaitable, error));
    stream.expires_never();
    if (!error) co_return stream;
    if (error == asio::error::operation_aborted) break;
  }
  throw boost::system::system_error(error);
}

inline Awaitable<HttpResponse> send_with_beast(Endpoint endpoint, HttpRequest request,
                                               std::chrono::milliseconds time) {
  namespace asio = boost::asio;
  namespace http = boost::beast::http;
  if (endpoint.secure()) throw Error(endpoint.text() + " requires TLS");
  const auto begun = std::chrono::steady_clock::now();
  std::vector<asio::ip::tcp::endpoint> addresses =
      co_await addresses_of(std::string(endpoint.host()), endpoint.port(), time);
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  boost::beast::tcp_stream stream =
      co_await detail::connect_to_any(std::move(addresses), time - passed);

  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(request.path.starts_with('/') ? request.path : "/" + request.path);
  for (const auto& [name, value] : request.headers) message.insert(name, value);
  if (message.find(http::field::host) == message.end()) {
    message.set(http::field::host, std::string(endpoint.authority()));
  }
  message.body() = std::move(request.body);
  message.keep_alive(false);
  message.prepare_payload();
  co_await http::async_write(stream, message, asio::use_awaitable);

  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  do {
    http::response_parser<http::string_body> parser;
    parser.skip(message.method() == http::verb::head);  // has a length, but no body
    co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
    response = parser.release();
    // 103 and the like come before the response.
  } while (response.result_int() < 200 && response.result() != http::status::switching_protocols);
  HttpResponse out;
  out.status = static_cast<long>(response.result_int());
  out.body = std::move(response.body());
  co_return out;
}

}  // namespace detail

/// A request on its own connection, without TLS. The call cancels it when its time is over:
///
///     const auto get = [](const registry::Endpoint& e, const registry::Attempt& attempt) {
///       registry::HttpRequest hello{.path = "/hello"};
///       return registry::beast_request(e, std::move(hello), attempt);
///     };
///     auto answer = co_await web.async_call(policy, get, registry::judge_http);
///
/// If the host is a name with several addresses, they are tried in turn, within the time of the
/// attempt. Throws boost::system::system_error if there is no response, or if its body exceeds
/// Beast's limit (8 MB), and Error for an endpoint that requires TLS (Endpoint::secure).
inline Awaitable<HttpResponse> beast_request(Endpoint endpoint, HttpRequest request,
                                             const Attempt& attempt) {
  return detail::send_with_beast(std::move(endpoint), std::move(request), attempt.time);
}
/// Without a limit of its own.
inline Awaitable<HttpResponse> beast_request(Endpoint endpoint, HttpRequest request) {
  return detail::send_with_beast(std::move(endpoint), std::move(request),
                                 std::chrono::milliseconds::max());
}

}  // namespace lookout::registry
