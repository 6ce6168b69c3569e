// The shared parts of relays between clients and servers.
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

/// A client's connection, and the corresponding one to the server.
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

/// Forwards data in one direction until the connection ends; pauses while `is_held()` is true. Both
/// sockets must outlive it.
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

/// Connects to the server and forwards data in both directions.
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
