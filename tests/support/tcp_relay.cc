#include "tests/support/tcp_relay.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "tests/support/bounded_wait.h"

namespace lookout::test {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {
tcp::endpoint loopback(int port) {
  return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}
}  // namespace

/// Everything happens on its thread.
class TcpRelay::Impl {
 public:
  explicit Impl(int to) : to_(loopback(to)), acceptor_(context_, loopback(0)) {
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~Impl() { context_.stop(); }

  int port() const { return acceptor_.local_endpoint().port(); }

  void set(bool cut, bool frozen) {
    std::promise<void> done;
    asio::post(context_, [&] {
      cut_ = cut;
      frozen_ = frozen;
      if (cut) {
        for (const auto& pair : pairs_) pair->close();
      }
      done.set_value();
    });
    wait_for(done.get_future());
  }

 private:
  struct Pair {
    explicit Pair(tcp::socket client_)
        : client(std::move(client_)), server(client.get_executor()) {}
    void close() {
      boost::system::error_code ignored;
      client.close(ignored);
      server.close(ignored);
    }
    tcp::socket client;
    tcp::socket server;
  };

  asio::awaitable<void> accept() {
    for (;;) {
      auto pair = std::make_shared<Pair>(co_await acceptor_.async_accept(asio::use_awaitable));
      if (cut_) continue;
      pairs_.push_back(pair);
      asio::co_spawn(context_, serve(pair), [this, pair](std::exception_ptr) {
        pair->close();
        std::erase(pairs_, pair);
      });
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Pair> pair) {
    co_await pair->server.async_connect(to_, asio::use_awaitable);
    asio::co_spawn(context_, copy(pair->server, pair->client),
                   [pair](std::exception_ptr) { pair->close(); });
    co_await copy(pair->client, pair->server);
  }

  /// The pair of the two sockets must live so long.
  asio::awaitable<void> copy(tcp::socket& from, tcp::socket& to) {
    std::array<char, 16384> buffer;
    asio::steady_timer pause(context_);
    for (;;) {
      const std::size_t size =
          co_await from.async_read_some(asio::buffer(buffer), asio::use_awaitable);
      while (frozen_) {
        pause.expires_after(std::chrono::milliseconds(1));
        co_await pause.async_wait(asio::use_awaitable);
      }
      co_await asio::async_write(to, asio::buffer(buffer, size), asio::use_awaitable);
    }
  }

  const tcp::endpoint to_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  bool cut_ = false;
  bool frozen_ = false;
  std::vector<std::shared_ptr<Pair>> pairs_;
  std::jthread thread_;
};

TcpRelay::TcpRelay(int to) : impl_(std::make_unique<Impl>(to)) {}
TcpRelay::~TcpRelay() = default;
int TcpRelay::port() const { return impl_->port(); }
void TcpRelay::cut() { impl_->set(true, false); }
void TcpRelay::freeze() { impl_->set(false, true); }
void TcpRelay::mend() { impl_->set(false, false); }

}  // namespace lookout::test
