#include "lookout/controller/create_or_update.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/tools/retry.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

using k8s::apps::v1::Deployment;
using k8s::apps::v1::DeploymentDraft;
using k8s::core::v1::ConfigMapDraft;

class CreateOrUpdateTest : public ManagerFixture {
 protected:
  static void web(const DeploymentDraft& web, int replicas) {
    web.spec().set_replicas(replicas);
    web.spec().selector().match_labels().set("app", "web");
    web.spec().pod_template().metadata().labels().set("app", "web");
    web.spec().pod_template().spec().containers().get_or_append("web").set_image("web:1");
  }

  const rest::TypedClient<Deployment> deployments_ = client_.resource<Deployment>("default");
};

TEST_F(CreateOrUpdateTest, CreatesUpdatesAndSkipsEqualObjects) {
  const auto made = create_or_update(deployments_, "web", [](auto& d) { web(d, 1); });
  EXPECT_EQ(made.written, Written::kCreated);
  EXPECT_EQ(made.object.key(), "default/web");
  // Defaults of the server do not count as a difference.
  EXPECT_EQ(made.object.spec().pod_template().spec().restart_policy(), "Always");
  const auto same = create_or_update(deployments_, "web", [](auto& d) { web(d, 1); });
  EXPECT_EQ(same.written, Written::kUnchanged);
  EXPECT_EQ(same.object.resource_version(), made.object.resource_version());
  const auto changed = create_or_update(deployments_, "web", [](auto& d) { web(d, 2); });
  EXPECT_EQ(changed.written, Written::kUpdated);
  EXPECT_EQ(changed.object.spec().replicas(), 2);
  EXPECT_EQ(changed.object.spec().pod_template().spec().restart_policy(), "Always");
}

TEST_F(CreateOrUpdateTest, ZeroValuesThatTheServerOmitsAreNoDifference) {
  const auto mutate = [](const DeploymentDraft& d) {
    web(d, 1);
    d.spec().set_paused(false);
    d.spec().pod_template().spec().containers().get_or_append("web").set_tty(false);
  };
  const auto made = create_or_update(deployments_, "web", mutate);
  EXPECT_EQ(made.written, Written::kCreated);
  const auto same = create_or_update(deployments_, "web", mutate);
  EXPECT_EQ(same.written, Written::kUnchanged);
  EXPECT_EQ(same.object.resource_version(), made.object.resource_version());
}

TEST_F(CreateOrUpdateTest, PatchesTheObjectAndItsStatus) {
  const auto with_status = [](int replicas, int ready) {
    return [=](const DeploymentDraft& d) {
      web(d, replicas);
      d.status().set_replicas(ready).set_observed_generation(1);
    };
  };
  EXPECT_EQ(create_or_patch(deployments_, "web", with_status(1, 0)).written, Written::kCreated);
  EXPECT_EQ(lookout::test::held(deployments_.get("web")).status().observed_generation(), 1);
  EXPECT_EQ(create_or_patch(deployments_, "web", with_status(1, 0)).written, Written::kUnchanged);
  EXPECT_EQ(create_or_patch(deployments_, "web", with_status(1, 1)).written,
            Written::kUpdatedStatusOnly);
  EXPECT_EQ(create_or_patch(deployments_, "web", with_status(2, 2)).written,
            Written::kUpdatedStatus);
  const auto now = deployments_.get("web");
  EXPECT_EQ(now.spec().replicas(), 2);
  EXPECT_EQ(now.status().replicas(), 2);
}

TEST_F(CreateOrUpdateTest, RetriesAfterAConflict) {
  int calls = 0;
  const auto made = create_or_update(maps_, "m", [&](const ConfigMapDraft& map) {
    if (++calls == 1) maps_.create(ConfigMap::draft("m", "default").build());
    if (calls == 2) maps_.patch("m", rest::PatchType::kMerge, R"({"data":{"other":"1"}})");
    map.data().set("mine", std::to_string(calls));
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(made.written, Written::kUpdated);
  EXPECT_EQ(made.object.data()["other"], "1");
  EXPECT_EQ(made.object.data()["mine"], "3");
}

TEST_F(CreateOrUpdateTest, GivesUpAfterFiveAttempts) {
  int calls = 0;
  maps_.create(ConfigMap::draft("m", "default").build());
  EXPECT_THROW(create_or_update(maps_, "m",
                                [&](const ConfigMapDraft& map) {
                                  maps_.patch(
                                      "m", rest::PatchType::kMerge,
                                      R"({"data":{"n":")" + std::to_string(++calls) + R"("}})");
                                  map.data().set("mine", "x");
                                }),
               api::StatusError);
  EXPECT_EQ(calls, 5);
}

TEST_F(CreateOrUpdateTest, RejectsAnotherName) {
  EXPECT_THROW(
      create_or_update(maps_, "m", [](const ConfigMapDraft& map) { map.metadata().set_name("n"); }),
      InvalidArgument);
  EXPECT_TRUE(maps_.list().items.empty());
}

TEST_F(CreateOrUpdateTest, HasACoroutineForm) {
  auto task = async_create_or_patch(maps_, "m",
                                    [](const ConfigMapDraft& map) { map.data().set("a", "b"); });
  EXPECT_EQ(client_.loop().run(std::move(task)).written, Written::kCreated);
}

TEST_F(CreateOrUpdateTest, OnConflictRetriesConflicts) {
  maps_.create(ConfigMap::draft("m", "default").build());
  int calls = 0;
  retry::on_conflict([&] {
    const auto change = maps_.get("m").edit();
    if (++calls < 3) {
      maps_.patch("m", rest::PatchType::kMerge,
                  R"({"data":{"n":")" + std::to_string(calls) + R"("}})");
    }
    change.data().set("mine", "x");
    maps_.update(change.build());
  });
  EXPECT_EQ(calls, 3);

  // Other errors are rethrown at once.
  calls = 0;
  EXPECT_THROW(retry::on_conflict([&] {
                 ++calls;
                 maps_.get("missing");
               }),
               api::StatusError);
  EXPECT_EQ(calls, 1);

  // A stop ends the retries.
  std::stop_source stopped;
  stopped.request_stop();
  calls = 0;
  EXPECT_THROW(retry::on_conflict(
                   [&] {
                     ++calls;
                     throw api::StatusError::conflict("", "configmaps", "m", "again");
                   },
                   retry::kDefaultBackoff, stopped.get_token()),
               api::StatusError);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lookout::controller
