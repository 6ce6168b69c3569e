#include "tests/apiserver/storage/etcd3/peer_network.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "tests/support/bounded_wait.h"

namespace lookout::test {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::endpoint loopback(int port) {
  return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}

/// The inode of the socket that is connected from one port of this machine to another; empty if there
/// is none.
std::string inode_of(int from, int to) {
  const std::string local = fmt::format(":{:04X}", from);
  const std::string remote = fmt::format(":{:04X}", to);
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::array<std::string, 10> field;
    for (std::string& one : field) fields >> one;
    if (field[1].ends_with(local) && field[2].ends_with(remote)) return field[9];
  }
  return {};
}

bool has_socket(pid_t pid, const std::string& inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    if (std::filesystem::read_symlink(entry.path(), error) == wanted) return true;
  }
  return false;
}

}  // namespace

/// Everything happens on its thread.
class PeerNetwork::Impl {
 public:
  explicit Impl(const std::vector<int>& members) : processes_(members.size(), -1) {
    for (const int port : members) {
      acceptors_.emplace_back(context_, loopback(0));
      targets_.push_back(loopback(port));
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      asio::co_spawn(context_, accept(i), asio::detached);
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~Impl() { context_.stop(); }

  int port(std::size_t member) const { return acceptors_[member].local_endpoint().port(); }

  template <class Function>
  void run(Function function) {
    std::promise<void> done;
    asio::post(context_, [&] {
      function();
      done.set_value();
    });
    wait_for(done.get_future());
  }
  void set_process(std::size_t member, pid_t pid) {
    run([&] { processes_[member] = pid; });
  }
  void set_isolated(std::optional<std::size_t> member) {
    run([&] { isolated_ = member; });
  }

 private:
  struct Connection {
    explicit Connection(tcp::socket accepted)
        : client(std::move(accepted)), server(client.get_executor()) {}
    void close() {
      boost::system::error_code ignored;
      client.close(ignored);
      server.close(ignored);
    }
    tcp::socket client;
    tcp::socket server;
    std::optional<std::size_t> from;
    std::size_t to = 0;
  };

  asio::awaitable<void> accept(std::size_t member) {
    for (;;) {
      auto made = std::make_shared<Connection>(
          co_await acceptors_[member].async_accept(asio::use_awaitable));
      made->to = member;
      asio::co_spawn(context_, serve(made), [made](std::exception_ptr) { made->close(); });
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Connection> connection) {
    const std::string inode = inode_of(connection->client.remote_endpoint().port(),
                                       connection->client.local_endpoint().port());
    for (std::size_t i = 0; i < processes_.size() && !inode.empty(); ++i) {
      if (has_socket(processes_[i], inode)) connection->from = i;
    }
    co_await connection->server.async_connect(targets_[connection->to], asio::use_awaitable);
    asio::co_spawn(context_, copy(connection, connection->server, connection->client),
                   [connection](std::exception_ptr) { connection->close(); });
    co_await copy(connection, connection->client, connection->server);
  }

  bool is_cut(const Connection& connection) const {
    return isolated_ && (connection.from == isolated_ || connection.to == *isolated_);
  }

  asio::awaitable<void> copy(std::shared_ptr<Connection> connection, tcp::socket& from,
                             tcp::socket& to) {
    std::array<char, 16384> buffer;
    asio::steady_timer pause(context_);
    for (;;) {
      const std::size_t size =
          co_await from.async_read_some(asio::buffer(buffer), asio::use_awaitable);
      while (is_cut(*connection)) {
        pause.expires_after(std::chrono::milliseconds(5));
        co_await pause.async_wait(asio::use_awaitable);
      }
      co_await asio::async_write(to, asio::buffer(buffer, size), asio::use_awaitable);
    }
  }

  asio::io_context context_{1};
  std::vector<tcp::acceptor> acceptors_;
  std::vector<tcp::endpoint> targets_;
  std::vector<pid_t> processes_;
  std::optional<std::size_t> isolated_;
  std::jthread thread_;
};

PeerNetwork::PeerNetwork(const std::vector<int>& members)
    : impl_(std::make_unique<Impl>(members)) {}
PeerNetwork::~PeerNetwork() = default;
int PeerNetwork::port(std::size_t member) const { return impl_->port(member); }
void PeerNetwork::set_process(std::size_t member, pid_t pid) { impl_->set_process(member, pid); }
void PeerNetwork::isolate(std::size_t member) { impl_->set_isolated(member); }
void PeerNetwork::rejoin() { impl_->set_isolated({}); }

}  // namespace lookout::test
