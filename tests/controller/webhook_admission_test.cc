// Webhooks of a manager that the embedded API server calls: all in one process, as a program's own
// tests have it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/base/base64.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"
#include "tests/controller/manager_fixture.h"
#include "tests/controller/webhook_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::ConfigMap;

class ServedWebhookTest : public WebhookFixture {
 protected:
  /// Tells the API server of a webhook for config maps with the label "checked".
  void configure(const std::string& kind, const std::string& path, int port) const {
    const std::string plural = kind == "ValidatingWebhookConfiguration"
                                   ? "validatingwebhookconfigurations"
                                   : "mutatingwebhookconfigurations";
    const auto all =
        client_.resource(api::Resource{"admissionregistration.k8s.io", "v1", kind, plural, false});
    all.create(api::Object::parse(fmt::format(
        R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{}","metadata":{{"name":"maps"}},)"
        R"("webhooks":[{{"name":"maps.example.com","admissionReviewVersions":["v1"],)"
        R"("sideEffects":"None","timeoutSeconds":5,)"
        R"("objectSelector":{{"matchExpressions":[{{"key":"checked","operator":"Exists"}}]}},)"
        R"("rules":[{{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],)"
        R"("operations":["CREATE","UPDATE","DELETE"]}}],)"
        R"("clientConfig":{{"url":"https://127.0.0.1:{}{}","caBundle":"{}"}}}}]}})",
        kind, port, path, encode_base64(authority_->certificate()))));
  }

  ConfigMap create(const std::string& name, const std::string& size) const {
    const auto draft = ConfigMap::draft(name, "default");
    draft.metadata().labels().set("checked", "yes");
    draft.data().set("size", size);
    return maps_.create(draft);
  }
  static std::string refusal(const std::function<void()>& request) {
    try {
      request();
    } catch (const api::StatusError& e) {
      return fmt::format("{} {}", e.status().code, e.what());
    }
    return "";
  }

  apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
};

TEST_F(ServedWebhookTest, ObjectsAreChangedAndRefused) {
  Manager manager{client_};
  WebhookServer webhooks(manager, options());
  webhooks.mutate<ConfigMap>([](const Admission<ConfigMap>& request, auto& draft) {
    if (request.object.data()["color"].empty()) draft.data().set("color", "red");
  });
  webhooks.validate<ConfigMap>([](const Admission<ConfigMap>& request) {
    if (request.operation == Operation::kDelete) {
      if (request.old_object.data()["size"] == "big") return denied("too big to go");
      return allowed();
    }
    if (request.object.data()["color"] != "red") return denied("red ones only");
    return allowed();
  });
  const api::Resource type(ConfigMap::kResource);
  configure("MutatingWebhookConfiguration", WebhookServer::mutate_path(type), webhooks.port());
  configure("ValidatingWebhookConfiguration", WebhookServer::validate_path(type), webhooks.port());

  std::optional<Running> running(manager);
  const auto healthy = webhooks.started_checker();
  ASSERT_TRUE(test::eventually([&] { return !healthy(); }));
  const ConfigMap made = create("one", "small");
  EXPECT_EQ(made.data()["color"], "red");
  EXPECT_EQ(made.data()["size"], "small");
  EXPECT_EQ(
      refusal([&] { maps_.patch("one", rest::PatchType::kMerge, R"({"data":{"color":"blue"}})"); }),
      "403 admission webhook \"maps.example.com\" denied the request: red ones only");
  create("two", "big");
  EXPECT_THAT(refusal([&] { maps_.remove("two"); }), HasSubstr("too big to go"));
  maps_.remove("one");

  // Nobody is there to ask, and failurePolicy is Fail. Objects without the label concern nobody.
  running.reset();
  EXPECT_THAT(refusal([&] { create("three", "small"); }),
              HasSubstr("failed calling webhook \"maps.example.com\""));
  maps_.create(ConfigMap::draft("other", "default"));
}

}  // namespace
}  // namespace lookout::controller
