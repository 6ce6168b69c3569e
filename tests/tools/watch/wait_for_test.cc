#include "lookout/tools/watch/wait_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "lookout/api/error.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/config.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/bounded_wait.h"
#include "tests/tools/watch/watch_fixture.h"

namespace lookout::watch {
namespace {

using k8s::core::v1::ConfigMap;

class WaitForTest : public test::WatchTest {
 protected:
  std::shared_ptr<Outcome<api::Object>> wait_for_x(ObjectCondition condition,
                                                   std::chrono::milliseconds timeout = 60min) {
    return begin(async_wait_for(source_, "x", std::move(condition), options(timeout)));
  }
  static ObjectCondition at_version(std::string version) {
    return [version](const api::Object& object) {
      return object && object.resource_version() == version;
    };
  }
};

TEST_F(WaitForTest, ChecksAnExistingObject) {
  source_->list_returns({{pod("a/other", 2), pod("a/x", 3)}, "10"});
  EXPECT_EQ(wait_for_x(exists())->get().resource_version(), "3");
  EXPECT_TRUE(source_->watches().empty());
}

TEST_F(WaitForTest, ChecksAnAbsentObject) {
  source_->list_returns({{}, "10"});
  EXPECT_FALSE(wait_for_x(is_deleted("1234"))->get());
}

TEST_F(WaitForTest, FollowsOnlyChangesOfItsObject) {
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  const auto wait = wait_for_x(exists());
  EXPECT_EQ(source_->watches().at(0).resource_version, "10");
  send({added("a/y", 11)});
  EXPECT_TRUE(wait->pending());
  send({added("a/x", 12)});
  EXPECT_EQ(wait->get().resource_version(), "12");
}

TEST_F(WaitForTest, ADeletionCountsAsAbsence) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  const auto wait = wait_for_x(negated(exists()));
  send({modified("a/x", 11), deleted("a/x", 12)});
  EXPECT_FALSE(wait->get());
}

TEST_F(WaitForTest, RetriesTransientErrors) {
  source_->list_throws(rest::TransportError(rest::TransportError::Kind::kRefused, "no"));
  source_->list_throws(api::StatusError::too_many_requests("no", 1));
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  source_->list_returns({{pod("a/x", 30)}, "40"});
  source_->watch_opens();
  const auto wait = wait_for_x(at_version("41"));
  send({modified("a/x", 11), error(api::StatusError::gone("too old"))});
  ASSERT_EQ(source_->watches().size(), 2u);
  EXPECT_EQ(source_->watches().at(1).resource_version, "40");
  send({modified("a/x", 41)});
  EXPECT_EQ(wait->get().resource_version(), "41");
}

TEST_F(WaitForTest, RetriesConnectionErrors) {
  source_->list_throws(rest::ConfigError("the credential plugin failed"));
  source_->list_throws(api::DecodeError("<html>"));
  source_->list_returns({{}, "10"});
  source_->watch_throws(rest::ConfigError("the credential plugin failed"));
  source_->watch_throws(api::DecodeError("<html>"));
  source_->watch_opens();
  const auto wait = wait_for_x(exists());
  EXPECT_EQ(source_->lists().size(), 3u);
  ASSERT_EQ(source_->watches().size(), 3u);
  EXPECT_EQ(source_->watches().at(2).resource_version, "10");
  send({added("a/x", 12)});
  EXPECT_EQ(wait->get().resource_version(), "12");
}

TEST_F(WaitForTest, ThrowsForAnUndecodableEvent) {
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  const auto wait = wait_for_x(exists());
  source_->break_watch(api::DecodeError("not JSON"));
  settle();
  EXPECT_THROW(wait->get(), api::DecodeError);
}

TEST_F(WaitForTest, AnUndecodableObjectOfAListIsNotAbsent) {
  source_->list_returns(
      {.items = {}, .resource_version = "10", .malformed_items = 1, .malformed_keys = {"a/x"}});
  EXPECT_THROW(wait_for_x(is_deleted("1234"))->get(), api::DecodeError);
  // The object may be the one without a readable name.
  source_->list_returns({.items = {}, .resource_version = "10", .malformed_items = 1});
  EXPECT_THROW(wait_for_x(negated(exists()))->get(), api::DecodeError);
  source_->list_returns({.items = {},
                         .resource_version = {},
                         .continue_token = "2",
                         .malformed_items = 1,
                         .malformed_keys = {"a/x"}});
  source_->list_returns({.items = {}, .resource_version = "10"});
  EXPECT_THROW(wait_for_x(exists())->get(), api::DecodeError);
}

TEST_F(WaitForTest, OtherUndecodableObjectsAreIgnored) {
  source_->list_returns({.items = {},
                         .resource_version = "10",
                         .malformed_items = 2,
                         .malformed_keys = {"a/xx", "x/y"}});
  EXPECT_FALSE(wait_for_x(is_deleted("1234"))->get());
  source_->list_returns({.items = {pod("a/x", 3)}, .resource_version = "10", .malformed_items = 1});
  EXPECT_EQ(wait_for_x(exists())->get().resource_version(), "3");
}

TEST_F(WaitForTest, ThrowsARejection) {
  source_->list_throws(api::StatusError::forbidden("", "pods", "", "no"));
  EXPECT_THROW(wait_for_x(exists())->get(), api::StatusError);
  source_->list_returns({{}, "10"});
  source_->watch_throws(api::StatusError::forbidden("", "pods", "", "no"));
  EXPECT_THROW(wait_for_x(exists())->get(), api::StatusError);
}

TEST_F(WaitForTest, EndsAtItsTimeoutOrAStop) {
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  auto wait = wait_for_x(exists(), 10s);
  advance(10s);
  EXPECT_EQ(reason(*wait), Reason::kTimeout);
  wait = wait_for_x(exists(), 10s);  // the list does not arrive
  advance(10s);
  EXPECT_EQ(reason(*wait), Reason::kTimeout);
  clock_->skip_sleeps_below(0s);
  source_->list_throws(api::StatusError::internal_error("no"));
  wait = wait_for_x(exists(), 10s);  // during a pause
  EXPECT_TRUE(wait->pending());
  stop_.request_stop();
  settle();
  EXPECT_EQ(reason(*wait), Reason::kStopped);
}

TEST_F(WaitForTest, ATimeoutSaysWhatIsKnownOfTheObject) {
  const auto message_of = [&](ObjectCondition condition) -> std::string {
    const auto wait = wait_for_x(std::move(condition), 10s);
    advance(10s);
    try {
      wait->get();
    } catch (const WaitError& e) {
      return e.what();
    }
    return "";
  };
  const std::string start = "timed out waiting for the condition: ";
  EXPECT_EQ(message_of(exists()), start + "the server has not answered yet for x");
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  EXPECT_EQ(message_of(exists()), start + "x does not exist");
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  EXPECT_EQ(message_of(at_version("4")), start + "x exists, and does not meet it");
  clock_->skip_sleeps_below(0s);
  source_->list_throws(rest::TransportError(rest::TransportError::Kind::kRefused, "no server"));
  const auto wait = wait_for_x(exists(), 500ms);  // during a pause
  advance(500ms);
  EXPECT_THAT([&] { wait->get(); },
              testing::ThrowsMessage<WaitError>(start + "the state of x is unknown: no server"));
}

TEST_F(WaitForTest, AnExceptionOfTheConditionIsRethrown) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  const auto wait =
      wait_for_x([](const api::Object&) -> bool { throw std::runtime_error("something bad"); });
  EXPECT_THROW(wait->get(), std::runtime_error);
  source_->list_returns({{pod("a/x", 3)}, "10"});
  const auto other =
      wait_for_x([](const api::Object&) -> bool { throw api::DecodeError("no quantity"); });
  EXPECT_THROW(other->get(), api::DecodeError);
}

/// An exception of the condition is no statement about the server.
TEST_F(WaitForTest, AnErrorOfTheConditionIsNotRetried) {
  const ObjectCondition fails = [](const api::Object& object) -> bool {
    if (!object) return false;
    throw api::StatusError::internal_error("mine");
  };
  source_->list_returns({{pod("a/x", 3)}, "10"});
  EXPECT_THROW(wait_for_x(fails)->get(), api::StatusError);
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  const auto wait = wait_for_x(fails);
  send({added("a/x", 11)});
  EXPECT_THROW(wait->get(), api::StatusError);
}

TEST_F(WaitForTest, AnUnreachableTimeoutIsNoLimit) {
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  const auto wait = wait_for_x(exists(), rest::kNoTimeout);
  advance(24h);
  EXPECT_TRUE(wait->pending());
  send({added("a/x", 12)});
  EXPECT_EQ(wait->get().resource_version(), "12");
}

// ------------------------------------------------------------------------------- with a server

class WaitForServerTest : public testing::Test {
 protected:
  static api::Object map(std::string_view name) {
    return api::Object::parse(R"({"metadata":{"name":")" + std::string(name) + R"("}})");
  }
  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
};

TEST_F(WaitForServerTest, WaitsForTypedObjects) {
  auto coming = std::async(std::launch::async, [&] {
    return wait_for(maps_, "settings",
                    [](const ConfigMap& m) { return m && m.data()["colour"] == "blue"; },
                    {.timeout = 60s});
  });
  maps_.create(map("other"));
  maps_.create(map("settings"));
  maps_.patch("settings", rest::PatchType::kMerge, R"({"data":{"colour":"blue"}})");
  const ConfigMap blue = lookout::test::get(coming);
  EXPECT_EQ(blue.data()["colour"], "blue");

  auto going = std::async(std::launch::async, [&] {
    return wait_for(maps_, "settings", is_deleted(blue.uid()), {.timeout = 60s});
  });
  maps_.remove("settings");
  maps_.create(map("settings"));
  const ConfigMap next = lookout::test::get(going);
  EXPECT_TRUE(!next || next.uid() != blue.uid());
}

TEST_F(WaitForServerTest, ANameMayContainSelectorSyntax) {
  const auto roles = client_.resource(
      api::Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false));
  roles.create(api::Object::parse(R"({"metadata":{"name":"a=b,c\\d"},"rules":[]})"));
  EXPECT_EQ(wait_for(roles, "a=b,c\\d", exists(), {.timeout = 60s}).name(), "a=b,c\\d");
}

TEST_F(WaitForServerTest, HasACoroutineForm) {
  auto waiting = std::async(std::launch::async, [&] {
    return client_.loop().run(async_wait_for(maps_, "settings", exists(), {.timeout = 60s}));
  });
  maps_.create(map("settings"));
  EXPECT_EQ(lookout::test::get(waiting).name(), "settings");
}

TEST_F(WaitForServerTest, EndsAtItsTimeout) {
  EXPECT_THROW(wait_for(maps_, "settings", exists(), {.timeout = 20ms}), WaitError);
}

TEST_F(WaitForServerTest, UntilReceivesEveryEvent) {
  const auto source = std::make_shared<cache::ListWatch>(maps_.dynamic());
  const auto from = maps_.list().resource_version;
  maps_.create(map("settings"));
  maps_.remove("settings");
  const auto is = [](api::EventType type) {
    return [type](const api::WatchEvent& event) { return event.type == type; };
  };
  const auto last =
      until(client_.loop(), source, from,
            {is(api::EventType::kAdded), is(api::EventType::kDeleted)}, {.timeout = 60s});
  EXPECT_EQ(last.object.name(), "settings");
  EXPECT_THROW(until_without_retry(client_.loop(), source, from, {is(api::EventType::kModified)},
                                   {.timeout = 20ms}),
               WaitError);
  maps_.create(map("more"));
  EXPECT_EQ(list_watch_until(client_.loop(), source, {is(api::EventType::kAdded)}, {.timeout = 60s})
                .object.kind(),
            "ConfigMap");
  EXPECT_TRUE(
      until_with_sync(client_.loop(), source, {}, {is(api::EventType::kAdded)}, {.timeout = 60s})
          .has_value());
}

// ---------------------------------------------------------------------------------- conditions

api::Object with_status(std::string_view status, std::string_view spec = "{}") {
  return api::Object::parse(R"({"metadata":{"name":"x","generation":3},"spec":)" +
                            std::string(spec) + R"(,"status":)" + std::string(status) + "}");
}
api::Object with_condition(std::string_view type, std::string_view status,
                           std::string_view reason = "") {
  return with_status(R"({"observedGeneration":3,"conditions":[
      {"type":"Other","status":"True"},{"type":")" +
                     std::string(type) + R"(","status":")" + std::string(status) +
                     R"(","reason":")" + std::string(reason) + R"("}]})");
}

TEST(ConditionsTest, CheckStatusConditions) {
  EXPECT_TRUE(is_crd_established()(with_condition("Established", "True")));
  EXPECT_FALSE(is_crd_established()(with_condition("Established", "False")));
  EXPECT_FALSE(is_crd_established()(with_status("{}")));
  EXPECT_FALSE(is_crd_established()(api::Object()));
  EXPECT_TRUE(is_job_completed()(with_condition("Complete", "True")));
  EXPECT_FALSE(is_job_completed()(with_condition("Failed", "True")));
  EXPECT_FALSE(is_job_completed()(with_status(R"({"active":1})")));
  EXPECT_FALSE(is_job_completed()(api::Object()));
  EXPECT_TRUE(is_pod_ready()(with_condition("Ready", "True")));
  EXPECT_FALSE(is_pod_ready()(with_condition("Ready", "Unknown")));
  EXPECT_TRUE(has_condition("Failed", "False")(with_condition("Failed", "False")));
}

TEST(ConditionsTest, CheckDeployments) {
  const auto completed = is_deployment_completed();
  EXPECT_TRUE(completed(with_condition("Progressing", "True", "NewReplicaSetAvailable")));
  EXPECT_FALSE(completed(with_condition("Progressing", "True", "ReplicaSetUpdated")));
  EXPECT_FALSE(completed(api::Object()));
  EXPECT_FALSE(completed(with_status(R"({"observedGeneration":2,"conditions":[
      {"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]})")))
      << "the controller has not seen the newest spec";
}

TEST(ConditionsTest, CheckPods) {
  EXPECT_TRUE(is_pod_running()(with_status(R"({"phase":"Running"})")));
  EXPECT_FALSE(is_pod_running()(with_status(R"({"phase":"Pending"})")));
  EXPECT_FALSE(is_pod_running()(api::Object()));
}

TEST(ConditionsTest, CheckLoadBalancers) {
  constexpr auto kService = R"({"type":"LoadBalancer"})";
  const auto provisioned = is_service_load_balancer_provisioned();
  EXPECT_TRUE(
      provisioned(with_status(R"({"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}})", kService)));
  EXPECT_TRUE(provisioned(
      with_status(R"({"loadBalancer":{"ingress":[{"hostname":"a.example"}]}})", kService)));
  EXPECT_FALSE(
      provisioned(with_status(R"({"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{}]}})", kService)));
  EXPECT_FALSE(provisioned(with_status(R"({"loadBalancer":{}})", kService)));
  EXPECT_TRUE(provisioned(with_status("{}", R"({"type":"ClusterIP"})"))) << "it needs none";
  EXPECT_FALSE(provisioned(api::Object()));
  EXPECT_TRUE(
      is_ingress_provisioned()(with_status(R"({"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}})")));
  EXPECT_TRUE(is_ingress_provisioned()(
      with_status(R"({"loadBalancer":{"ingress":[{"hostname":"a.example"}]}})")));
  EXPECT_FALSE(is_ingress_provisioned()(with_status(R"({"loadBalancer":{"ingress":[{}]}})")));
  EXPECT_FALSE(is_ingress_provisioned()(with_status(R"({"loadBalancer":{}})")));
  EXPECT_FALSE(is_ingress_provisioned()(with_status("{}")));
  EXPECT_FALSE(is_ingress_provisioned()(api::Object()));
}

TEST(ConditionsTest, CheckDeletionsAndCombinations) {
  const auto object = api::Object::parse(R"({"metadata":{"name":"x","uid":"1"}})");
  EXPECT_FALSE(is_deleted("1")(object));
  EXPECT_TRUE(is_deleted("2")(object)) << "another one has its name";
  EXPECT_TRUE(is_deleted("1")(api::Object()));
  EXPECT_TRUE(all_of(exists(), is_deleted("2"))(object));
  EXPECT_FALSE(all_of(exists(), is_deleted("1"))(object));
  EXPECT_TRUE(any_of(exists(), is_deleted("1"))(object));
  EXPECT_FALSE(any_of(negated(exists()), is_deleted("1"))(object));
}

}  // namespace
}  // namespace lookout::watch
