// What relays between a client and a server have in common.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "tests/support/bounded_wait.h"

namespace lookout::test {

inline boost::asio::ip::tcp::endpoint loopback(int port) {
  return {boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}

/// A connection that a client has made, and the one to the server behind it.
struct RelayedConnection {
  explicit RelayedConnection(boost::asio::ip::tcp::socket accepted)
      : client(std::move(accepted)), server(client.get_executor()) {}
  void close() {
    boost::system::error_code ignored;
    client.close(ignored);
    server.close(ignored);
  }
  boost::asio::ip::tcp::socket client;
  boost::asio::ip::tcp::socket server;
};

/// Passes on in one direction until the connection ends, but nothing while `is_held` says so. Both
/// sockets must live so long.
inline boost::asio::awaitable<void> pass_on(boost::asio::ip::tcp::socket& from,
                                            boost::asio::ip::tcp::socket& to,
                                            std::function<bool()> is_held) {
  std::array<char, 16384> buffer;
  boost::asio::steady_timer pause(from.get_executor());
  for (;;) {
    const std::size_t size =
        co_await from.async_read_some(boost::asio::buffer(buffer), boost::asio::use_awaitable);
    while (is_held()) {
      pause.expires_after(std::chrono::milliseconds(1));
      co_await pause.async_wait(boost::asio::use_awaitable);
    }
    co_await boost::asio::async_write(to, boost::asio::buffer(buffer, size),
                                      boost::asio::use_awaitable);
  }
}

/// Connects to the server and passes on in both directions.
inline boost::asio::awaitable<void> relay(std::shared_ptr<RelayedConnection> connection,
                                          boost::asio::ip::tcp::endpoint server,
                                          std::function<bool()> is_held) {
  co_await connection->server.async_connect(server, boost::asio::use_awaitable);
  boost::asio::co_spawn(connection->client.get_executor(),
                        pass_on(connection->server, connection->client, is_held),
                        [connection](std::exception_ptr) { connection->close(); });
  co_await pass_on(connection->client, connection->server, is_held);
}

/// Returns when the context's thread has called the function.
inline void call_on(boost::asio::io_context& context, const std::function<void()>& function) {
  std::promise<void> done;
  boost::asio::post(context, [&] {
    function();
    done.set_value();
  });
  wait_for(done.get_future());
}

}  // namespace lookout::test
