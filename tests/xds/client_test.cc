// gRPC's own xDS client calls services of the registry: the target is xds:///NAME.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "cmd/registry/xds/server.h"
#include "greeter.grpc.pb.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/greeter_server.h"

namespace lookout::cmd::registry_cmd::xds::test {
namespace {

using namespace registry::test;
using examples::Greeter;
using lookout::test::eventually;
using lookout::test::GreeterServer;
namespace kratos = registry::kratos;

class XdsClient : public testing::Test {
 protected:
  XdsClient() {
    registry::Options options;
    options.include_unready = true;
    ServerOptions server;
    server.interval = 1ms;
    server_.emplace(std::make_shared<kratos::Registry>(cluster_.client(), options), server);
    const std::string bootstrap = fmt::format(
        R"({{"xds_servers": [{{"server_uri": "{}", "channel_creds": [{{"type": "insecure"}}],
             "server_features": ["xds_v3"]}}], "node": {{"id": "test"}}}})",
        server_->address());
    setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap.c_str(), 1);
  }

  void announce(const GreeterServer& server, const std::string& pod) {
    PodTemplate ports = kratos_pod("greeter", pod, "127.0.0.1");
    ports.annotations = {
        {"kratos-service-protocols", fmt::format(R"({{"{}":"grpc"}})", server.port())}};
    ports.ports = fmt::format(R"([{{"containerPort":{}}}])", server.port());
    cluster_.create_pod(pod, ports);
  }

  static std::shared_ptr<grpc::Channel> channel(const std::string& target) {
    return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  }
  /// The name of the server that responds, or the error.
  static std::string greet(const std::shared_ptr<grpc::Channel>& channel, bool wait = true) {
    examples::GreetReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    context.set_wait_for_ready(wait);
    const auto status = Greeter::NewStub(channel)->Greet(&context, {}, &reply);
    return status.ok() ? reply.server() : "failed: " + status.error_message();
  }
  /// The names of the servers that answer 12 calls.
  static std::set<std::string> who_answers(const std::shared_ptr<grpc::Channel>& channel) {
    std::set<std::string> out;
    for (int i = 0; i < 12; ++i) out.insert(greet(channel));
    return out;
  }

  Cluster cluster_;
  std::optional<Server> server_;
};

TEST_F(XdsClient, CallsFollowTheInstances) {
  const GreeterServer one("one");
  const GreeterServer two("two");
  announce(one, "one");
  const auto greeter = channel("xds:///greeter");
  EXPECT_EQ(greet(greeter), "one");

  announce(two, "two");
  EXPECT_TRUE(eventually([&] {
    return who_answers(greeter) == std::set<std::string>{"one", "two"};
  }));

  // The pod is not ready, though its server still responds: it gets no calls.
  cluster_.set_status("one", "127.0.0.1", "Running", false);
  EXPECT_TRUE(eventually([&] { return who_answers(greeter) == std::set<std::string>{"two"}; }));

  cluster_.set_status("one", "127.0.0.1", "Running", true);
  cluster_.remove_pod("two");
  EXPECT_TRUE(eventually([&] { return who_answers(greeter) == std::set<std::string>{"one"}; }));
}

TEST_F(XdsClient, AServiceMayAppearDisappearAndReturn) {
  const GreeterServer one("one");
  const auto greeter = channel("xds:///greeter");
  greeter->GetState(true);  // requests the service
  ASSERT_TRUE(eventually([&] { return server_->streams() == 1; }));
  announce(one, "one");
  EXPECT_EQ(greet(greeter), "one");
  cluster_.remove_pod("one");
  EXPECT_TRUE(eventually([&] { return greet(greeter, false).starts_with("failed"); }));
  announce(one, "one");
  EXPECT_EQ(greet(greeter), "one");
}

TEST_F(XdsClient, CallsContinueWithoutTheXdsServer) {
  const GreeterServer one("one");
  announce(one, "one");
  const auto greeter = channel("xds:///greeter");
  EXPECT_EQ(greet(greeter), "one");
  const auto begin = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_EQ(greet(greeter), "one");
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd::xds::test
