#include "website_controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lookout/apiserver/server.h>
#include <lookout/base/yaml_tree.h>
#include <lookout/controller/conditions.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/apiextensions/v1.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/lookout.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "eventually.h"
#include "website_types.h"

namespace website {
namespace {

using namespace lookout;
using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Service;
using v1::Website;

/// An API server with the CRD, and the running controller. There are no nodes: the tests write the
/// status of Deployments.
class WebsiteControllerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(CONFIG_DIR "/crd.yaml");
    const std::string crd{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    client_.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(
        api::Object::parse(to_json(YamlTree(crd).root())));
    start();
  }
  void start() {
    manager_ = std::make_unique<controller::Manager>(client_);
    add_website_controller(*manager_);
    running_ = std::jthread([this](const std::stop_token& stop) { manager_->run(stop); });
  }
  void stop() {
    running_ = {};
    manager_.reset();
  }

  Website make(const std::string& name, const std::string& image = "web:1") const {
    const auto draft = Website::draft(name, "default");
    draft.spec().set_image(image);
    return sites_.create(draft);
  }
  /// Writes the status that the Deployment controller would write.
  void become_ready(const std::string& name, std::int32_t replicas) const {
    const auto change = deployments_.get(name).edit();
    change.status().set_replicas(replicas).set_ready_replicas(replicas);
    deployments_.patch_status(change);
  }
  std::string condition(const std::string& name) const {
    const auto site = sites_.get(name);
    for (const auto& each : site.status().conditions()) {
      if (each.type() == "Ready")
        return fmt::format("{} {} {}", each.status(), each.reason(), each.message());
    }
    return "";
  }
  /// The address of a website in the directory; empty if there is none.
  std::string entry(const std::string& name) const {
    const auto directory = maps_.find("websites");
    return directory ? std::string(directory.data()[name]) : "";
  }
  template <class T>
  std::size_t count(const rest::TypedClient<T>& objects) const {
    const auto list = objects.list();
    return static_cast<std::size_t>(std::ranges::distance(list.items));
  }
  double metric(const std::string& ready) const {
    std::vector<metrics::Sample> samples;
    manager_->collect(samples);
    for (const auto& sample : samples) {
      if (sample.name == "websites" && sample.labels[0].second == ready) return sample.value;
    }
    return -1;
  }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<Website> sites_ = client_.resource<Website>("default");
  const rest::TypedClient<Deployment> deployments_ = client_.resource<Deployment>("default");
  const rest::TypedClient<Service> services_ = client_.resource<Service>("default");
  const rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
  std::unique_ptr<controller::Manager> manager_;
  std::jthread running_;  // last: ends before the members that it uses
};

TEST_F(WebsiteControllerTest, CreatesADeploymentAndAServiceAndReportsStatus) {
  const auto site = make("shop");
  ASSERT_TRUE(eventually([&] { return !entry("shop").empty(); }));
  EXPECT_EQ(entry("shop"), "http://shop.default.svc:80");
  const auto deployment = deployments_.get("shop");
  EXPECT_EQ(deployment.spec().replicas(), 1);
  EXPECT_TRUE(controller::has_owner_reference(site, deployment));
  const auto service = services_.get("shop");
  EXPECT_EQ(service.spec().selector()["example.com/website"], "shop");
  EXPECT_TRUE(controller::has_owner_reference(site, service));
  EXPECT_TRUE(eventually(
      [&] { return condition("shop") == "False Progressing 0 of 1 replicas are ready"; }));

  become_ready("shop", 1);
  EXPECT_TRUE(eventually([&] { return condition("shop") == "True AllReady "; }));
  EXPECT_TRUE(eventually([&] { return metric("true") == 1; }));
  EXPECT_EQ(metric("false"), 0);
}

TEST_F(WebsiteControllerTest, UpdatesExistingObjects) {
  const auto site = make("shop");
  ASSERT_TRUE(eventually([&] { return !entry("shop").empty(); }));
  const auto change = site.edit();
  change.spec().set_image("web:2").set_replicas(3).set_port(8080);
  sites_.patch(change);
  EXPECT_TRUE(eventually([&] { return entry("shop") == "http://shop.default.svc:8080"; }));
  const auto deployment = deployments_.get("shop");
  EXPECT_EQ(deployment.spec().replicas(), 3);
  const auto containers = deployment.spec().pod_template().spec().containers();
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0].image(), "web:2");
  ASSERT_EQ(containers[0].ports().size(), 1U);
  EXPECT_EQ(containers[0].ports()[0].container_port(), 8080);
  const auto service = services_.get("shop");
  ASSERT_EQ(service.spec().ports().size(), 1U);
  EXPECT_EQ(service.spec().ports()[0].port(), 8080);
}

TEST_F(WebsiteControllerTest, RestoresDeletedObjects) {
  make("shop");
  ASSERT_TRUE(eventually([&] { return !entry("shop").empty(); }));
  maps_.patch("websites", rest::PatchType::kMerge, R"({"data":{"shop":null}})");
  EXPECT_TRUE(eventually([&] { return !entry("shop").empty(); }));
  services_.remove("shop");
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(services_.find("shop")); }));
}

TEST_F(WebsiteControllerTest, DoesNotAdoptForeignObjects) {
  const auto foreign = Service::draft("shop", "default");
  foreign.spec().selector().set("app", "other");
  foreign.spec().ports().append(443);
  services_.create(foreign);
  make("shop");
  EXPECT_TRUE(eventually([&] {
    return condition("shop") ==
           "False NameTaken Service default/shop already exists, and no controller owns it";
  }));
  const auto service = services_.get("shop");
  EXPECT_EQ(service.spec().selector()["app"], "other");
  EXPECT_EQ(service.spec().ports()[0].port(), 443);
  EXPECT_EQ(entry("shop"), "");

  // The controller retries.
  services_.remove("shop");
  EXPECT_TRUE(eventually([&] { return !entry("shop").empty(); }));
}

TEST_F(WebsiteControllerTest, LeavesTheDirectoryAfterADeletionWhileStopped) {
  make("shop");
  ASSERT_TRUE(eventually([&] { return !entry("shop").empty(); }));
  stop();
  sites_.remove("shop");
  EXPECT_TRUE(sites_.find("shop")) << "the finalizer holds it";
  start();
  EXPECT_TRUE(eventually([&] { return !sites_.find("shop"); }));
  EXPECT_EQ(entry("shop"), "");
}

TEST_F(WebsiteControllerTest, TwentyWebsitesLeaveNothingBehind) {
  constexpr int kSites = 20;
  const auto name = [](int i) { return fmt::format("site-{}", i); };
  for (int i = 0; i < kSites; ++i) make(name(i));
  for (int i = 0; i < kSites; ++i) {
    const std::string one = name(i);
    ASSERT_TRUE(eventually([&] { return !entry(one).empty(); })) << one;
  }
  EXPECT_EQ(count(deployments_), kSites);
  for (int i = 0; i < kSites; ++i)
    sites_.patch(name(i), rest::PatchType::kMerge, R"({"spec":{"replicas":2,"image":"web:2"}})");
  for (int i = 0; i < kSites; ++i) {
    const std::string one = name(i);
    EXPECT_TRUE(eventually([&] {
      const auto deployment = deployments_.get(one);
      return deployment.spec().replicas() == 2;
    })) << one;
    become_ready(one, 2);
  }
  EXPECT_TRUE(eventually([&] { return metric("true") == kSites; }));

  for (int i = 0; i < kSites; ++i) sites_.remove(name(i));
  EXPECT_TRUE(eventually([&] { return count(sites_) == 0; }));
  EXPECT_TRUE(eventually([&] { return count(deployments_) == 0; })) << "orphans";
  EXPECT_TRUE(eventually([&] {
    const auto services = services_.list();
    return std::ranges::none_of(
        services.items, [](const Service& service) { return service.name().starts_with("site-"); });
  })) << "orphans";
  const auto directory = maps_.get("websites");
  EXPECT_TRUE(directory.data().empty());
}

}  // namespace
}  // namespace website
