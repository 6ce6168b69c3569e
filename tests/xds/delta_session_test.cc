// The incremental protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/registry/xds/session.h"
#include "tests/xds/world.h"

namespace lookout::cmd::registry_cmd::xds::test {
namespace {

using Names = std::vector<std::string>;
using Request = DeltaSession::Request;

class XdsDelta : public testing::Test {
 protected:
  XdsDelta() {
    world_.set("cart", {instance(1)});
    world_.set("web", {instance(2)});
  }

  static Request request(Type type, const Names& more, const Names& less = {}) {
    Request out;
    out.set_type_url(type_url(type));
    for (const auto& name : more) out.add_resource_names_subscribe(name);
    for (const auto& name : less) out.add_resource_names_unsubscribe(name);
    return out;
  }
  void ask(Type type, const Names& more, const Names& less = {}) {
    EXPECT_FALSE(session_.on_request(request(type, more, less)));
  }
  /// "TYPE +NAME ... -NAME ..." of the next response; "" if there is none. The versions are kept.
  std::string next() {
    const auto response = session_.next(world_.now());
    if (!response) return "";
    EXPECT_NE(response->nonce(), "");
    std::string out = response->type_url() == type_url(Type::kCluster) ? "clusters" : "endpoints";
    for (const auto& resource : response->resources()) {
      EXPECT_EQ(resource.resource().type_url(), response->type_url());
      out += " +" + resource.name();
      versions_[resource.name()] = resource.version();
    }
    for (const auto& name : response->removed_resources()) out += " -" + name;
    return out;
  }

  World world_;
  DeltaSession session_;
  std::map<std::string, std::string> versions_;
};

TEST_F(XdsDelta, OnlyChangesFollowTheFirstResponse) {
  ask(Type::kCluster, {});
  EXPECT_EQ(next(), "clusters +cart +web");
  ask(Type::kCluster, {});
  EXPECT_EQ(next(), "") << "that was an acknowledgement";
  world_.set("user", {});
  world_.remove("cart");
  EXPECT_EQ(next(), "clusters +user -cart");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsDelta, AnEmptySetOfClustersIsSent) {
  World nothing;
  ask(Type::kCluster, {});
  const auto response = session_.next(nothing.now());
  ASSERT_TRUE(response);
  EXPECT_EQ(response->resources_size(), 0);
  EXPECT_FALSE(session_.next(nothing.now()));
}

TEST_F(XdsDelta, AnUnknownNameIsRemovedUntilItAppears) {
  ask(Type::kEndpoints, {"web", "unknown"});
  EXPECT_EQ(next(), "endpoints +web -unknown");
  EXPECT_EQ(next(), "");
  world_.set("unknown", {instance(3)});
  EXPECT_EQ(next(), "endpoints +unknown");
  world_.remove("unknown");
  world_.set("web", {});
  EXPECT_EQ(next(), "endpoints +web -unknown");
}

TEST_F(XdsDelta, AReconnectedClientGetsTheDifference) {
  ask(Type::kCluster, {});
  EXPECT_EQ(next(), "clusters +cart +web");
  session_ = DeltaSession();
  Request resume = request(Type::kCluster, {});
  for (const auto& [name, version] : versions_) {
    (*resume.mutable_initial_resource_versions())[name] = version;
  }
  world_.remove("cart");
  world_.set("user", {});
  ASSERT_FALSE(session_.on_request(resume));
  EXPECT_EQ(next(), "clusters +user -cart");

  session_ = DeltaSession();
  resume = request(Type::kEndpoints, {"user", "web", "cart"});
  (*resume.mutable_initial_resource_versions())["web"] =
      world_.now().find(Type::kEndpoints, "web")->version;
  (*resume.mutable_initial_resource_versions())["user"] = "old";
  (*resume.mutable_initial_resource_versions())["other"] = "not wanted";
  ASSERT_FALSE(session_.on_request(resume));
  EXPECT_EQ(next(), "endpoints +user -cart");
  EXPECT_EQ(next(), "");
}

TEST_F(XdsDelta, SubscribingAgainSendsAgain) {
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints +web");
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints +web");
  ask(Type::kEndpoints, {}, {"web"});
  world_.set("web", {});
  EXPECT_EQ(next(), "");
}

TEST_F(XdsDelta, AnUnsubscribedNameStaysInTheWildcard) {
  ask(Type::kCluster, {"*", "web", "unknown"});
  EXPECT_EQ(next(), "clusters +cart +web -unknown");
  ask(Type::kCluster, {}, {"web", "unknown"});
  EXPECT_EQ(next(), "clusters +web -unknown");
  ask(Type::kCluster, {}, {"*"});
  world_.set("user", {});
  EXPECT_EQ(next(), "");
}

TEST_F(XdsDelta, ARejectedResponseIsNotRepeatedUntilItChanges) {
  ask(Type::kEndpoints, {"web"});
  EXPECT_EQ(next(), "endpoints +web");
  Request rejection = request(Type::kEndpoints, {});
  rejection.set_response_nonce("1");
  rejection.mutable_error_detail()->set_message("no");
  EXPECT_FALSE(session_.on_request(rejection));
  EXPECT_EQ(session_.rejections(), 1u);
  EXPECT_EQ(next(), "");
  world_.set("web", {});
  EXPECT_EQ(next(), "endpoints +web");
}

TEST_F(XdsDelta, ResponsesAndNamesAreBounded) {
  session_ = DeltaSession({.names = 2, .name_size = 10, .response = 1});
  ask(Type::kEndpoints, {"cart", "web"});
  EXPECT_EQ(next(), "endpoints +cart");
  EXPECT_EQ(next(), "endpoints +web");
  EXPECT_EQ(next(), "");
  EXPECT_TRUE(session_.on_request(request(Type::kEndpoints, {"c"})));
  EXPECT_TRUE(session_.on_request(request(Type::kRoute, {"01234567890"})));
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd::xds::test
