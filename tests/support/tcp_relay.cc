#include "tests/support/tcp_relay.h"

#include <boost/asio/detached.hpp>
#include <thread>
#include <vector>

#include "tests/support/relayed_connection.h"

namespace lookout::test {
namespace asio = boost::asio;
using asio::ip::tcp;

/// All its work runs on its own thread.
class TcpRelay::Impl {
 public:
  explicit Impl(int to) : to_(loopback(to)), acceptor_(context_, loopback(0)) {
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~Impl() { context_.stop(); }

  int port() const { return acceptor_.local_endpoint().port(); }

  void set(bool cut, bool frozen) {
    call_on(context_, [&] {
      cut_ = cut;
      frozen_ = frozen;
      if (cut) {
        for (const auto& connection : connections_) connection->close();
      }
    });
  }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      auto made =
          std::make_shared<RelayedConnection>(co_await acceptor_.async_accept(asio::use_awaitable));
      if (cut_) continue;
      connections_.push_back(made);
      asio::co_spawn(context_, relay(made, to_, [this] { return frozen_; }),
                     [this, made](std::exception_ptr) {
                       made->close();
                       std::erase(connections_, made);
                     });
    }
  }

  const tcp::endpoint to_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  bool cut_ = false;
  bool frozen_ = false;
  std::vector<std::shared_ptr<RelayedConnection>> connections_;
  std::jthread thread_;
};

TcpRelay::TcpRelay(int to) : impl_(std::make_unique<Impl>(to)) {}
TcpRelay::~TcpRelay() = default;
int TcpRelay::port() const { return impl_->port(); }
void TcpRelay::cut() { impl_->set(true, false); }
void TcpRelay::freeze() { impl_->set(false, true); }
void TcpRelay::mend() { impl_->set(false, false); }

}  // namespace lookout::test
