// The state-of-the-world protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/registry/xds/proto/cluster.pb.h"
#include "cmd/registry/xds/proto/endpoint.pb.h"
#include "cmd/registry/xds/session.h"
#include "tests/xds/world.h"

namespace lookout::cmd::registry_cmd::xds::test {
namespace {

using Names = std::vector<std::string>;

class XdsState : public testing::Test {
 protected:
  XdsState() {
    world_.set("cart", {instance(1)});
    world_.set("web", {instance(2)});
  }

  Problem ask(Type type, const Names& names = {}, const std::string& error = {}) {
    StateSession::Request request;
    request.set_type_url(type_url(type));
    request.set_response_nonce(nonces_[type]);
    for (const auto& name : names) request.add_resource_names(name);
    if (!error.empty()) request.mutable_error_detail()->set_message(error);
    return session_.on_request(request);
  }
  /// "TYPE: NAME=ENDPOINTS ..." of the next response, which is accepted; "" if there is none.
  std::string next() {
    const auto response = session_.next(world_.now());
    if (!response) return "";
    const Type type = *type_of(response->type_url());
    EXPECT_NE(response->nonce(), nonces_[type]);
    nonces_[type] = response->nonce();
    std::string out = type == Type::kCluster ? "clusters:" : "endpoints:";
    for (const auto& any : response->resources()) {
      EXPECT_EQ(any.type_url(), response->type_url());
      out += " " + (type == Type::kCluster ? cluster(any.value()) : endpoints(any.value()));
    }
    return out;
  }
  static std::string cluster(const std::string& value) {
    envoy::config::cluster::v3::Cluster cluster;
    EXPECT_TRUE(cluster.ParseFromString(value));
    return cluster.name();
  }
  static std::string endpoints(const std::string& value) {
    envoy::config::endpoint::v3::ClusterLoadAssignment load;
    EXPECT_TRUE(load.ParseFromString(value));
    return load.cluster_name() + "=" +
           std::to_string(load.endpoints().empty() ? 0 : load.endpoints(0).lb_endpoints_size());
  }

  World world_;
  StateSession session_;
  std::map<Type, std::string> nonces_;
};

TEST_F(XdsState, ClustersAreSentAsOneSet) {
  EXPECT_EQ(next(), "") << "nobody has asked";
  ask(Type::kCluster);
  EXPECT_EQ(next(), "clusters: cart web");
  ask(Type::kCluster);  // accepted
  EXPECT_EQ(next(), "");
  world_.set("web", {instance(2), instance(3)});
  EXPECT_EQ(next(), "") << "the clusters are the same";
  world_.set("user", {});
  EXPECT_EQ(next(), "clusters: cart user web");
  world_.remove("cart");
  EXPECT_EQ(next(), "clusters: user web");
}

TEST_F(XdsState, AnEmptySetOfClustersIsSent) {
  World nothing;
  ask(Type::kCluster);
  const auto response = session_.next(nothing.now());
  ASSERT_TRUE(response);
  EXPECT_EQ(response->resources_size(), 0);
  EXPECT_FALSE(session_.next(nothing.now()));
}

TEST_F(XdsState, ChangedEndpointsAreSentSeparately) {
  ask(Type::kEndpoints, {"cart", "web", "unknown"});
  EXPECT_EQ(next(), "endpoints: cart=1 web=1");
  ask(Type::kEndpoints, {"cart", "web", "unknown"});
  EXPECT_EQ(next(), "");
  world_.set("web", {instance(2), instance(3)});
  EXPECT_EQ(next(), "endpoints: web=2");
  world_.set("unknown", {instance(4)});
  world_.set("nobody-asked", {instance(5)});
  EXPECT_EQ(next(), "endpoints: unknown=1");
  world_.set("web", {});
  EXPECT_EQ(next(), "endpoints: web=0");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsState, ManyChangesAreOneResponse) {
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints: web=1");
  world_.set("web", {instance(2), instance(3)});
  world_.now();
  world_.set("web", {});
  world_.now();
  world_.set("web", {instance(2), instance(3), instance(4)});
  EXPECT_EQ(next(), "endpoints: web=3");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsState, EndpointsOfADeletedServiceAreRemoved) {
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints: web=1");
  world_.remove("web");
  EXPECT_EQ(next(), "endpoints: web=0");
  world_.remove("cart");
  EXPECT_EQ(next(), "") << "once";
  world_.set("web", {instance(2)});
  EXPECT_EQ(next(), "endpoints: web=1");
}

TEST_F(XdsState, RequestsBeforeTheLastResponseAreIgnored) {
  ask(Type::kEndpoints, {"cart"});
  EXPECT_EQ(next(), "endpoints: cart=1");
  const std::string old = nonces_[Type::kEndpoints];
  world_.set("cart", {});
  EXPECT_EQ(next(), "endpoints: cart=0");
  const std::string current = std::exchange(nonces_[Type::kEndpoints], old);
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "");
  nonces_[Type::kEndpoints] = current;
  ask(Type::kEndpoints, {"cart", "web"});
  EXPECT_EQ(next(), "endpoints: web=1");
}

TEST_F(XdsState, ARequestWithoutANonceStartsAgain) {
  ask(Type::kEndpoints, {"cart"});
  ask(Type::kCluster, {"cart"});
  EXPECT_EQ(next(), "clusters: cart");
  EXPECT_EQ(next(), "endpoints: cart=1");
  nonces_.clear();
  ask(Type::kEndpoints, {"cart", "web"});
  ask(Type::kCluster);
  EXPECT_EQ(next(), "clusters: cart web");
  EXPECT_EQ(next(), "endpoints: cart=1 web=1");
}

TEST_F(XdsState, ARejectedResponseIsNotRepeatedUntilItChanges) {
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints: web=1");
  ask(Type::kEndpoints, {"web"}, "no such\nport");
  EXPECT_EQ(session_.rejections(), 1u);
  EXPECT_EQ(next(), "");
  world_.set("web", {instance(2), instance(3)});
  EXPECT_EQ(next(), "endpoints: web=2");
}

TEST_F(XdsState, NamesAreSubscribedAndUnsubscribed) {
  ask(Type::kEndpoints, {"cart", "web"});
  EXPECT_EQ(next(), "endpoints: cart=1 web=1");
  ask(Type::kEndpoints, {"cart"});
  world_.set("web", {});
  EXPECT_EQ(next(), "");
  ask(Type::kEndpoints, {"cart", "web"});
  EXPECT_EQ(next(), "endpoints: web=0") << "it may have been forgotten";
  ask(Type::kEndpoints, {});
  world_.set("cart", {});
  EXPECT_EQ(next(), "");
}

TEST_F(XdsState, NamesEndTheSubscriptionToAllClusters) {
  ask(Type::kCluster);
  EXPECT_EQ(next(), "clusters: cart web");
  ask(Type::kCluster, {"web"});
  world_.remove("cart");
  EXPECT_EQ(next(), "") << "only web counts";
  ask(Type::kCluster, {"*", "web"});
  world_.set("user", {});
  EXPECT_EQ(next(), "clusters: user web");
  ask(Type::kCluster, {});
  world_.remove("user");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsState, EndpointsFollowAChangedCluster) {
  ask(Type::kCluster);
  ask(Type::kEndpoints, {"web", "cart"});
  EXPECT_EQ(next(), "clusters: cart web");
  EXPECT_EQ(next(), "endpoints: cart=1 web=1");
  auto http = instance(2);
  http.endpoints = {"http://10.0.0.2:80"};
  world_.set("web", {http});
  EXPECT_EQ(next(), "clusters: cart web");
  EXPECT_EQ(next(), "endpoints: web=1");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsState, ResponsesAndNamesAreBounded) {
  session_ = StateSession({.names = 2, .name_size = 10, .response = 1});
  ask(Type::kEndpoints, {"cart", "web"});
  EXPECT_EQ(next(), "endpoints: cart=1");
  EXPECT_EQ(next(), "endpoints: web=1");
  EXPECT_EQ(next(), "");
  EXPECT_TRUE(ask(Type::kEndpoints, {"a", "b", "c"}));
  EXPECT_TRUE(ask(Type::kEndpoints, {"01234567890"}));
}

TEST_F(XdsState, OtherTypesAreIgnored) {
  StateSession::Request request;
  request.set_type_url("type.googleapis.com/envoy.service.runtime.v3.Runtime");
  EXPECT_FALSE(session_.on_request(request));
  EXPECT_EQ(next(), "");
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd::xds::test
