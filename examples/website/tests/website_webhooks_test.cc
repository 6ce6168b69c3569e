// The webhooks of Websites, called over HTTPS by an API server in this process with the manifests of
// config/.
#include "website_webhooks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lookout/api/status.h>
#include <lookout/apiserver/server.h>
#include <lookout/base/yaml_tree.h>
#include <lookout/controller/manager.h>
#include <lookout/k8s/admissionregistration/v1.h>
#include <lookout/k8s/apiextensions/v1.h>
#include <lookout/k8s/apps/v1.h>
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/lookout.h>
#include <lookout/testing/self_signed_certificate.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "eventually.h"
#include "website_controller.h"
#include "website_types.h"

namespace website {
namespace {

using namespace lookout;
using k8s::apps::v1::Deployment;
using v1::Website;

/// The objects of a file in config/.
std::vector<api::Object> manifests(const std::string& name) {
  std::ifstream file(CONFIG_DIR "/" + name);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr std::string_view kSeparator = "\n---\n";
  std::vector<api::Object> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(kSeparator, at), text.size());
    out.push_back(api::Object::parse(to_json(YamlTree(text.substr(at, end - at)).root())));
    at = end + kSeparator.size();
  }
  return out;
}

/// A temporary folder.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "website-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the certificate");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class WebsiteWebhooksTest : public testing::Test {
 protected:
  void SetUp() override {
    certificate_.write_to(folder_.path());
    for (const auto& crd : manifests("crd.yaml"))
      client_.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(crd);
    for (const auto& each : manifests("webhook.yaml")) {
      if (each.kind() == "MutatingWebhookConfiguration")
        register_with<k8s::admissionregistration::v1::MutatingWebhookConfiguration>(each);
      if (each.kind() == "ValidatingWebhookConfiguration")
        register_with<k8s::admissionregistration::v1::ValidatingWebhookConfiguration>(each);
    }
    start();
  }
  void TearDown() override { stop(); }

  /// Writes the certificate authority into the configuration, as cert-manager does.
  template <class T>
  void register_with(const api::Object& configuration) const {
    const api::ObjectDraft draft(configuration);
    draft["webhooks"][std::size_t{0}]["clientConfig"]["caBundle"].set(certificate_.ca_bundle());
    client_.resource<T>().create(draft.build());
  }

  void start() {
    manager_.emplace(client_);
    add_website_controller(*manager_);
    controller::WebhookOptions options;
    options.host = "127.0.0.1";
    options.port = 0;
    options.cert_dir = folder_.path().string();
    webhooks_.emplace(*manager_, options);
    add_website_webhooks(*webhooks_);
    port_ = webhooks_->port();
    running_ = std::jthread([this](const std::stop_token& stop) { manager_->run(stop); });
    const auto healthy = webhooks_->started_checker();
    ASSERT_TRUE(eventually([&] { return !healthy(); }));
  }
  void stop() {
    running_ = {};
    webhooks_.reset();
    manager_.reset();
  }

  Website make(const std::string& name, const std::string& image) const {
    const auto draft = Website::draft(name, "default");
    draft.spec().set_image(image);
    return sites_.create(draft);
  }
  static std::string refusal(const std::function<void()>& request) {
    try {
      request();
    } catch (const api::StatusError& e) {
      return fmt::format("{} {}", e.code(), e.what());
    }
    return "";
  }
  bool was_warned(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(warnings_.begin(), warnings_.end(), [&](const std::string& warning) {
      return warning.find(text) != std::string::npos;
    });
  }

  /// Resolves the Service for the API server, as there is no cluster network.
  apiserver::ServerOptions server_options() {
    apiserver::ServerOptions out;
    out.resolve_service = [this](const std::string& ns, const std::string& name,
                                 std::uint16_t port) -> std::optional<std::string> {
      if (ns != "website-system" || name != "website-webhook" || port != 443) return std::nullopt;
      return fmt::format("127.0.0.1:{}", port_.load());
    };
    return out;
  }
  rest::Config config() {
    rest::Config out = server_.client_config();
    out.on_warning = [this](const rest::Warning& warning) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(warning.text);
    };
    return out;
  }
  const test::SelfSignedCertificate certificate_{{"DNS:website-webhook.website-system.svc"}};
  const Folder folder_;
  std::atomic<std::uint16_t> port_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;  // guarded by mutex_
  const apiserver::Server server_{server_options()};
  const rest::Client client_{config()};
  const rest::TypedClient<Website> sites_ = client_.resource<Website>("default");
  const rest::TypedClient<Deployment> deployments_ = client_.resource<Deployment>("default");
  std::optional<controller::Manager> manager_;
  std::optional<controller::WebhookServer> webhooks_;
  std::jthread running_;
};

TEST_F(WebsiteWebhooksTest, AnImageWithoutAVersionIsTheLatestWithAWarning) {
  const Website shop = make("shop", "registry:5000/web");
  EXPECT_EQ(shop.spec().image(), "registry:5000/web:latest");
  EXPECT_TRUE(was_warned("\"latest\" may be another image tomorrow"));
  const Website tagged = make("blog", "web:1");
  EXPECT_EQ(tagged.spec().image(), "web:1");
  const Website digest = make("wiki", "web@sha256:0");
  EXPECT_EQ(digest.spec().image(), "web@sha256:0");
  // The same for updates.
  sites_.patch("blog", rest::PatchType::kMerge, R"({"spec":{"image":"web"}})");
  const auto blog = sites_.get("blog");
  EXPECT_EQ(blog.spec().image(), "web:latest");
}

TEST_F(WebsiteWebhooksTest, ANameThatIsInvalidForAServiceIsRejected) {
  const auto message = refusal([&] { make("my.shop", "web:1"); });
  EXPECT_EQ(message.find("422 "), 0U) << message;
  EXPECT_NE(message.find("metadata.name: Invalid value: \"my.shop\""), std::string::npos)
      << message;
  EXPECT_FALSE(sites_.find("my.shop"));
}

TEST_F(WebsiteWebhooksTest, ZeroReplicasCauseAWarning) {
  make("shop", "web:1");
  sites_.patch("shop", rest::PatchType::kMerge, R"({"spec":{"replicas":0}})");
  EXPECT_TRUE(was_warned("nobody serves the website"));
}

TEST_F(WebsiteWebhooksTest, TheControllerWorksWithThem) {
  make("shop", "web");
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(deployments_.find("shop")); }));
  const auto deployment = deployments_.get("shop");
  EXPECT_EQ(deployment.spec().pod_template().spec().containers()[0].image(), "web:latest");
  // Updates of the Website add and remove the finalizer.
  sites_.remove("shop");
  EXPECT_TRUE(eventually([&] { return !sites_.find("shop"); }));
}

TEST_F(WebsiteWebhooksTest, AWebsiteFromBeforeTheWebhooksCanBeDeleted) {
  const auto configurations =
      client_.resource<k8s::admissionregistration::v1::ValidatingWebhookConfiguration>();
  const auto configuration = configurations.get("website-controller");
  configurations.remove("website-controller");
  make("my.shop", "web:1");
  api::ObjectDraft again(configuration);
  again["metadata"]["resourceVersion"].remove();
  again["metadata"]["uid"].remove();
  configurations.create(again.build());
  ASSERT_TRUE(eventually([&] {
    const auto site = sites_.get("my.shop");
    return !site.metadata().finalizers().empty();
  }));
  sites_.remove("my.shop");
  EXPECT_TRUE(eventually([&] { return !sites_.find("my.shop"); }));
}

TEST_F(WebsiteWebhooksTest, WithoutTheWebhooksNothingIsStored) {
  stop();
  const auto message = refusal([&] { make("shop", "web:1"); });
  EXPECT_NE(message.find("failed calling webhook \"default.websites.example.com\""),
            std::string::npos)
      << message;
}

/// The patched Deployment matches the Service and the webhook configurations.
TEST_F(WebsiteWebhooksTest, TheManifestsAreConsistent) {
  const auto deployments = client_.resource<Deployment>("website-system");
  const auto services = client_.resource<k8s::core::v1::Service>("website-system");
  client_.resource<k8s::core::v1::Namespace>().create(
      k8s::core::v1::Namespace::draft("website-system"));
  deployments.create(manifests("deployment.yaml")[0]);
  const auto patched = deployments.patch("website-controller", rest::PatchType::kStrategicMerge,
                                         manifests("webhook-patch.yaml")[0].to_json());
  const auto pod = patched.spec().pod_template().spec();
  ASSERT_EQ(pod.containers().size(), 1U);
  const auto container = pod.containers()[0];
  EXPECT_EQ(container.image(), "website-controller:latest");
  const auto webhook_manifests = manifests("webhook.yaml");
  const auto service = services.create(webhook_manifests[0]);
  EXPECT_EQ(service.spec().selector()["app"],
            patched.spec().pod_template().metadata().labels()["app"]);
  const std::string port(service["spec"]["ports"][0]["targetPort"].as_string());
  bool listens = false;
  for (const auto& each : container.ports())
    listens = listens || (each.name() == port && each.container_port() == 9443);
  EXPECT_TRUE(listens) << port;
  ASSERT_EQ(pod.volumes().size(), 1U);
  EXPECT_EQ(pod.volumes()[0].secret().secret_name(),
            webhook_manifests[2]["spec"]["secretName"].as_string());
}

}  // namespace
}  // namespace website
