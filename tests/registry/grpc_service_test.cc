// GrpcService with gRPC servers that pods announce.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "greeter.grpc.pb.h"
#include "lookout/api/error.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/clients/grpc.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/greeter_server.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using examples::Greeter;
using lookout::test::GreeterServer;

class GrpcServiceTest : public testing::Test {
 protected:
  void announce(const GreeterServer& server, const std::string& pod) {
    PodTemplate ports;
    ports.ip = "127.0.0.1";
    ports.ports = fmt::format(R"([{{"containerPort":{}}}])", server.port());
    cluster_.create_pod(pod, ports);
    Options here;
    here.pod = {"default", pod};
    kratos::Registry(cluster_.client(), here)
        .register_instance({.id = pod,
                            .name = "greeter",
                            .endpoints = {fmt::format("grpc://0.0.0.0:{}", server.port())}});
  }
  /// The instance that responds, or the error.
  static std::string greet(const GrpcService& service) { return greet(service.channel()); }
  /// Waits for a connection, unless told otherwise.
  static std::string greet(const std::shared_ptr<grpc::Channel>& channel, bool wait = true) {
    examples::GreetRequest request;
    request.set_name("you");
    examples::GreetReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    context.set_wait_for_ready(wait);
    const auto status = Greeter::NewStub(channel)->Greet(&context, request, &reply);
    return status.ok() ? reply.server() : "failed: " + status.error_message();
  }
  static std::map<std::string, int> greet_often(const GrpcService& service, int times) {
    std::map<std::string, int> out;
    for (int i = 0; i < times; ++i) ++out[greet(service)];
    return out;
  }

  Cluster cluster_;
};

TEST_F(GrpcServiceTest, CallsReachAllInstancesAndContinueWhenOneLeaves) {
  GreeterServer one("one");
  GreeterServer two("two");
  kratos::Registry registry(cluster_.client());
  const GrpcService service(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  EXPECT_EQ(service.channel(), nullptr) << "nobody is there";
  EXPECT_FALSE(service.wait_for_instances(1ms));
  announce(one, "one");
  ASSERT_TRUE(service.wait_for_instances(kLong));
  EXPECT_EQ(greet(service), "one");
  announce(two, "two");
  ASSERT_TRUE(eventually([&] { return greet_often(service, 10).size() == 2; }));
  // Both are connected: calls alternate strictly.
  EXPECT_EQ(greet_often(service, 20), (std::map<std::string, int>{{"one", 10}, {"two", 10}}));
  EXPECT_EQ(one.peers().size(), 1u) << "the connection outlives changes of the set";

  // One server deregisters, then stops: no call fails.
  cluster_.label("one", "kratos-service-app", "");
  ASSERT_TRUE(eventually([&] { return greet_often(service, 10).size() == 1; }));
  one.stop();
  EXPECT_EQ(greet_often(service, 20), (std::map<std::string, int>{{"two", 20}}));
  EXPECT_EQ(two.peers().size(), 1u);

  // Without instances, the last addresses stay in use.
  cluster_.remove_pod("two");
  ASSERT_TRUE(eventually([&] { return registry.get_service("greeter")->empty(); }));
  EXPECT_EQ(greet(service), "two");
}

TEST_F(GrpcServiceTest, ABalancerMayPick) {
  GreeterServer one("one");
  GreeterServer two("two");
  announce(one, "one");
  announce(two, "two");
  kratos::Registry registry(cluster_.client());
  const GrpcService service(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  const Balancer balancer(registry, "greeter", round_robin());
  ASSERT_TRUE(eventually([&] { return balancer.load()->size() == 2; }));
  two.stop();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(balancer.call({.deadline = kLong, .scheme = "grpc"},
                            [&](const Endpoint& endpoint) {
                              grpc::ClientContext context;
                              examples::GreetReply reply;
                              const auto stub = Greeter::NewStub(service.channel(endpoint));
                              const auto status = stub->Greet(&context, {}, &reply);
                              if (!status.ok()) throw std::runtime_error(status.error_message());
                              return reply.server();
                            }),
              "one");
  }
  EXPECT_EQ(one.peers().size(), 1u) << "one connection for all calls";
}

// A balancer may receive a set before the service does.
TEST_F(GrpcServiceTest, AnAddressHasOneChannelBeforeItsSetArrives) {
  GreeterServer one("one");
  kratos::Registry registry(cluster_.client());
  const GrpcService service(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  const Endpoint endpoint(fmt::format("grpc://127.0.0.1:{}", one.port()));
  const auto early = service.channel(endpoint);
  EXPECT_EQ(service.channel(endpoint), early);
  announce(one, "one");
  ASSERT_TRUE(service.wait_for_instances(kLong));
  EXPECT_EQ(service.channel(endpoint), early);
  EXPECT_EQ(service.channel(), early);
}

TEST_F(GrpcServiceTest, CallsOfUnreachableInstancesAreSpread) {
  std::vector<std::unique_ptr<GreeterServer>> servers;
  for (int i = 0; i < 6; ++i) {
    servers.push_back(std::make_unique<GreeterServer>(std::to_string(i)));
    announce(*servers.back(), std::to_string(i));
  }
  // The order of the addresses.
  std::ranges::sort(servers, {}, [](const auto& server) { return std::to_string(server->port()); });
  kratos::Registry registry(cluster_.client());
  const GrpcService service(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  for (int i = 0; i < 3; ++i) servers[static_cast<std::size_t>(i)]->stop();
  const auto channels = [&](int times) {
    std::map<std::shared_ptr<grpc::Channel>, int> out;
    for (int i = 0; i < times; ++i) ++out[service.channel()];
    return out;
  };
  ASSERT_TRUE(service.wait_for_instances(kLong));
  // (Calls that wait for a connection would wait for those that have stopped.)
  ASSERT_TRUE(eventually([&] {
    std::set<std::string> answers;
    for (int i = 0; i < 12; ++i) answers.insert(greet(service.channel(), false));
    return answers.size() == 3;
  }));
  ASSERT_TRUE(eventually([&] { return channels(60).size() == 3; }));
  for (const auto& [channel, count] : channels(180)) EXPECT_NEAR(count, 60, 6);
}

TEST_F(GrpcServiceTest, AHostMayBeAName) {
  GreeterServer one("one");
  kratos::Registry registry(cluster_.client());
  const GrpcService service(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  EXPECT_EQ(greet(service.channel(Endpoint(fmt::format("grpc://localhost:{}", one.port())))),
            "one");
}

TEST_F(GrpcServiceTest, OtherTargetsAreRejected) {
  kratos::Registry registry(cluster_.client());
  for (const char* target : {"greeter", "lookout:///", "dns:///greeter"}) {
    EXPECT_THROW(GrpcService(registry, target, grpc::InsecureChannelCredentials()),
                 InvalidArgument);
  }
}

}  // namespace
}  // namespace lookout::registry
