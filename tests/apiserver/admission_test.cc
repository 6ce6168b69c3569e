// Admission webhooks: the requests that they receive, and the effect of their responses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/admission_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;

TEST_F(AdmissionTest, ARejectionIsReturned) {
  const TestWebhook hook([](const auto& review) { return denied(review, "not today"); });
  validate_with(hook);
  expect_refusal(403, "admission webhook \"check.example.com\" denied the request: not today");
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST_F(AdmissionTest, AReviewHasAllFieldsOfTheRequest) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  validate_with(hook);
  const api::Object created = maps().create(config_map("a"));
  ASSERT_EQ(hook.reviews().size(), 1u);
  const api::Object review = hook.reviews()[0];
  EXPECT_EQ(review.kind(), "AdmissionReview");
  EXPECT_EQ(review.api_version(), "admission.k8s.io/v1");
  const auto request = review["request"];
  EXPECT_EQ(request["uid"].as_string().size(), 36u);
  EXPECT_EQ(full_name(request["kind"]), "/v1/ConfigMap");
  EXPECT_EQ(full_name(request["resource"]), "/v1/configmaps");
  EXPECT_EQ(full_name(request["requestKind"]), "/v1/ConfigMap");
  EXPECT_EQ(full_name(request["requestResource"]), "/v1/configmaps");
  EXPECT_FALSE(request["subResource"].exists());
  EXPECT_EQ(request["name"].as_string(), "a");
  EXPECT_EQ(request["namespace"].as_string(), "default");
  EXPECT_EQ(request["operation"].as_string(), "CREATE");
  EXPECT_EQ(request["userInfo"]["username"].as_string(), "system:unsecured");
  // A validating webhook receives the object to be stored.
  EXPECT_EQ(request["object"]["metadata"]["uid"].as_string(), created.uid());
  EXPECT_EQ(request["object"]["kind"].as_string(), "ConfigMap");
  EXPECT_TRUE(request["oldObject"].is_null());
  EXPECT_FALSE(request["dryRun"].as_bool());
  EXPECT_EQ(request["options"]["kind"].as_string(), "CreateOptions");
  EXPECT_EQ(hook.latest_target(), "/hook?timeout=10s");
}

TEST_F(AdmissionTest, UpdatesPatchesAndDeletionsShowTheOldObject) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  const api::Object made = maps().create(config_map("a", "1"));
  validate_with(hook);
  maps().update(changed(made, R"({"data":{"key":"2"}})"));
  maps().patch("a", rest::PatchType::kMerge, R"({"data":{"key":"3"}})");
  maps().remove("a");
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 3u);
  for (int i = 0; i < 2; ++i) {
    const auto request = reviews[static_cast<std::size_t>(i)]["request"];
    EXPECT_EQ(request["operation"].as_string(), "UPDATE");
    EXPECT_EQ(request["oldObject"]["data"]["key"].as_string(), std::to_string(i + 1));
    EXPECT_EQ(request["object"]["data"]["key"].as_string(), std::to_string(i + 2));
    EXPECT_EQ(request["options"]["kind"].as_string(), "UpdateOptions");
  }
  const auto removal = reviews[2]["request"];
  EXPECT_EQ(removal["operation"].as_string(), "DELETE");
  EXPECT_TRUE(removal["object"].is_null());
  EXPECT_EQ(removal["oldObject"]["data"]["key"].as_string(), "3");
  EXPECT_EQ(removal["options"]["kind"].as_string(), "DeleteOptions");
}

TEST_F(AdmissionTest, RejectedChangesAndDeletionsAreNotExecuted) {
  const TestWebhook hook([](const auto& review) { return denied(review, "it stays"); });
  const api::Object made = maps().create(config_map("a", "1"));
  validate_with(hook);
  EXPECT_EQ(status_of([&] { maps().update(changed(made, R"({"data":{"key":"2"}})")); }).code, 403);
  EXPECT_EQ(status_of([&] { maps().remove("a"); }).code, 403);
  EXPECT_EQ(http(server_.port(), "DELETE", "/api/v1/namespaces/default/configmaps").code, 403);
  EXPECT_EQ(maps().get("a"), made);
}

TEST_F(AdmissionTest, ADeletionOfACollectionIsReviewedPerObject) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  maps().create(config_map("a"));
  maps().create(config_map("b"));
  validate_with(hook);
  EXPECT_EQ(http(server_.port(), "DELETE", "/api/v1/namespaces/default/configmaps").code, 200);
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 2u);
  EXPECT_EQ(reviews[0]["request"]["oldObject"]["metadata"]["name"].as_string(), "a");
  EXPECT_EQ(reviews[1]["request"]["oldObject"]["metadata"]["name"].as_string(), "b");
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST_F(AdmissionTest, MutatingWebhooksChangeTheStoredObject) {
  const TestWebhook hook(adds("added"));
  mutate_with(hook);
  EXPECT_EQ(held(maps().create(config_map("a")))["data"]["added"].as_string(), "yes");
  EXPECT_EQ(item("a", "added"), "yes");
  // Every change adds it again.
  maps().patch("a", rest::PatchType::kMerge, R"({"data":{"added":null}})");
  EXPECT_EQ(item("a", "added"), "yes");
}

TEST_F(AdmissionTest, AMutatingWebhookSeesANewObjectBeforeItHasAName) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  mutate_with(hook);
  const TestWebhook check([](const auto& review) { return allowed(review); });
  validate_with(check);
  const api::Object made = maps().create(from_json(R"({"metadata":{"generateName":"x-"}})"));
  const auto first = hook.reviews().at(0)["request"];
  EXPECT_FALSE(first["name"].exists());
  EXPECT_FALSE(first["object"]["metadata"]["uid"].exists());
  EXPECT_EQ(first["object"]["metadata"]["namespace"].as_string(), "default");
  const auto second = check.reviews().at(0)["request"];
  EXPECT_EQ(second["name"].as_string(), made.name());
}

TEST_F(AdmissionTest, ConfigurationsAreCalledInTheOrderOfTheirNames) {
  const TestWebhook first([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/data/order","value":"a"}])");
  });
  const TestWebhook second([](const auto& review) {
    const std::string so_far(review["request"]["object"]["data"]["order"].as_string());
    return patched(review,
                   fmt::format(R"([{{"op":"add","path":"/data/order","value":"{}b"}}])", so_far));
  });
  all(kMutating).create(
      configuration("z", webhook("z.example.com", second.client_config(), kMaps)));
  all(kMutating).create(configuration("a", webhook("a.example.com", first.client_config(), kMaps)));
  maps().create(config_map("x"));
  EXPECT_EQ(item("x", "order"), "ab");
}

TEST_F(AdmissionTest, ThePatchedObjectIsValidated) {
  const TestWebhook hook([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/metadata/labels","value":{"a b":"c"}}])");
  });
  mutate_with(hook);
  EXPECT_EQ(refused_write().code, 422);
}

struct BadPatch {
  const char* what;
  const char* patch;
};
void PrintTo(const BadPatch& c, std::ostream* out) { *out << c.what; }
class BadPatches : public AdmissionTest, public testing::WithParamInterface<BadPatch> {};

TEST_P(BadPatches, FailTheRequestWithAnyPolicy) {
  const TestWebhook hook([](const auto& review) { return patched(review, GetParam().patch); });
  mutate_with(hook, kMaps, R"("failurePolicy":"Ignore")");
  expect_refusal(500, StartsWith("Internal error occurred: "));
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPatches,
    testing::Values(BadPatch{"no JSON", "hello"}, BadPatch{"no list", R"({"data":{"a":"b"}})"},
                    BadPatch{"no operation", R"([1])"},
                    BadPatch{"unknown operation", R"([{"op":"frob","path":"/data"}])"},
                    BadPatch{"a path that is not there",
                             R"([{"op":"replace","path":"/data/x/y","value":"1"}])"},
                    BadPatch{"a test that fails", R"([{"op":"test","path":"/data","value":1}])"},
                    BadPatch{"another type", R"([{"op":"replace","path":"/data","value":1}])"},
                    BadPatch{"another kind", R"([{"op":"replace","path":"/kind","value":"Pod"}])"},
                    BadPatch{"no object", R"([{"op":"replace","path":"","value":[]}])"}));

TEST_F(AdmissionTest, ADeletionCannotBePatched) {
  const TestWebhook hook(adds("x"));
  maps().create(config_map("a"));
  mutate_with(hook);
  const api::Status status = status_of([&] { maps().remove("a"); });
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.message,
            "Internal error occurred: admission webhook \"change.example.com\" attempted to modify "
            "the object, which is not supported for this operation");
}

TEST_F(AdmissionTest, WebhookConfigurationsAreNotReviewed) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  validate_with(hook, rule("*", "*", "*/*"));
  EXPECT_EQ(refused_write().code, 403);
  all(kValidating).remove("validating");
  EXPECT_NO_THROW(maps().create(config_map("a")));
}

TEST_F(AdmissionTest, SelectorsRestrictNamespacesAndObjects) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop","labels":{"checked":"yes"}}})"));
  validate_with(hook, kMaps,
                R"("namespaceSelector":{"matchLabels":{"checked":"yes"}},)"
                R"("objectSelector":{"matchLabels":{"app":"web"}})");
  const api::Object web = changed(config_map("a"), R"({"metadata":{"labels":{"app":"web"}}})");
  EXPECT_NO_THROW(maps().create(web));
  EXPECT_NO_THROW(maps("shop").create(config_map("b")));
  EXPECT_EQ(status_of([&] { maps("shop").create(web); }).code, 403);
  EXPECT_EQ(hook.reviews().size(), 1u);
}

TEST_F(AdmissionTest, ANamespaceIsSelectedByItsOwnLabels) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  validate_with(hook, rule("", "v1", "namespaces"),
                R"("namespaceSelector":{"matchLabels":{"checked":"yes"}})");
  EXPECT_NO_THROW(all(kNamespaces).create(from_json(R"({"metadata":{"name":"free"}})")));
  const auto create = [&] {
    all(kNamespaces)
        .create(from_json(R"({"metadata":{"name":"shop","labels":{"checked":"yes"}}})"));
  };
  EXPECT_EQ(status_of(create).code, 403);
  EXPECT_EQ(hook.reviews().at(0)["request"]["namespace"].as_string(), "shop");
}

TEST_F(AdmissionTest, SubresourcesAreReviewedInTheirOwnKind) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  in(kDeployments).create(from_json(R"({"metadata":{"name":"web"},"spec":{"replicas":1,
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  validate_with(hook, rule("apps", "v1", "deployments/*"));
  const std::string path = "/apis/apps/v1/namespaces/default/deployments/web/";
  const HttpClient::Headers merge = {{"Content-Type", "application/merge-patch+json"}};
  EXPECT_EQ(http(server_.port(), "PATCH", path + "scale", R"({"spec":{"replicas":3}})", merge).code,
            200);
  EXPECT_EQ(
      http(server_.port(), "PATCH", path + "status", R"({"status":{"replicas":2}})", merge).code,
      200);
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 2u);
  const auto scale = reviews[0]["request"];
  EXPECT_EQ(reviewed(scale), "autoscaling/v1/Scale of apps/v1/deployments/scale");
  EXPECT_EQ(scale["object"]["kind"].as_string(), "Scale");
  EXPECT_EQ(scale["object"]["spec"]["replicas"].as_int(), 3);
  EXPECT_EQ(scale["oldObject"]["spec"]["replicas"].as_int(), 1);
  const auto status = reviews[1]["request"];
  EXPECT_EQ(status["subResource"].as_string(), "status");
  EXPECT_EQ(status["object"]["kind"].as_string(), "Deployment");
}

TEST_F(AdmissionTest, AScaleCanBeChanged) {
  const TestWebhook hook([](const auto& review) {
    return patched(review, R"([{"op":"replace","path":"/spec/replicas","value":7}])");
  });
  in(kDeployments).create(from_json(R"({"metadata":{"name":"web"},"spec":{"replicas":1,
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  mutate_with(hook, rule("apps", "v1", "deployments/scale"));
  EXPECT_EQ(http(server_.port(), "PATCH", "/apis/apps/v1/namespaces/default/deployments/web/scale",
                 R"({"spec":{"replicas":3}})", {{"Content-Type", "application/merge-patch+json"}})
                .code,
            200);
  const api::Object web = in(kDeployments).get("web");
  EXPECT_EQ(web["spec"]["replicas"].as_int(), 7);
  EXPECT_EQ(web["spec"]["selector"]["matchLabels"]["a"].as_string(), "b");
}

TEST_F(AdmissionTest, EvictionsAndBindingsAreCreations) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  pods().create(pod("a"));
  validate_with(hook, rule("", "v1", "pods/*", R"("CREATE")"));
  const std::string path = "/api/v1/namespaces/default/pods/a/";
  EXPECT_EQ(http(server_.port(), "POST", path + "eviction",
                 R"({"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"}})")
                .code,
            403);
  EXPECT_EQ(http(server_.port(), "POST", path + "binding",
                 R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"a"},)"
                 R"("target":{"kind":"Node","name":"n"}})")
                .code,
            403);
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 2u);
  EXPECT_EQ(reviews[0]["request"]["kind"]["kind"].as_string(), "Eviction");
  EXPECT_EQ(reviews[1]["request"]["kind"]["kind"].as_string(), "Binding");
  EXPECT_EQ(reviews[1]["request"]["name"].as_string(), "a");
  EXPECT_TRUE(held(pods().get("a"))["spec"]["nodeName"].as_string().empty());
}

TEST_F(AdmissionTest, NoWebhookChangesTheRequesterOfACertificate) {
  const api::Resource requests{"certificates.k8s.io", "v1", "CertificateSigningRequest",
                               "certificatesigningrequests", false};
  const TestWebhook forger([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/spec/username","value":"root"},
                               {"op":"add","path":"/metadata/labels","value":{"a":"b"}}])");
  });
  mutate_with(forger, rule("certificates.k8s.io", "v1", "certificatesigningrequests"));
  const api::Object made = all(requests).create(from_json(
      R"({"metadata":{"name":"a"},"spec":{"request":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K",
          "signerName":"example.com/signer","usages":["client auth"]}})"));
  EXPECT_EQ(made.labels()["a"].as_string(), "b");
  EXPECT_EQ(made["spec"]["username"].as_string(), "system:unsecured");
}

TEST_F(AdmissionTest, TokenRequestsAreCreations) {
  const api::Resource accounts{"", "v1", "ServiceAccount", "serviceaccounts", true};
  in(accounts).create(from_json(R"({"metadata":{"name":"robot"}})"));
  const std::string what = rule("", "v1", "serviceaccounts/token", R"("CREATE")");
  const api::Object body = from_json(R"({"kind":"TokenRequest",
      "apiVersion":"authentication.k8s.io/v1","spec":{}})");
  // (It replaces the default.)
  const TestWebhook longer([](const auto& review) {
    return patched(review, R"([{"op":"replace","path":"/spec/expirationSeconds","value":7200}])");
  });
  mutate_with(longer, what);
  const api::Object token = in(accounts).create_subresource("robot", "token", body);
  EXPECT_EQ(token["spec"]["expirationSeconds"].as_int(), 7200);
  EXPECT_FALSE(token["status"]["token"].as_string().empty());
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  validate_with(hook, what);
  EXPECT_EQ(status_of([&] { in(accounts).create_subresource("robot", "token", body); }).code, 403);
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 1u);
  const auto request = reviews[0]["request"];
  EXPECT_EQ(reviewed(request),
            "authentication.k8s.io/v1/TokenRequest of /v1/serviceaccounts/token");
  EXPECT_EQ(request["name"].as_string(), "robot");
  const auto asked = request["object"];
  EXPECT_EQ(asked["spec"]["expirationSeconds"].as_int(), 7200);
  // Validating webhooks receive the server's defaults, mutating ones the client's object.
  EXPECT_EQ(asked["metadata"]["name"].as_string(), "robot");
  EXPECT_EQ(asked["spec"]["audiences"].size(), 1u);
  const auto first = longer.reviews();
  ASSERT_FALSE(first.empty());
  EXPECT_TRUE(first[0]["request"]["object"]["spec"]["audiences"].empty());
}

TEST_F(AdmissionTest, AnEquivalentVersionIsConvertedToThatOfTheRule) {
  const TestWebhook hook([](const auto& review) {
    return patched(review, R"([{"op":"replace","path":"/spec/maxReplicas","value":9}])");
  });
  mutate_with(hook, rule("autoscaling", "v2", "horizontalpodautoscalers"));
  const api::Resource v1{"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
                         true};
  const api::Object made =
      in(v1).create(from_json(R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,
    "targetCPUUtilizationPercentage":70,
    "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}})"));
  const auto request = hook.reviews().at(0)["request"];
  EXPECT_EQ(request["kind"]["version"].as_string(), "v2");
  EXPECT_EQ(request["requestKind"]["version"].as_string(), "v1");
  EXPECT_EQ(request["object"]["apiVersion"].as_string(), "autoscaling/v2");
  EXPECT_EQ(request["object"]["spec"]["metrics"].size(), 1u);
  EXPECT_EQ(made.api_version(), "autoscaling/v1");
  EXPECT_EQ(made["spec"]["maxReplicas"].as_int(), 9);
  EXPECT_EQ(made["spec"]["targetCPUUtilizationPercentage"].as_int(), 70);
}

TEST_F(AdmissionTest, WarningsReachTheClientEvenWithARejection) {
  const TestWebhook hook([](const auto& review) {
    const bool fine = review["request"]["name"].as_string() == "fine";
    return review_answer(review, fmt::format(R"("allowed":{},"warnings":["old\nstyle"])", fine));
  });
  validate_with(hook);
  const std::string path = "/api/v1/namespaces/default/configmaps";
  const auto good = http(server_.port(), "POST", path, R"({"metadata":{"name":"fine"}})");
  EXPECT_EQ(good.code, 201);
  EXPECT_EQ(good.headers.at("warning"), "299 - \"old style\"");
  const auto bad = http(server_.port(), "POST", path, R"({"metadata":{"name":"bad"}})");
  EXPECT_EQ(bad.code, 400);
  EXPECT_EQ(bad.headers.at("warning"), "299 - \"old style\"");
}

TEST_F(AdmissionTest, ADryRunCallsWebhooksWithoutSideEffects) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  all(kValidating)
      .create(configuration(
          "a", fmt::format(R"({{"name":"a.example.com","clientConfig":{{{}}},"rules":[{}],)"
                           R"("sideEffects":"NoneOnDryRun","admissionReviewVersions":["v1"]}})",
                           hook.client_config(), kMaps)));
  const std::string path = "/api/v1/namespaces/default/configmaps?dryRun=All";
  EXPECT_EQ(http(server_.port(), "POST", path, R"({"metadata":{"name":"a"}})").code, 201);
  const auto request = hook.reviews().at(0)["request"];
  EXPECT_TRUE(request["dryRun"].as_bool());
  EXPECT_EQ(request["options"]["dryRun"].to_json(), R"(["All"])");
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

// Stored configurations of the old version may have this; it can no longer be written.
TEST_F(AdmissionTest, ADryRunIsRejectedForWebhooksWithSideEffects) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  EventLoop loop(1);
  const auto kept = changed(
      configuration("a", webhook("a.example.com", hook.client_config(), kMaps)),
      R"({"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1"})");
  std::string text = kept.to_json();
  const std::string none = R"("sideEffects":"None")";
  text.replace(text.find(none), none.size(), R"("sideEffects":"Some")");
  auto& place = server_.storage().resource("validatingwebhookconfigurations");
  loop.run(place.create("a", from_json(text)));
  const auto code = [&] {
    const auto answer =
        http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps?dryRun=All",
             R"({"metadata":{"name":"a"}})");
    if (answer.code != 400) return answer.code;
    EXPECT_NE(answer.body.find("admission webhook \\\"a.example.com\\\" does not support dry run"),
              std::string::npos)
        << answer.body;
    return answer.code;
  };
  // The configuration is written directly to the storage; it applies when the watch delivers it.
  EXPECT_TRUE(eventually([&] { return code() == 400; }));
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, AWebhookIsReinvokedAfterALaterChange) {
  const TestWebhook first([](const auto& review) { return allowed(review); });
  const TestWebhook never([](const auto& review) { return allowed(review); });
  const TestWebhook last(adds("late"));
  all(kMutating).create(configuration(
      "a", webhook("first.example.com", first.client_config(), kMaps,
                   R"("reinvocationPolicy":"IfNeeded")") +
               "," + webhook("never.example.com", never.client_config(), kMaps) + "," +
               webhook("last.example.com", last.client_config(), kMaps,
                       R"("reinvocationPolicy":"IfNeeded")")));
  maps().create(config_map("a"));
  const auto reviews = first.reviews();
  ASSERT_EQ(reviews.size(), 2u);
  EXPECT_FALSE(reviews[0]["request"]["object"]["data"]["late"].exists());
  EXPECT_EQ(reviews[1]["request"]["object"]["data"]["late"].as_string(), "yes");
  EXPECT_EQ(never.reviews().size(), 1u);
  EXPECT_EQ(last.reviews().size(), 1u);
}

TEST_F(AdmissionTest, PluginsRunAgainBeforeAWebhookIsReinvoked) {
  in(kLimitRanges).create(from_json(R"({"metadata":{"name":"limits"},"spec":{"limits":[
      {"type":"Container","default":{"cpu":"2"},"defaultRequest":{"cpu":"1"}}]}})"));
  const TestWebhook first([](const auto& review) { return allowed(review); });
  const TestWebhook sidecar([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/spec/containers/-",)"
                           R"("value":{"name":"sidecar","image":"sidecar:1"}}])");
  });
  const std::string what = rule("", "v1", "pods");
  all(kMutating).create(
      configuration("a", webhook("first.example.com", first.client_config(), what,
                                 R"("reinvocationPolicy":"IfNeeded")") +
                             "," + webhook("sidecar.example.com", sidecar.client_config(), what)));
  const Object made = pods().create(pod("p"));
  const auto reviews = first.reviews();
  ASSERT_EQ(reviews.size(), 2u);
  const auto requests = [](api::Value object, std::size_t container) {
    return std::string(
        object["spec"]["containers"][container]["resources"]["requests"]["cpu"].as_string());
  };
  EXPECT_EQ(requests(reviews[0]["request"]["object"], 0), "1");
  EXPECT_EQ(requests(reviews[1]["request"]["object"], 1), "1");
  EXPECT_EQ(requests(made.body(), 1), "1");
}

TEST_F(AdmissionTest, LimitRangesPrecedeTheWebhooksOfAResize) {
  pods().create(from_json(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"main",
      "image":"nginx:1","resources":{"requests":{"cpu":"1"}}}]}})"));
  in(kLimitRanges).create(from_json(R"({"metadata":{"name":"limits"},"spec":{"limits":[
      {"type":"Container","default":{"memory":"1Gi"}}]}})"));
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  mutate_with(hook, rule("", "v1", "pods/resize"));
  const HttpAnswer resized =
      http(server_.port(), "PATCH", "/api/v1/namespaces/default/pods/p/resize",
           R"({"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}})",
           {{"Content-Type", "application/strategic-merge-patch+json"}});
  EXPECT_EQ(resized.code, 200) << resized.body;
  const auto reviews = hook.reviews();
  ASSERT_EQ(reviews.size(), 1u);
  const api::Value container = reviews[0]["request"]["object"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["requests"]["cpu"].as_string(), "2");
  EXPECT_EQ(container["resources"]["limits"]["memory"].as_string(), "1Gi");
}

// A request that waits for a webhook must not block the webhook's own requests.
TEST_F(AdmissionTest, AWebhookMayCallTheServer) {
  const TestWebhook hook([this](const api::Object& review) {
    const rest::Client own(server_.client_config());
    const auto secrets = own.resource(kSecrets, "default");
    secrets.create(from_json(
        fmt::format(R"({{"metadata":{{"name":"{}"}}}})", review["request"]["name"].as_string())));
    own.resource(kNamespaces).list({});
    return allowed(review);
  });
  validate_with(hook);
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_NO_THROW(in(kSecrets).get("a"));
}

constexpr const char* kVersionedThings = R"({"metadata":{"name":"things.example.com"},
  "spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
    "versions":[
      {"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
       "schema":{"openAPIV3Schema":{"type":"object","properties":{
         "spec":{"type":"object","properties":{"size":{"type":"integer","maximum":5},
                                                "color":{"type":"string","default":"red"}}},
         "status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}}},
      {"name":"v2","served":true,"storage":false,"subresources":{"status":{}},
       "schema":{"openAPIV3Schema":{"type":"object",
         "x-kubernetes-preserve-unknown-fields":true}}}]}})";

api::Object thing(const std::string& name) {
  return from_json(fmt::format(
      R"({{"kind":"Thing","apiVersion":"example.com/v1","metadata":{{"name":"{}"}},"spec":{{}}}})",
      name));
}

TEST_F(AdmissionTest, CustomResourcesAreDefaultedBeforeAndValidatedAfter) {
  all(kDefinitions).create(from_json(kVersionedThings));
  const TestWebhook hook([](const auto& review) {
    const bool big = review["request"]["name"].as_string() == "big";
    return patched(review, fmt::format(R"([{{"op":"add","path":"/spec/size","value":{}}},)"
                                       R"({{"op":"add","path":"/spec/unknown","value":1}}])",
                                       big ? 6 : 3));
  });
  mutate_with(hook, rule("example.com", "v1", "things"));
  const api::Object made = in(kThings).create(thing("a"));
  EXPECT_EQ(made["spec"]["size"].as_int(), 3);
  EXPECT_FALSE(made["spec"]["unknown"].exists());
  const auto request = hook.reviews().at(0)["request"];
  EXPECT_EQ(request["object"]["spec"]["color"].as_string(), "red");
  EXPECT_EQ(full_name(request["kind"]), "example.com/v1/Thing");
  const auto create = [&] { in(kThings).create(thing("big")); };
  EXPECT_EQ(status_of(create).code, 422);
}

TEST_F(AdmissionTest, AWebhookForOneVersionReviewsOtherVersions) {
  all(kDefinitions).create(from_json(kVersionedThings));
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  const TestWebhook exact([](const auto& review) { return allowed(review); });
  all(kValidating)
      .create(configuration(
          "a", webhook("any.example.com", hook.client_config(),
                       rule("example.com", "v2", "things") + "," +
                           rule("example.com", "v2", "things/status")) +
                   "," +
                   webhook("exact.example.com", exact.client_config(),
                           rule("example.com", "v2", "things"), R"("matchPolicy":"Exact")")));
  in(kThings).create(thing("a"));
  EXPECT_EQ(http(server_.port(), "PATCH", "/apis/example.com/v1/namespaces/default/things/a/status",
                 R"({"status":{"ready":true}})", {{"Content-Type", "application/merge-patch+json"}})
                .code,
            200);
  ASSERT_EQ(hook.reviews().size(), 2u);
  EXPECT_TRUE(exact.reviews().empty());
  const auto first = hook.reviews().at(0)["request"];
  EXPECT_EQ(first["object"]["apiVersion"].as_string(), "example.com/v2");
  EXPECT_EQ(full_name(first["requestKind"]), "example.com/v1/Thing");
  const auto second = hook.reviews().at(1)["request"];
  EXPECT_EQ(second["requestSubResource"].as_string(), "status");
  EXPECT_TRUE(second["object"]["status"]["ready"].as_bool());
  EXPECT_FALSE(second["oldObject"]["status"]["ready"].exists());
}

TEST_F(AdmissionTest, ServicesKeepTheirAddressesThroughAdmission) {
  const TestWebhook hook([](const auto& review) {
    if (review["request"]["operation"].as_string() != "UPDATE") return allowed(review);
    return patched(review, R"([{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}])");
  });
  mutate_with(hook, rule("", "v1", "services"));
  const api::Object made = in(kServices).create(
      from_json(R"({"metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}})"));
  const api::Object after = in(kServices).update(changed(made, R"({"spec":{"type":"NodePort"}})"));
  EXPECT_EQ(after["spec"]["clusterIP"].as_string(), made["spec"]["clusterIP"].as_string());
  EXPECT_GE(after["spec"]["ports"][std::size_t{0}]["nodePort"].as_int(), 30000);
  EXPECT_EQ(after.labels()["seen"].as_string(), "yes");
}

}  // namespace
}  // namespace lookout::apiserver
