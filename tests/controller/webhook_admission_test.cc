// Webhooks of a manager that the embedded API server calls: in one process, like a program's own
// tests.
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
  /// Configures a webhook for ConfigMaps with the label "checked".
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

  apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
};

TEST_F(ServedWebhookTest, ObjectsAreMutatedAndRejected) {
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

  // The webhook is down and failurePolicy is Fail. Objects without the label are not affected.
  running.reset();
  EXPECT_THAT(refusal([&] { create("three", "small"); }),
              HasSubstr("failed calling webhook \"maps.example.com\""));
  maps_.create(ConfigMap::draft("other", "default"));
}

TEST_F(ServedWebhookTest, BothSidesCountTheCalls) {
  ManagerOptions manager_options;
  manager_options.metrics_listen = "127.0.0.1:0";
  Manager manager{client_, manager_options};
  WebhookServer webhooks(manager, options());
  const auto page = [&] {
    rest::Config config;
    config.server = fmt::format("http://127.0.0.1:{}", manager.metrics_port());
    return rest::Client(config).get_raw("/metrics");
  };
  std::string while_it_runs;
  webhooks.validate<ConfigMap>([&](const Admission<ConfigMap>& request) {
    while_it_runs = page();
    if (request.object.data()["size"] == "big") return denied("too big");
    return allowed();
  });
  configure("ValidatingWebhookConfiguration",
            WebhookServer::validate_path(api::Resource(ConfigMap::kResource)), webhooks.port());
  const Running running(manager);
  const auto healthy = webhooks.started_checker();
  ASSERT_TRUE(test::eventually([&] { return !healthy(); }));
  create("one", "small");
  EXPECT_NE(refusal([&] { create("two", "big"); }), "");

  const std::string in_flight =
      "controller_runtime_webhook_requests_in_flight{webhook=\"/validate--v1-configmap\"} ";
  EXPECT_THAT(while_it_runs, HasSubstr(in_flight + "1\n"));
  std::string ours;
  EXPECT_TRUE(test::eventually([&] {
    ours = page();
    return ours.find(in_flight + "0\n") != std::string::npos;
  }));
  // A rejection counts as a response.
  for (const std::string& line :
       {std::string("# HELP controller_runtime_webhook_requests_in_flight Current number of "
                    "admission requests being served.\n"),
        std::string("# TYPE controller_runtime_webhook_requests_total counter\n"),
        std::string("controller_runtime_webhook_requests_total{webhook=\"/validate--v1-configmap\","
                    "code=\"200\"} 2\n"),
        std::string("controller_runtime_webhook_latency_seconds_count{webhook=\"/validate--v1-"
                    "configmap\"} 2\n")}) {
    EXPECT_THAT(ours, HasSubstr(line));
  }
  const std::string theirs = client_.get_raw("/metrics");
  EXPECT_THAT(theirs,
              HasSubstr("apiserver_admission_webhook_request_total{code=\"200\",name=\"maps."
                        "example.com\",operation=\"CREATE\",rejected=\"false\",type="
                        "\"validating\"} 1\n"));
  EXPECT_THAT(theirs,
              HasSubstr("apiserver_admission_webhook_rejection_count{error_type=\"no_error\","
                        "name=\"maps.example.com\",operation=\"CREATE\",rejection_code="
                        "\"403\",type=\"validating\"} 1\n"));
}

}  // namespace
}  // namespace lookout::controller
