// The contract that controllers rely on: the same scenarios against the embedded server and against
// a real kube-apiserver.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "tests/controller/manager_fixture.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/eventually.h"

namespace lookout::controller {
namespace {

using namespace std::chrono_literals;
using k8s::apps::v1::Deployment;
using k8s::apps::v1::DeploymentDraft;
using k8s::core::v1::ConfigMap;
using test::eventually;

enum class Kind { kEmbedded, kReal };

/// Starts once for all tests.
const rest::Config& real_server(const std::filesystem::path& program) {
  static const test::KubeApiserver server(program);
  static const rest::Config config = server.config();
  return config;
}

/// Each test has its own namespace, with the ConfigMap "site", which says what to deploy.
class ControllerContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    rest::Config config;
    if (GetParam() == Kind::kReal) {
      const auto program = test::KubeApiserver::find_program();
      if (!program) GTEST_SKIP() << "*** no kube-apiserver or no etcd ***";
      config = real_server(*program);
    } else {
      server_ = std::make_unique<apiserver::Server>();
      config = server_->client_config();
    }
    client_ = std::make_unique<rest::Client>(config);
    const auto space = k8s::core::v1::Namespace::draft("");
    space.metadata().set_generate_name("contract-");
    const auto made = client_->resource<k8s::core::v1::Namespace>().create(space);
    ns_ = made.name();
    const auto site = ConfigMap::draft("site", ns_);
    site.data().set("image", "web:1");
    maps().create(site);
  }

  /// A manager with a controller for ConfigMaps that owns Deployments and other ConfigMaps.
  template <class Function>
  Manager& manager(Function function) {
    ManagerOptions options;
    options.cache.namespaces = {ns_};
    manager_ = std::make_unique<Manager>(*client_, options);
    Builder<ConfigMap>(*manager_)
        .owns<Deployment>()
        .template owns<ConfigMap>()
        .source(again_)
        .named("contract")
        .reconcile([this, function](const Request& request, Context& context) -> Result {
          if (request.name == "site") {
            function(request, context);
            ++runs_;
          }
          return {};
        });
    return *manager_;
  }
  /// Returns when the controller has run once more and is idle.
  void run_again() {
    const int before = runs_;
    again_->send(Request(ns_, "site"));
    ASSERT_TRUE(eventually([&] { return runs_ > before; }));
  }

  static void describe(const DeploymentDraft& web, const std::string& image) {
    web.spec().set_replicas(2);
    web.spec().selector().match_labels().set("app", "web");
    web.spec().pod_template().metadata().labels().set("app", "web");
    web.spec().pod_template().spec().containers().get_or_append("web").set_image(image);
  }

  rest::TypedClient<ConfigMap> maps() const { return client_->resource<ConfigMap>(ns_); }
  rest::TypedClient<Deployment> deployments() const { return client_->resource<Deployment>(ns_); }

  std::unique_ptr<apiserver::Server> server_;
  std::unique_ptr<rest::Client> client_;
  std::string ns_;
  const std::shared_ptr<Channel> again_ = std::make_shared<Channel>();
  std::atomic<int> runs_{0};
  std::unique_ptr<Manager> manager_;
};

TEST_P(ControllerContract, CreateOrUpdateKeepsDefaultsOfTheServer) {
  std::atomic<int> writes{0};
  const Running running(manager([&](const Request& request, Context& context) {
    const auto site = context.get<ConfigMap>(request);
    const auto web = context.create_or_update<Deployment>(
        Request(request.ns, "web"),
        [&](const auto& draft) { describe(draft, std::string(site.data()["image"])); });
    if (web.written != Written::kUnchanged) ++writes;
  }));
  ASSERT_TRUE(eventually([&] { return writes == 1; }));
  const Deployment made = deployments().get("web");
  EXPECT_EQ(made.spec().revision_history_limit(), 10) << "a default";
  run_again();
  run_again();
  EXPECT_EQ(writes, 1);

  maps().patch("site", rest::PatchType::kMerge, R"({"data":{"image":"web:2"}})");
  ASSERT_TRUE(eventually([&] { return writes == 2; }));
  run_again();
  EXPECT_EQ(writes, 2);
  const Deployment changed = deployments().get("web");
  EXPECT_EQ(changed["spec"]["template"]["spec"]["containers"][0]["image"].as_string(), "web:2");
}

TEST_P(ControllerContract, ADeletedOwnedObjectIsRecreated) {
  const Running running(manager([&](const Request& request, Context& context) {
    context.create_or_update<Deployment>(Request(request.ns, "web"),
                                         [](const auto& draft) { describe(draft, "web:1"); });
  }));
  ASSERT_TRUE(eventually([&] { return bool(deployments().find("web")); }));
  const Deployment first = deployments().get("web");
  const auto owner = controller_of(first);
  ASSERT_TRUE(owner);
  const ConfigMap site = maps().get("site");
  EXPECT_EQ(owner->uid(), site.uid());
  deployments().remove("web");
  EXPECT_TRUE(eventually([&] {
    const Deployment now = deployments().find("web");
    return now && now.uid() != first.uid();
  }));
}

TEST_P(ControllerContract, ARunSeesTheWritesOfThePreviousOne) {
  // With generated names, a controller that does not see its own writes creates a second object.
  const Running running(manager([&](const Request& request, Context& context) {
    for (const ConfigMap& map : context.list<ConfigMap>(request.ns)) {
      if (controller_of(map)) return;
    }
    const auto page = ConfigMap::draft("", request.ns);
    page.metadata().set_generate_name("page-");
    context.create(page);
    again_->send(request);
  }));
  ASSERT_TRUE(eventually([&] { return runs_ >= 2; }));
  for (int i = 0; i < 5; ++i) run_again();
  int pages = 0;
  const auto all = maps().list();
  for (const ConfigMap& map : all.items) pages += controller_of(map) ? 1 : 0;
  EXPECT_EQ(pages, 1);
}

TEST_P(ControllerContract, AnObjectWithAFinalizerIsRemovedAfterItsCleanUp) {
  std::atomic<int> cleaned{0};
  const Running running(manager([&](const Request& request, Context& context) {
    const auto site = context.find<ConfigMap>(request);
    if (site) context.finalize(*site, "example.com/contract", [&] { ++cleaned; });
  }));
  ASSERT_TRUE(eventually([&] {
    const ConfigMap site = maps().get("site");
    return site.metadata().finalizers().size() == 1;
  }));
  EXPECT_EQ(cleaned, 0);
  maps().remove("site");
  EXPECT_TRUE(eventually([&] { return !maps().find("site"); }));
  EXPECT_EQ(cleaned, 1);
}

TEST_P(ControllerContract, AnUnchangedStatusIsNotWritten) {
  const Running running(manager([&](const Request& request, Context& context) {
    const auto web = context.create_or_update<Deployment>(
        Request(request.ns, "web"), [](const auto& draft) { describe(draft, "web:1"); });
    const auto change = web.object.edit();
    change.status().set_replicas(2).set_ready_replicas(1);
    context.patch_status(change);
  }));
  ASSERT_TRUE(eventually([&] {
    const Deployment web = deployments().find("web");
    return web && web.status().ready_replicas() == 1;
  }));
  run_again();
  const Deployment before = deployments().get("web");
  run_again();
  const Deployment after = deployments().get("web");
  EXPECT_EQ(after.resource_version(), before.resource_version());
  EXPECT_EQ(after.spec().replicas(), 2);
}

TEST_P(ControllerContract, ApplyOwnsItsFields) {
  const Running running(manager([&](const Request& request, Context& context) {
    const auto draft = Deployment::draft("web", request.ns);
    describe(draft, "web:1");
    context.apply(draft);
  }));
  ASSERT_TRUE(eventually([&] { return runs_ >= 1; }));
  const Deployment made = deployments().get("web");
  EXPECT_TRUE(controller_of(made));
  const auto managers = made.metadata().managed_fields();
  ASSERT_EQ(managers.size(), 1u);
  EXPECT_EQ(managers[0].manager(), "contract");
  EXPECT_EQ(managers[0].operation(), "Apply");

  // Applying again changes nothing; changes by others are reverted.
  run_again();
  run_again();
  const Deployment same = deployments().get("web");
  EXPECT_EQ(same.resource_version(), made.resource_version());
  deployments().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":7}})");
  EXPECT_TRUE(eventually([&] {
    const Deployment web = deployments().get("web");
    return web.spec().replicas() == 2;
  }));
}

INSTANTIATE_TEST_SUITE_P(Servers, ControllerContract, testing::Values(Kind::kEmbedded, Kind::kReal),
                         [](const auto& kind) {
                           return kind.param == Kind::kReal ? "Real" : "Embedded";
                         });

}  // namespace
}  // namespace lookout::controller
