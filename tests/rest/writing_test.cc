// Writing through the client, against the embedded server.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/certificates/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "lookout/rest/subresources.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::rest {
namespace {

using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Pod;

// A certificate signing request for the user web.
constexpr std::string_view kSigningRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHJMHACAQAwDjEMMAoGA1UEAwwDd2ViMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEE+6CnvLWNF45uH9srGOOEOtPnLuKTeGizWGKI7vy9/UlgBC7wRuo10ski2TC
4AoCAbCSlHi00FcWtyPbGqjyDKAAMAoGCCqGSM49BAMCA0kAMEYCIQC99D1CkL4a
eTWy2LoWmeucXZH9U/EnSN96AJ+hLKObJQIhAIMNHh/XrPhc4Uss1sAYI/gVxB/6
LO3q8kiE9jEPSJBt
-----END CERTIFICATE REQUEST-----
)";

class WritingTest : public testing::Test {
 protected:
  static k8s::apps::v1::DeploymentDraft web() {
    auto web = Deployment::draft("web", "default");
    web.spec().set_replicas(1);
    web.spec().selector().match_labels().set("app", "web");
    web.spec().pod_template().metadata().labels().set("app", "web");
    web.spec().pod_template().spec().containers().append("web").set_image("web:1");
    return web;
  }

  static k8s::core::v1::PodDraft pod(const std::string& name) {
    auto pod = Pod::draft(name, "default");
    pod.spec().containers().append("main").set_image("main:1");
    return pod;
  }

  const apiserver::Server server_;
  const Client client_{server_.client_config()};
  const TypedClient<Deployment> deployments_ = client_.resource<Deployment>("default");
  const TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
  const TypedClient<Pod> pods_ = client_.resource<Pod>("default");
};

TEST_F(WritingTest, FindReturnsNothingForAbsentObjects) {
  EXPECT_FALSE(maps_.find("m"));
  maps_.create(ConfigMap::draft("m", "default"));
  EXPECT_EQ(maps_.find("m").name(), "m");
  EXPECT_THROW(client_.resource<ConfigMap>("default")
                   .with({.timeout = std::chrono::milliseconds(1)})
                   .dynamic()
                   .find(""),
               InvalidArgument);
}

TEST_F(WritingTest, APatchSendsTheChangesOfADraft) {
  const Deployment made = deployments_.create(web());
  const auto change = made.edit();
  change.spec().set_replicas(5);
  change.metadata().annotations().set("note", "x");
  const Deployment patched = deployments_.patch(change);
  EXPECT_EQ(patched.spec().replicas(), 5);
  EXPECT_EQ(patched.metadata().annotations()["note"], "x");
  EXPECT_EQ(patched.spec().pod_template().spec().containers()[0].image(), "web:1");
}

TEST_F(WritingTest, APatchWithoutAChangeMakesNoRequest) {
  const Deployment made = deployments_.create(web());
  const auto before = server_.stats().requests;
  EXPECT_TRUE(deployments_.patch(made.edit()).same(made));
  EXPECT_TRUE(deployments_.patch_status(made.edit()).same(made));
  EXPECT_EQ(server_.stats().requests, before);
}

TEST_F(WritingTest, APatchFailsAfterAConcurrentChange) {
  const Deployment made = deployments_.create(web());
  const auto change = made.edit();
  change.spec().set_replicas(2);
  deployments_.patch("web", PatchType::kMerge, R"({"metadata":{"labels":{"x":"y"}}})");
  try {
    deployments_.patch(change, {.if_unchanged = true});
    FAIL() << "it was patched";
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_conflict(e));
  }
  EXPECT_EQ(lookout::test::held(deployments_.patch(change)).spec().replicas(), 2);
  EXPECT_THROW(deployments_.patch(web()), InvalidArgument);
}

TEST_F(WritingTest, AnUpdateReplacesTheObjectAndDetectsConflicts) {
  const ConfigMap made = maps_.create(ConfigMap::draft("m", "default"));
  const auto first = made.edit();
  const auto second = made.edit();
  first.data().set("a", "1");
  second.data().set("b", "2");
  EXPECT_EQ(lookout::test::held(maps_.update(first)).data()["a"], "1");
  EXPECT_THROW(maps_.update(second), api::StatusError);
  EXPECT_EQ(lookout::test::held(maps_.get("m")).data().size(), 1u);
}

TEST_F(WritingTest, StatusIsASubresource) {
  const Deployment made = deployments_.create(web());
  const auto change = made.edit();
  change.spec().set_replicas(7);
  change.status().set_replicas(3).set_observed_generation(1);
  const Deployment patched = deployments_.patch_status(change);
  EXPECT_EQ(patched.status().replicas(), 3);
  EXPECT_EQ(patched.spec().replicas(), 1);
  const auto whole = patched.edit();
  whole.status().set_replicas(4);
  EXPECT_EQ(lookout::test::held(deployments_.update_status(whole)).status().replicas(), 4);
}

TEST_F(WritingTest, AClientOfAllNamespacesWritesToTheObjectsNamespace) {
  const auto everywhere = client_.resource<ConfigMap>();
  const ConfigMap made = everywhere.create(ConfigMap::draft("m", "default"));
  const auto change = made.edit();
  change.data().set("a", "1");
  EXPECT_EQ(lookout::test::held(everywhere.patch(change)).data()["a"], "1");
}

TEST_F(WritingTest, ApplySetsTheFieldManager) {
  const auto nobody =
      lookout::test::thrown<InvalidArgument>([&] { deployments_.apply(web(), ApplyOptions{}); });
  ASSERT_TRUE(nobody);
  EXPECT_THAT(nobody->what(), HasSubstr("set ApplyOptions::field_manager"));
  const auto read = api::Object::parse(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","managedFields":[]}})");
  EXPECT_THROW(deployments_.dynamic().apply(read, ApplyOptions{"me"}), InvalidArgument);
}

TEST_F(WritingTest, TheStatusIsApplied) {
  deployments_.apply(web(), {.field_manager = "deployer"});
  const auto status = Deployment::draft("web", "default");
  status.spec().set_replicas(9);
  status.status().set_replicas(3);
  const Deployment applied = apply_status(deployments_, status, {.field_manager = "counter"});
  EXPECT_EQ(applied.status().replicas(), 3);
  EXPECT_EQ(applied.spec().replicas(), 1) << "only the status is written";

  status.status().set_replicas(4);
  const auto refused = lookout::test::thrown<api::StatusError>(
      [&] { apply_status(deployments_, status, {.field_manager = "other"}); });
  ASSERT_TRUE(refused);
  EXPECT_TRUE(api::is_conflict(*refused)) << refused->what();
  const ApplyOptions force{.field_manager = "other", .force = true};
  const Deployment forced(
      client_.loop().run(async_apply_status(deployments_.dynamic(), status, force)));
  EXPECT_EQ(forced.status().replicas(), 4);
}

TEST_F(WritingTest, ScaleIsReadAndSet) {
  deployments_.create(web());
  EXPECT_EQ(lookout::test::held(get_scale(deployments_.dynamic(), "web")).spec().replicas(), 1);
  EXPECT_EQ(lookout::test::held(set_scale(deployments_.dynamic(), "web", 4)).spec().replicas(), 4);
  EXPECT_EQ(lookout::test::held(deployments_.get("web")).spec().replicas(), 4);
}

TEST_F(WritingTest, PodsAreBoundAndEvicted) {
  pods_.create(pod("a"));
  bind(pods_.dynamic(), "a", "node-1");
  EXPECT_EQ(lookout::test::held(pods_.get("a")).spec().node_name(), "node-1");
  evict(pods_.dynamic(), "a", {.grace_period_seconds = 0});
  EXPECT_FALSE(pods_.find("a"));
  EXPECT_THROW(evict(pods_.dynamic(), "a"), api::StatusError);
}

TEST_F(WritingTest, ABindingChecksTheUidOfThePod) {
  const auto seen = pods_.create(pod("a"));
  pods_.remove("a", {.grace_period_seconds = 0});
  const auto other = pods_.create(pod("a"));
  try {
    bind(pods_, seen, "node-1");
    ADD_FAILURE() << "another pod was bound";
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_conflict(e)) << e.what();
  }
  bind(pods_, other, "node-2");
  EXPECT_EQ(lookout::test::held(pods_.get("a")).spec().node_name(), "node-2");
}

TEST_F(WritingTest, LogsAreReadIfTheyExist) {
  pods_.create(pod("a"));
  EXPECT_FALSE(pods_.logs("a").next()) << "a pod that nobody has run has an empty log";
  const auto code = [&](const std::string& name, LogOptions options) {
    try {
      pods_.logs(name, std::move(options));
    } catch (const api::StatusError& e) {
      return e.code();
    }
    return 0;
  };
  EXPECT_EQ(code("a", {.container = "other"}), 400);
  EXPECT_EQ(code("a", {.tail_lines = -1}), 422);
  EXPECT_EQ(code("none", {}), 404);
}

TEST_F(WritingTest, FindOfASubresourceReturnsNothingIfAbsent) {
  EXPECT_FALSE(deployments_.find_subresource("web", "scale"));
  deployments_.create(web());
  EXPECT_EQ(deployments_.find_subresource("web", "scale").kind(), "Scale");
}

TEST_F(WritingTest, ACertificateSigningRequestIsApproved) {
  using k8s::certificates::v1::CertificateSigningRequest;
  const auto requests = client_.resource<CertificateSigningRequest>();
  const auto wanted = CertificateSigningRequest::draft("web");
  wanted.spec().set_signer_name("example.com/web").set_request(kSigningRequest);
  wanted.spec().usages().append("client auth");
  requests.create(wanted);
  const auto answered = set_approval(requests.dynamic(), "web", {.reason = "Tested"});
  ASSERT_EQ(answered.status().conditions().size(), 1u);
  EXPECT_EQ(answered.status().conditions()[0].type(), "Approved");
  EXPECT_EQ(answered.status().conditions()[0].status(), "True");
  EXPECT_EQ(answered.status().conditions()[0].reason(), "Tested");
  EXPECT_THROW(set_approval(requests.dynamic(), "other", {}), api::StatusError);
}

TEST_F(WritingTest, SelectorsMayBeValues) {
  auto labelled = pod("a");
  labelled.metadata().labels().set("app", "web");
  pods_.create(labelled);
  pods_.create(pod("b"));
  const auto selector = api::labels::parse("app in (web, db)");
  const auto listed = pods_.list({.label_selector = selector});
  ASSERT_EQ(listed.items.size(), 1u);
  EXPECT_EQ(listed.items[0].name(), "a");
  pods_.remove_collection({.grace_period_seconds = 0}, {.label_selector = selector});
  EXPECT_EQ(pods_.list().items.size(), 1u);
}

TEST_F(WritingTest, EveryVerbHasACoroutineForm) {
  const auto task = [&]() -> Awaitable<void> {
    Deployment made = co_await deployments_.async_create(web());
    const auto change = made.edit();
    change.spec().set_replicas(2);
    made = co_await deployments_.async_patch(change);
    EXPECT_EQ(made.spec().replicas(), 2);
    const ListOptions all;
    const List<Deployment> listed = co_await deployments_.async_list(all);
    EXPECT_EQ(listed.items.size(), 1u);
    const auto scale = co_await async_set_scale(deployments_.dynamic(), "web", 3);
    EXPECT_EQ(scale.spec().replicas(), 3);
    EXPECT_FALSE(co_await deployments_.async_find("other"));
    ListOptions from_now;
    from_now.resource_version = listed.resource_version;
    auto watch = co_await deployments_.async_watch(from_now);
    std::vector<TypedWatchEvent<Deployment>> events;
    EXPECT_TRUE(co_await watch.async_next(events));
    EXPECT_EQ(events.at(0).type, api::EventType::kModified);
    EXPECT_EQ(events.at(0).object.spec().replicas(), 3);
    const DeleteOptions now;
    co_await deployments_.async_remove("web", now);
    EXPECT_FALSE(co_await deployments_.async_find("web"));
  };
  client_.loop().run(task());
}

}  // namespace
}  // namespace lookout::rest
