// gRPC calls to a service with changing instances: a channel per instance (GrpcService), compared
// with one channel to "ipv4:a,b,c" with gRPC's round_robin, which is recreated on each change.
//
//   grpc_channels [INSTANCES [CHANGES [CALLS]]]      50 20 2000 unless given; calls after each change
#include <fmt/format.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/run_main.h"
#include "lookout/registry/clients/grpc.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/greeter_server.h"

namespace lookout::bench {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using lookout::test::GreeterServer;
using registry::test::FixedDiscovery;
using Servers = std::vector<std::unique_ptr<GreeterServer>>;
using registry::ServiceInstance;

struct Sizes {
  std::size_t instances = 50;
  std::size_t changes = 20;
  std::size_t calls = 2000;
};

/// A way to get the channel for the next call.
class Way {
 public:
  virtual ~Way() = default;
  virtual void follow(const registry::InstanceSetPtr& set) = 0;
  virtual std::shared_ptr<grpc::Channel> channel() = 0;
};

class ChannelEach : public Way {
 public:
  explicit ChannelEach(FixedDiscovery& discovery)
      : service_(discovery, "lookout:///web", grpc::InsecureChannelCredentials()) {}
  void follow(const registry::InstanceSetPtr&) override {}
  std::shared_ptr<grpc::Channel> channel() override { return service_.channel(); }

 private:
  registry::GrpcService service_;
};

class ListOfAddresses : public Way {
 public:
  void follow(const registry::InstanceSetPtr& set) override {
    std::string target = "ipv4:";
    for (const auto& instance : *set) {
      if (!target.ends_with(':')) target += ',';
      target += instance.endpoint("grpc")->authority();
    }
    grpc::ChannelArguments arguments;
    arguments.SetLoadBalancingPolicyName("round_robin");
    // Equal arguments would let gRPC share connections with the previous channel.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "web");
    channel_ = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    channel_->GetState(true);
  }
  std::shared_ptr<grpc::Channel> channel() override { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

ServiceInstance instance_of(const GreeterServer& server) {
  ServiceInstance out;
  out.id = std::to_string(server.port());
  out.endpoints = {
      registry::Endpoint("grpc", "127.0.0.1", static_cast<std::uint16_t>(server.port()))};
  return out;
}

double milliseconds(Steady::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// Each change removes one instance and adds another one.
void measure(const char* name, Way& way, FixedDiscovery& discovery, const Servers& servers,
             const Sizes& sizes) {
  std::vector<double> first;
  std::vector<double> all;
  std::size_t failed = 0;
  Steady::duration calling{};
  for (std::size_t change = 0; change <= sizes.changes; ++change) {
    std::vector<ServiceInstance> now;
    for (std::size_t i = 0; i < sizes.instances; ++i) {
      now.push_back(instance_of(*servers[change + i]));
    }
    discovery.publish_as_they_are(std::move(now));
    way.follow(discovery.latest("web"));
    const auto begun = Steady::now();
    for (std::size_t call = 0; call < sizes.calls; ++call) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(std::chrono::system_clock::now() + 30s);
      examples::GreetReply reply;
      const auto before = Steady::now();
      const auto status = examples::Greeter::NewStub(way.channel())->Greet(&context, {}, &reply);
      const double took = milliseconds(Steady::now() - before);
      if (!status.ok()) ++failed;
      all.push_back(took);
      // (Initially there are no connections in either case.)
      if (call == 0 && change > 0) first.push_back(took);
    }
    calling += Steady::now() - begun;
  }
  std::size_t connections = 0;
  for (const auto& server : servers) connections += server->peers().size();
  std::ranges::sort(first);
  std::ranges::sort(all);
  fmt::print(
      "{:<28} {:8.0f} calls/s  p50 {:6.3f} ms  p99 {:6.3f} ms  first after a change: p50 {:6.3f} "
      "ms "
      "max {:7.3f} ms  connections that calls used {:5}  failed {}\n",
      name, static_cast<double>(all.size()) / std::chrono::duration<double>(calling).count(),
      all[all.size() / 2], all[all.size() * 99 / 100], first[first.size() / 2], first.back(),
      connections, failed);
}

Servers start(const Sizes& sizes) {
  Servers out;
  for (std::size_t i = 0; i < sizes.instances + sizes.changes; ++i) {
    out.push_back(std::make_unique<GreeterServer>(std::to_string(i)));
  }
  return out;
}

int run(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.instances = std::stoul(argv[1]);
  if (argc > 2) sizes.changes = std::stoul(argv[2]);
  if (argc > 3) sizes.calls = std::stoul(argv[3]);
  if (sizes.instances == 0 || sizes.changes == 0 || sizes.calls == 0) {
    fmt::print(stderr, "grpc_channels: each number must be at least 1\n");
    return 2;
  }
  {
    const Servers servers = start(sizes);
    FixedDiscovery discovery;
    ChannelEach way(discovery);
    measure("a channel for each instance", way, discovery, servers, sizes);
  }
  const Servers servers = start(sizes);
  FixedDiscovery discovery;
  ListOfAddresses way;
  measure("one channel to ipv4:a,b,c", way, discovery, servers, sizes);
  return 0;
}

}  // namespace
}  // namespace lookout::bench

int main(int argc, char** argv) {
  return lookout::bench::run_main("grpc_channels", [&] { return lookout::bench::run(argc, argv); });
}
