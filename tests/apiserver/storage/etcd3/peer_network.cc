#include "tests/apiserver/storage/etcd3/peer_network.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/relayed_connection.h"

namespace lookout::test {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

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

/// All its work runs on its own thread.
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

  void set_process(std::size_t member, pid_t pid) {
    call_on(context_, [&] { processes_[member] = pid; });
  }
  void set_isolated(std::optional<std::size_t> member) {
    call_on(context_, [&] { isolated_ = member; });
  }

 private:
  asio::awaitable<void> accept(std::size_t member) {
    for (;;) {
      auto made = std::make_shared<RelayedConnection>(
          co_await acceptors_[member].async_accept(asio::use_awaitable));
      asio::co_spawn(context_, serve(made, member), [made](std::exception_ptr) { made->close(); });
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<RelayedConnection> connection, std::size_t to) {
    const auto from = member_at(connection->client);
    const std::function<bool()> is_cut = [this, from, to] {
      return isolated_ && (from == isolated_ || to == *isolated_);
    };
    co_await relay(connection, targets_[to], is_cut);
  }

  /// The member whose process has opened the connection; nullopt for other processes.
  std::optional<std::size_t> member_at(const tcp::socket& client) const {
    std::optional<std::size_t> out;
    const std::string inode =
        inode_of(client.remote_endpoint().port(), client.local_endpoint().port());
    for (std::size_t i = 0; i < processes_.size() && !inode.empty(); ++i) {
      if (has_socket(processes_[i], inode)) out = i;
    }
    return out;
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
