#include "lookout/base/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/base/async_event.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"

namespace lookout::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// How often to check the connections for timeouts.
constexpr std::chrono::milliseconds kCheckInterval{500};
/// The pause after an accept error, such as too many open files.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// Otherwise child processes would inherit the socket and keep the port in use.
void close_on_exec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

/// A thread and its connections.
struct Worker {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  /// In the order of arrival, so that operations on all connections have a fixed order.
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;
  std::uint64_t last_connection = 0;
  AsyncEvent check_bell{context.get_executor()};
  bool stopping = false;
  std::thread thread;

  /// Calls `visit(connection)`, which may close and so remove the connection.
  template <class Visit>
  void for_each_connection(Visit visit) {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections.size());
    for (const auto& [number, connection] : connections) all.push_back(connection);
    for (const auto& connection : all) visit(*connection);
  }
};

}  // namespace

std::string address_of_host(std::string host) {
  if (host.empty()) return "0.0.0.0";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  if (!error) return host;
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty())
    throw Error(fmt::format("'{}' is not an address to listen on: {}", host, error.message()));
  const auto first = std::find_if(found.begin(), found.end(), [](const auto& entry) {
    return entry.endpoint().address().is_v4();
  });
  return (first == found.end() ? found.begin() : first)->endpoint().address().to_string();
}

std::string host_for_clients(const std::string& address) {
  if (address == "0.0.0.0") return "127.0.0.1";
  if (address == "::") return "[::1]";
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

std::string counted_address(const std::string& address) {
  boost::system::error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error || parsed.is_v4()) return address;
  asio::ip::address_v6 six = parsed.to_v6();
  if (six.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, six).to_string();
  if (six.is_loopback()) return address;
  asio::ip::address_v6::bytes_type bytes = six.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler handler, ErrorBody error_body, HeadCheck check_head)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        error_body_(std::move(error_body)),
        check_head_(std::move(check_head)) {
    for (unsigned i = 0; i < std::max(options_.threads, 1u); ++i)
      workers_.push_back(std::make_unique<Worker>());
    if (options_.listens) listen();
  }

  ~Impl() { stop(std::chrono::milliseconds(0)); }

  void start() {
    if (acceptor_) asio::co_spawn(workers_[0]->context, accept(), asio::detached);
    for (auto& worker : workers_) {
      asio::co_spawn(worker->context, check(*worker), asio::detached);
      worker->thread = std::thread([&context = worker->context] { context.run(); });
    }
    started_ = true;
  }

  void stop(std::chrono::milliseconds grace) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(stopped_, true)) return;
    }
    if (started_) {
      if (!end_within(grace)) cut_off();
      for (auto& worker : workers_) worker->context.stop();
      for (auto& worker : workers_) worker->thread.join();
    }
    acceptor_.reset();
    // Drops pending handlers while the objects that they refer to still exist.
    workers_.clear();
  }

  bool drain(std::chrono::milliseconds time) {
    if (stopped_ || !started_) return true;
    return end_within(time);
  }

  void cut_off() {
    if (!started_) return;
    for_each_connection([](Connection& connection) { connection.close(); }, true);
    wait_until_empty(std::chrono::seconds(5));
  }

  void connect(std::function<std::unique_ptr<Transport>(asio::any_io_executor)> make) {
    // Keeps the workers until the work is posted.
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    Worker& worker = *workers_[next_++ % workers_.size()];
    ++count_;
    asio::post(worker.context, [this, &worker, make = std::move(make)] {
      serve(worker, make(worker.context.get_executor()));
    });
  }

  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return count_.load(); }
  asio::any_io_executor executor() { return workers_[0]->context.get_executor(); }

 private:
  void listen() {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(options_.address, error);
    if (error) throw Error(fmt::format("'{}' is not an address to listen on", options_.address));
    if (address.is_unspecified()) {
      // IPv4 and IPv6 on one socket, as in Go's net.Listen; only IPv4 on machines without IPv6.
      error = listen_at({asio::ip::address_v6::any(), options_.port});
      if (error == asio::error::address_family_not_supported ||
          error == std::errc::address_not_available)
        error = listen_at({asio::ip::address_v4::any(), options_.port});
    } else {
      error = listen_at({address, options_.port});
    }
    if (error)
      throw Error(fmt::format("cannot listen on {}:{}: {}", options_.address, options_.port,
                              error.message()));
    port_ = acceptor_->local_endpoint().port();
  }

  boost::system::error_code listen_at(const tcp::endpoint& endpoint) {
    boost::system::error_code error;
    acceptor_ = std::make_unique<tcp::acceptor>(workers_[0]->context);
    acceptor_->open(endpoint.protocol(), error);
    if (error) return error;
    close_on_exec(acceptor_->native_handle());
    acceptor_->set_option(asio::socket_base::reuse_address(true), error);
    // Independent of the system's default (net.ipv6.bindv6only).
    if (endpoint.address().is_v6() && endpoint.address().is_unspecified())
      acceptor_->set_option(asio::ip::v6_only(false), error);
    acceptor_->bind(endpoint, error);
    if (error) return error;
    acceptor_->listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  Awaitable<void> accept() {
    AsyncEvent pause(co_await asio::this_coro::executor);
    for (std::size_t next = 0; acceptor_->is_open(); ++next) {
      Worker& worker = *workers_[next % workers_.size()];
      boost::system::error_code error;
      tcp::socket socket = co_await acceptor_->async_accept(
          worker.context, asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted || !acceptor_->is_open()) co_return;
      if (error) {
        log::warn("cannot accept a connection: {}", error.message());
        co_await pause.wait(std::chrono::steady_clock::now() + kAcceptPause);
        continue;
      }
      if (count_.load() >= options_.max_connections) {
        log::warn("refused a connection: {} connections are open", count_.load());
        continue;
      }
      boost::system::error_code ignored;
      const std::string client =
          counted_address(socket.remote_endpoint(ignored).address().to_string());
      if (!enter(client)) continue;
      close_on_exec(socket.native_handle());
      socket.set_option(tcp::no_delay(true), ignored);
      socket.set_option(asio::socket_base::keep_alive(true), ignored);
      ++count_;
      auto shared = std::make_shared<tcp::socket>(std::move(socket));
      asio::post(worker.context,
                 [this, &worker, shared, client] { serve(worker, std::move(*shared), client); });
    }
  }

  /// Counts a connection of a client. False if the client has too many.
  bool enter(const std::string& client) {
    const std::size_t most = options_.max_connections_per_address;
    if (most == 0) return true;
    const std::lock_guard lock(mutex_);
    Client& known = clients_[client];
    if (known.connections < most) {
      ++known.connections;
      return true;
    }
    // Log this once, so that a client cannot fill the log.
    if (!std::exchange(known.is_known_to_log, true))
      log::warn("refused a connection: {} has {} connections", client, known.connections);
    return false;
  }

  void leave(const std::string& client) {
    const auto known = clients_.find(client);
    if (known != clients_.end() && --known->second.connections == 0) clients_.erase(known);
  }

  void serve(Worker& worker, tcp::socket socket, const std::string& client) {
    serve(worker,
          options_.tls == nullptr ? make_plain_transport(std::move(socket))
                                  : make_tls_transport(std::move(socket), options_.tls),
          client);
  }

  /// `client` is empty if the connection is not counted for a client.
  void serve(Worker& worker, std::unique_ptr<Transport> transport, const std::string& client = {}) {
    auto connection =
        std::make_shared<Connection>(worker.context.get_executor(), std::move(transport),
                                     options_.limits, handler_, error_body_, check_head_);
    const std::uint64_t number = ++worker.last_connection;
    worker.connections.emplace(number, connection);
    connection->start([this, &worker, number, client] {
      worker.connections.erase(number);
      const std::lock_guard lock(mutex_);
      leave(client);
      if (--count_ == 0) empty_.notify_all();
    });
    if (worker.stopping) connection->drain();
  }

  /// Runs until the worker ends, as timeouts apply while it drains, too.
  Awaitable<void> check(Worker& worker) {
    for (;;) {
      const auto now = Connection::Clock::now();
      co_await worker.check_bell.wait(now + kCheckInterval);
      worker.for_each_connection(
          [](Connection& connection) { connection.check(Connection::Clock::now()); });
    }
  }

  template <class Visit>
  void for_each_connection(Visit visit, bool stopping) {
    for (auto& worker : workers_) {
      asio::post(worker->context, [visit, stopping, &worker = *worker] {
        worker.stopping = worker.stopping || stopping;
        worker.for_each_connection(visit);
      });
    }
  }

  bool end_within(std::chrono::milliseconds time) {
    if (!std::exchange(draining_, true)) {
      asio::post(workers_[0]->context, [this] {
        boost::system::error_code ignored;
        if (acceptor_) acceptor_->close(ignored);
      });
      for_each_connection([](Connection& connection) { connection.drain(); }, true);
    }
    return wait_until_empty(time);
  }

  bool wait_until_empty(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, lookout::Clock::limited(time), [&] { return count_.load() == 0; });
  }

  const ServerOptions options_;
  const Handler handler_;
  const ErrorBody error_body_;
  const HeadCheck check_head_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::size_t next_ =
      0;  // index of the worker for the next connection without a socket; guarded by mutex_
  std::condition_variable empty_;
  struct Client {
    std::size_t connections = 0;
    bool is_known_to_log = false;
  };
  std::unordered_map<std::string, Client> clients_;  // guarded by mutex_
  bool started_ = false;
  bool draining_ = false;
  bool stopped_ = false;  // written with mutex_ held
};

Server::Server(ServerOptions options, Handler handler, ErrorBody error_body, HeadCheck check_head)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler), std::move(error_body),
                                   std::move(check_head))) {}
Server::~Server() = default;
void Server::start() { impl_->start(); }
void Server::connect(std::function<std::unique_ptr<Transport>(asio::any_io_executor)> make) {
  impl_->connect(std::move(make));
}
std::uint16_t Server::port() const { return impl_->port(); }
std::size_t Server::connections() const { return impl_->connections(); }
boost::asio::any_io_executor Server::executor() { return impl_->executor(); }
bool Server::drain(std::chrono::milliseconds time) { return impl_->drain(time); }
void Server::cut_off() { impl_->cut_off(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

}  // namespace lookout::http
