// Streams of the xDS server, over loopback.
#include "cmd/registry/xds/server.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cmd/registry/xds/proto/discovery.grpc.pb.h"
#include "cmd/registry/xds/session.h"
#include "lookout/api/error.h"
#include "tests/page/fake_discovery.h"
#include "tests/support/eventually.h"
#include "tests/xds/world.h"

namespace lookout::cmd::registry_cmd::xds::test {
namespace {

using envoy::service::discovery::v3::AggregatedDiscoveryService;
using lookout::test::eventually;
using registry::test::FakeDiscovery;
using namespace std::chrono_literals;

/// A client's stream on its own connection.
template <class Session>
class ClientStream {
 public:
  using Request = typename Session::Request;
  using Response = typename Session::Response;

  explicit ClientStream(const Server& server)
      : stub_(AggregatedDiscoveryService::NewStub(grpc::CreateCustomChannel(
            server.address(), grpc::InsecureChannelCredentials(), own()))) {
    context_.set_deadline(std::chrono::system_clock::now() + 60s);
    if constexpr (std::is_same_v<Session, StateSession>) {
      stream_ = stub_->StreamAggregatedResources(&context_);
    } else {
      stream_ = stub_->DeltaAggregatedResources(&context_);
    }
  }

  void ask(Type type) {
    Request request;
    request.set_type_url(type_url(type));
    EXPECT_TRUE(stream_->Write(request));
  }
  /// The number of resources in the next response; -1 if the stream has ended.
  int read() {
    Response response;
    return stream_->Read(&response) ? response.resources_size() : -1;
  }
  void half_close() { stream_->WritesDone(); }
  grpc::Status finish() { return stream_->Finish(); }

 private:
  static grpc::ChannelArguments own() {
    grpc::ChannelArguments out;
    out.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return out;
  }
  const std::unique_ptr<AggregatedDiscoveryService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream_;
};

class XdsServer : public testing::Test {
 protected:
  void serve(ServerOptions options = {}) {
    options.interval = 1ms;
    server_.emplace(discovery_, options);
  }

  const std::shared_ptr<FakeDiscovery> discovery_ = std::make_shared<FakeDiscovery>();
  std::optional<Server> server_;
};

TEST_F(XdsServer, StreamsReceiveChangesAfterTheFirstData) {
  discovery_->set_synced(false);
  discovery_->set_instances("web", {instance(1)});
  serve();
  ClientStream<StateSession> state(*server_);
  ClientStream<DeltaSession> delta(*server_);
  state.ask(Type::kCluster);
  delta.ask(Type::kCluster);
  ASSERT_TRUE(eventually([&] { return server_->streams() == 2; }));
  discovery_->set_synced(true);
  EXPECT_EQ(state.read(), 1) << "not an answer without services before";
  EXPECT_EQ(delta.read(), 1);
  discovery_->set_instances("cart", {instance(2)});
  EXPECT_EQ(state.read(), 2);
  EXPECT_EQ(delta.read(), 1);
  state.half_close();
  EXPECT_EQ(state.read(), -1);
  EXPECT_TRUE(state.finish().ok());
  EXPECT_TRUE(eventually([&] { return server_->streams() == 1; }));
}

TEST_F(XdsServer, AnUnreadStreamBlocksNeitherOthersNorTheStop) {
  for (int i = 0; i < 3000; ++i) {
    discovery_->set_instances("a-service-with-a-name-of-some-length-" + std::to_string(i),
                              {instance(1)});
  }
  serve();
  ClientStream<StateSession> stuck(*server_);
  stuck.ask(Type::kCluster);  // more than flow control allows without reads
  ClientStream<DeltaSession> other(*server_);
  other.ask(Type::kCluster);
  EXPECT_EQ(other.read(), 3000);
  discovery_->set_instances("web", {instance(1)});
  EXPECT_EQ(other.read(), 1);
  const auto begin = std::chrono::steady_clock::now();
  server_->stop(100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_EQ(other.read(), -1);
  EXPECT_EQ(other.finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server_->streams(), 0u);
}

TEST_F(XdsServer, StreamsAndNamesAreBounded) {
  serve({.max_streams = 1});
  ClientStream<StateSession> first(*server_);
  first.ask(Type::kCluster);
  EXPECT_EQ(first.read(), 0);
  ClientStream<StateSession> second(*server_);
  EXPECT_EQ(second.read(), -1);
  EXPECT_EQ(second.finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(XdsServer, APortInUseIsAnError) {
  serve();
  ServerOptions same;
  same.listen.port = server_->port();
  EXPECT_THROW(Server(discovery_, same), Error);
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd::xds::test
