#include "cmd/registry/xds/server.h"

#include <fmt/format.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <set>
#include <utility>

#include "cmd/registry/catalog.h"
#include "cmd/registry/xds/proto/discovery.grpc.pb.h"
#include "cmd/registry/xds/session.h"
#include "cmd/registry/xds/stream.h"
#include "lookout/api/error.h"

namespace lookout::cmd::registry_cmd::xds {
namespace {

using envoy::service::discovery::v3::AggregatedDiscoveryService;

/// Clients that send keepalive pings more often are disconnected.
constexpr int kMinClientPingMs = 5000;

class DiscoveryService final : public AggregatedDiscoveryService::CallbackService {
 public:
  explicit DiscoveryService(Hub& hub) : hub_(hub) {}

  // gRPC uses the reactor until OnDone(), which deletes it.
  grpc::ServerBidiReactor<StateSession::Request, StateSession::Response>* StreamAggregatedResources(
      grpc::CallbackServerContext*) override {
    return new Stream<StateSession>(hub_);
  }
  grpc::ServerBidiReactor<DeltaSession::Request, DeltaSession::Response>* DeltaAggregatedResources(
      grpc::CallbackServerContext*) override {
    return new Stream<DeltaSession>(hub_);
  }

 private:
  Hub& hub_;
};

grpc::Status going_away() { return {grpc::StatusCode::UNAVAILABLE, "the server is shutting down"}; }

std::string host_and_port(const ListenAddress& at, int port) {
  const bool is_v6 = at.address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), at.address, port);
}

}  // namespace

class Server::Impl final : public Hub {
 public:
  Impl(std::shared_ptr<registry::Discovery> discovery, const ServerOptions& options)
      : options_(options),
        builder_(options.schemes),
        service_(*this),
        catalog_(std::move(discovery), options.interval) {
    listen();
    catalog_.add_listener([this] { on_bell(); });
    on_bell();
  }
  ~Impl() override { stop(std::chrono::milliseconds(0)); }

  int port() const { return port_; }
  std::string address() const { return host_and_port(options_.listen, port_); }
  std::size_t streams() const { return stream_count_; }

  void stop(std::chrono::milliseconds grace) {
    catalog_.stop();
    if (!server_) return;
    post([this] {
      stopping_ = true;
      for (AnyStream* stream : streams_) stream->finish(going_away());
    });
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_.reset();  // waits until all streams are done
    worker_.join();
  }

  void post(std::function<void()> work) override { boost::asio::post(worker_, std::move(work)); }
  SnapshotPtr snapshot() const override { return builder_.latest(); }

  std::optional<grpc::Status> enter(AnyStream& stream) override {
    if (stopping_) return going_away();
    if (streams_.size() >= options_.max_streams) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "there are too many streams");
    }
    streams_.insert(&stream);
    stream_count_ = streams_.size();
    return std::nullopt;
  }
  void leave(AnyStream& stream) override {
    streams_.erase(&stream);
    stream_count_ = streams_.size();
  }

 private:
  void listen() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(host_and_port(options_.listen, options_.listen.port),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    const int keepalive = static_cast<int>(options_.keepalive.count());
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kMinClientPingMs);
    // Otherwise a second server on this port would get half of the clients.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return;
    server_.reset();
    catalog_.stop();
    throw Error(
        fmt::format("cannot listen at {}", host_and_port(options_.listen, options_.listen.port)));
  }

  /// Called on the catalog's thread. Notifications before the worker runs are merged.
  void on_bell() {
    if (bell_rings_.exchange(true)) return;
    post([this] {
      bell_rings_ = false;
      refresh();
    });
  }

  void refresh() {
    const auto state = catalog_.state();
    if (!state->synced || !builder_.update(with_those_gone(state->services))) return;
    for (AnyStream* stream : streams_) stream->advance();
  }

  /// Keeps removed services without endpoints: calls then fail immediately, and gRPC's client (1.51)
  /// finds the service again when it returns. It would not if its listener had been removed.
  std::vector<registry::InstanceSetPtr> with_those_gone(
      const std::vector<registry::InstanceSetPtr>& sets) {
    for (auto& [name, set] : known_) set = nullptr;
    for (const auto& set : sets) known_[set->service()] = set;
    std::vector<registry::InstanceSetPtr> out;
    for (const auto& [name, set] : known_) {
      if (set != nullptr) {
        gone_.erase(name);
        out.push_back(set);
      } else {
        auto& empty = gone_[name];
        if (empty == nullptr) empty = registry::InstanceSet::make(name, 1, {});
        out.push_back(empty);
      }
    }
    return out;
  }

  const ServerOptions options_;
  std::atomic<bool> bell_rings_ = false;
  std::atomic<std::size_t> stream_count_ = 0;
  int port_ = 0;
  // Used by the worker only.
  SnapshotBuilder builder_;
  std::map<std::string, registry::InstanceSetPtr> known_;  // all services since the start
  std::map<std::string, registry::InstanceSetPtr> gone_;   // without instances
  std::set<AnyStream*> streams_;
  bool stopping_ = false;

  boost::asio::thread_pool worker_{1};
  DiscoveryService service_;
  std::unique_ptr<grpc::Server> server_;
  Catalog catalog_;  // last: its thread uses the other members
};

Server::Server(std::shared_ptr<registry::Discovery> discovery, const ServerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(discovery), options)) {}
Server::~Server() = default;
std::uint16_t Server::port() const { return static_cast<std::uint16_t>(impl_->port()); }
std::string Server::address() const { return impl_->address(); }
std::size_t Server::streams() const { return impl_->streams(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

}  // namespace lookout::cmd::registry_cmd::xds
