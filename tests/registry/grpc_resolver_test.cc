// examples/grpc_resolver with gRPC servers that are announced as pods.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "examples/grpc_resolver/service_channel.h"
#include "greeter.grpc.pb.h"
#include "lookout/api/error.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"

namespace lookout_grpc {
namespace {

using namespace lookout::registry::test;
using lookout::examples::Greeter;
using lookout::test::eventually;
namespace kratos = lookout::registry::kratos;

/// A gRPC server on a port of loopback.
class GreeterServer : public Greeter::Service {
 public:
  explicit GreeterServer(std::string name) : name_(std::move(name)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  int port() const { return port_; }
  void stop() { server_->Shutdown(std::chrono::system_clock::now()); }
  /// The clients' addresses: one for each connection.
  std::set<std::string> peers() const {
    const std::lock_guard lock(mutex_);
    return peers_;
  }

 private:
  grpc::Status Greet(grpc::ServerContext* context, const lookout::examples::GreetRequest* request,
                     lookout::examples::GreetReply* reply) override {
    {
      const std::lock_guard lock(mutex_);
      peers_.insert(context->peer());
    }
    reply->set_text("hello " + request->name());
    reply->set_server(name_);
    return grpc::Status::OK;
  }

  const std::string name_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::set<std::string> peers_;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcResolverTest : public testing::Test {
 protected:
  void announce(const GreeterServer& server, const std::string& pod) {
    PodTemplate ports;
    ports.ip = "127.0.0.1";
    ports.ports = fmt::format(R"([{{"containerPort":{}}}])", server.port());
    cluster_.create_pod(pod, ports);
    lookout::registry::Options here;
    here.pod = {"default", pod};
    kratos::Registry(cluster_.client(), here)
        .register_instance({.id = pod,
                            .name = "greeter",
                            .endpoints = {fmt::format("grpc://0.0.0.0:{}", server.port())}});
  }
  /// The instance that answers, or the error if none does.
  static std::string greet(const ServiceChannel& channel) {
    lookout::examples::GreetRequest request;
    request.set_name("you");
    lookout::examples::GreetReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    context.set_wait_for_ready(true);
    const auto status = Greeter::NewStub(channel.get())->Greet(&context, request, &reply);
    return status.ok() ? reply.server() : "failed: " + status.error_message();
  }
  static std::map<std::string, int> greet_often(const ServiceChannel& channel, int times) {
    std::map<std::string, int> out;
    for (int i = 0; i < times; ++i) ++out[greet(channel)];
    return out;
  }

  Cluster cluster_;
};

TEST_F(GrpcResolverTest, CallsReachAllAndGoOnWhenOneLeaves) {
  GreeterServer one("one");
  GreeterServer two("two");
  kratos::Registry registry(cluster_.client());
  const ServiceChannel channel(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
  EXPECT_EQ(channel.get(), nullptr) << "nobody is there";
  EXPECT_FALSE(channel.wait_for_instances(1ms));
  announce(one, "one");
  ASSERT_TRUE(channel.wait_for_instances(kLong));
  EXPECT_EQ(greet(channel), "one");
  announce(two, "two");
  ASSERT_TRUE(eventually([&] { return greet_often(channel, 10).size() == 2; }));
  // Both are connected by now: strictly one after the other.
  EXPECT_EQ(greet_often(channel, 20), (std::map<std::string, int>{{"one", 10}, {"two", 10}}));
  EXPECT_EQ(one.peers().size(), 1u) << "the connection outlives changes of the set";

  // One leaves the registry, and then goes: no call fails.
  cluster_.label("one", "kratos-service-app", "");
  ASSERT_TRUE(eventually([&] { return greet_often(channel, 10).size() == 1; }));
  one.stop();
  EXPECT_EQ(greet_often(channel, 20), (std::map<std::string, int>{{"two", 20}}));
  EXPECT_EQ(two.peers().size(), 1u);

  // When nobody is left the last addresses stay, and serve while they can.
  cluster_.remove_pod("two");
  ASSERT_TRUE(eventually([&] { return registry.get_service("greeter")->empty(); }));
  EXPECT_EQ(greet(channel), "two");
}

TEST_F(GrpcResolverTest, OtherTargetsAreRefused) {
  kratos::Registry registry(cluster_.client());
  for (const char* target : {"greeter", "lookout:///", "dns:///greeter"}) {
    EXPECT_THROW(ServiceChannel(registry, target, grpc::InsecureChannelCredentials()),
                 lookout::InvalidArgument);
  }
}

}  // namespace
}  // namespace lookout_grpc
