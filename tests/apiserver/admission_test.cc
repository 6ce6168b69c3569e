// Admission webhooks: a server that asks, and webhooks that answer well, badly or not at all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/base64.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/test_webhook.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;
using lookout::test::held;

const api::Resource kMutating{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
                              "mutatingwebhookconfigurations", false};
const api::Resource kValidating{"admissionregistration.k8s.io", "v1",
                                "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
                                false};

const std::string kMaps = rule("", "v1", "configmaps");

std::string denied(const api::Object& review, const std::string& message) {
  return review_answer(
      review, fmt::format(R"("allowed":false,"status":{{"message":"{}","code":403}})", message));
}

/// An answer that adds an item to the data of a config map.
TestWebhook::Answer adds(const std::string& key, const std::string& value = "yes") {
  return [=](const api::Object& review) {
    return patched(review,
                   fmt::format(R"([{{"op":"add","path":"/data/{}","value":"{}"}}])", key, value));
  };
}

/// "apps/v1/deployments": a kind or a resource in a review.
std::string full_name(api::Value value) {
  const api::Value last = value["kind"].exists() ? value["kind"] : value["resource"];
  return fmt::format("{}/{}/{}", value["group"].as_string(), value["version"].as_string(),
                     last.as_string());
}

class AdmissionTest : public ClientTest {
 protected:
  using ClientTest::ClientTest;

  /// Begins to ask a webhook; more of the same name go into one configuration.
  void validate_with(const TestWebhook& hook, const std::string& what = kMaps,
                     const std::string& more = "") const {
    all(kValidating)
        .create(configuration("validating",
                              webhook("check.example.com", hook.client_config(), what, more)));
  }
  void mutate_with(const TestWebhook& hook, const std::string& what = kMaps,
                   const std::string& more = "") const {
    all(kMutating).create(
        configuration("mutating", webhook("change.example.com", hook.client_config(), what, more)));
  }
  rest::ResourceClient maps(std::string ns = "default") const {
    return in(kConfigMaps, std::move(ns));
  }
  std::string item(const std::string& name, const std::string& key) const {
    return std::string(held(maps().get(name))["data"][key].as_string());
  }
};

TEST_F(AdmissionTest, ARefusalIsTheAnswer) {
  const TestWebhook hook([](const auto& review) { return denied(review, "not today"); });
  validate_with(hook);
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_EQ(status.code, 403);
  EXPECT_EQ(status.message,
            "admission webhook \"check.example.com\" denied the request: not today");
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST_F(AdmissionTest, AReviewSaysEverythingAboutTheRequest) {
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
  // A validating webhook sees what will be kept.
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

TEST_F(AdmissionTest, RefusedChangesAndDeletionsDoNotHappen) {
  const TestWebhook hook([](const auto& review) { return denied(review, "it stays"); });
  const api::Object made = maps().create(config_map("a", "1"));
  validate_with(hook);
  EXPECT_EQ(status_of([&] { maps().update(changed(made, R"({"data":{"key":"2"}})")); }).code, 403);
  EXPECT_EQ(status_of([&] { maps().remove("a"); }).code, 403);
  EXPECT_EQ(http(server_.port(), "DELETE", "/api/v1/namespaces/default/configmaps").code, 403);
  EXPECT_EQ(maps().get("a"), made);
}

TEST_F(AdmissionTest, ACollectionIsAskedAboutObjectByObject) {
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

TEST_F(AdmissionTest, MutatingWebhooksChangeWhatIsWritten) {
  const TestWebhook hook(adds("added"));
  mutate_with(hook);
  EXPECT_EQ(held(maps().create(config_map("a")))["data"]["added"].as_string(), "yes");
  EXPECT_EQ(item("a", "added"), "yes");
  // It comes back with every change.
  maps().patch("a", rest::PatchType::kMerge, R"({"data":{"added":null}})");
  EXPECT_EQ(item("a", "added"), "yes");
}

TEST_F(AdmissionTest, AMutatingWebhookSeesANewObjectBeforeItHasAName) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  mutate_with(hook);
  const TestWebhook check([](const auto& review) { return allowed(review); });
  validate_with(check);
  const api::Object made = maps().create(json(R"({"metadata":{"generateName":"x-"}})"));
  const auto first = hook.reviews().at(0)["request"];
  EXPECT_FALSE(first["name"].exists());
  EXPECT_FALSE(first["object"]["metadata"]["uid"].exists());
  EXPECT_EQ(first["object"]["metadata"]["namespace"].as_string(), "default");
  const auto second = check.reviews().at(0)["request"];
  EXPECT_EQ(second["name"].as_string(), made.name());
}

TEST_F(AdmissionTest, ConfigurationsAreAskedInTheOrderOfTheirNames) {
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

TEST_F(AdmissionTest, WhatAPatchMakesIsValidated) {
  const TestWebhook hook([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/metadata/labels","value":{"a b":"c"}}])");
  });
  mutate_with(hook);
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 422);
}

struct BadPatch {
  const char* what;
  const char* patch;
};
void PrintTo(const BadPatch& c, std::ostream* out) { *out << c.what; }
class BadPatches : public AdmissionTest, public testing::WithParamInterface<BadPatch> {};

TEST_P(BadPatches, FailTheRequestWhateverThePolicy) {
  const TestWebhook hook([](const auto& review) { return patched(review, GetParam().patch); });
  mutate_with(hook, kMaps, R"("failurePolicy":"Ignore")");
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_EQ(status.code, 500);
  EXPECT_TRUE(status.message.starts_with("Internal error occurred: ")) << status.message;
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

TEST_F(AdmissionTest, NobodyIsAskedAboutWebhookConfigurations) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  validate_with(hook, rule("*", "*", "*/*"));
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 403);
  all(kValidating).remove("validating");
  EXPECT_NO_THROW(maps().create(config_map("a")));
}

TEST_F(AdmissionTest, SelectorsOfNamespacesAndObjectsNarrowDown) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  all(kNamespaces).create(json(R"({"metadata":{"name":"shop","labels":{"checked":"yes"}}})"));
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
  EXPECT_NO_THROW(all(kNamespaces).create(json(R"({"metadata":{"name":"free"}})")));
  const auto create = [&] {
    all(kNamespaces).create(json(R"({"metadata":{"name":"shop","labels":{"checked":"yes"}}})"));
  };
  EXPECT_EQ(status_of(create).code, 403);
  EXPECT_EQ(hook.reviews().at(0)["request"]["namespace"].as_string(), "shop");
}

TEST_F(AdmissionTest, SubresourcesAreAskedAboutInTheirOwnKind) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  in(kDeployments).create(json(R"({"metadata":{"name":"web"},"spec":{"replicas":1,
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
  EXPECT_EQ(full_name(scale["kind"]), "autoscaling/v1/Scale");
  EXPECT_EQ(full_name(scale["resource"]), "apps/v1/deployments");
  EXPECT_EQ(scale["subResource"].as_string(), "scale");
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
  in(kDeployments).create(json(R"({"metadata":{"name":"web"},"spec":{"replicas":1,
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

TEST_F(AdmissionTest, AnEquivalentVersionIsShownInTheVersionOfTheRule) {
  const TestWebhook hook([](const auto& review) {
    return patched(review, R"([{"op":"replace","path":"/spec/maxReplicas","value":9}])");
  });
  mutate_with(hook, rule("autoscaling", "v2", "horizontalpodautoscalers"));
  const api::Resource v1{"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
                         true};
  const api::Object made = in(v1).create(json(R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,
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

TEST_F(AdmissionTest, AWebhookThatHangsCostsItsTimeout) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":1)");
  const auto begin = std::chrono::steady_clock::now();
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.message,
            fmt::format("Internal error occurred: failed calling webhook \"check.example.com\": "
                        "failed to call webhook: Post \"{}?timeout=1s\": context deadline exceeded",
                        hook.url()));
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST_F(AdmissionTest, AWebhookThatHangsCanBeIgnored) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  mutate_with(hook, kMaps, R"("timeoutSeconds":1,"failurePolicy":"Ignore")");
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_EQ(hook.reviews().size(), 1u);
}

TEST_F(AdmissionTest, OthersAreServedWhileAWebhookHangs) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":3,"failurePolicy":"Ignore")");
  // More than the server has threads.
  std::vector<std::future<void>> writers;
  writers.reserve(6);
  for (int i = 0; i < 6; ++i) {
    writers.push_back(std::async(std::launch::async, [this, i] {
      const rest::Client own(server_.client_config());
      own.resource(kConfigMaps, "default").create(config_map(fmt::format("m{}", i)));
    }));
  }
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 6; }));
  EXPECT_NO_THROW(pods().create(pod("a")));
  EXPECT_EQ(writers[0].wait_for(0s), std::future_status::timeout);
  for (auto& writer : writers) EXPECT_NO_THROW(test::get(writer));
}

TEST_F(AdmissionTest, ValidatingWebhooksAreAskedAllAtOnce) {
  std::atomic<int> waiting{0};
  std::atomic<bool> met{false};
  const auto answer = [&](const api::Object& review) {
    ++waiting;
    for (int i = 0; i < 1000 && waiting < 2; ++i) std::this_thread::sleep_for(10ms);
    if (waiting == 2) met = true;
    return allowed(review);
  };
  const TestWebhook one(answer);
  const TestWebhook two(answer);
  all(kValidating)
      .create(configuration("both", webhook("one.example.com", one.client_config(), kMaps) + "," +
                                        webhook("two.example.com", two.client_config(), kMaps)));
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_TRUE(met);
}

TEST_F(AdmissionTest, AWebhookOfAnotherAuthorityIsNotTrusted) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  const test::CertificateAuthority other;
  const std::string config =
      fmt::format(R"("url":"{}","caBundle":"{}")", hook.url(), encode_base64(other.certificate()));
  all(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_EQ(status.code, 500);
  EXPECT_TRUE(
      status.message.starts_with("Internal error occurred: failed calling webhook "
                                 "\"a.example.com\": failed to call webhook: Post "))
      << status.message;
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, ACertificateForAnotherNameIsNotTrusted) {
  const TestWebhook hook([](const auto& review) { return allowed(review); },
                         {"DNS:elsewhere.test"});
  validate_with(hook);
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 500);
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, GarbageIsAFailureOfTheCall) {
  const TestWebhook hook([](const auto&) { return "garbage"; });
  validate_with(hook);
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_EQ(status.code, 500);
  EXPECT_TRUE(
      status.message.starts_with("Internal error occurred: failed calling webhook "
                                 "\"check.example.com\": failed to call webhook: "))
      << status.message;
}

TEST_F(AdmissionTest, AnAnswerToAnotherQuestionIsAFailureOfTheCall) {
  const TestWebhook hook([](const auto&) {
    return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",)"
           R"("response":{"uid":"other","allowed":true}})";
  });
  validate_with(hook, kMaps, R"("failurePolicy":"Fail")");
  const api::Status status = status_of([&] { maps().create(config_map("a")); });
  EXPECT_EQ(status.code, 500);
  EXPECT_NE(status.message.find("received invalid webhook response: expected response.uid="),
            std::string::npos)
      << status.message;
}

TEST_F(AdmissionTest, NobodyListens) {
  std::string config;
  {
    const TestWebhook gone([](const auto& review) { return allowed(review); });
    config = gone.client_config();
  }
  all(kMutating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 500);
}

TEST_F(AdmissionTest, WarningsReachTheClientAlsoWithARefusal) {
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

TEST_F(AdmissionTest, ADryRunAsksThoseWithoutSideEffects) {
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

// Configurations of the old version may say so: they are in the storage, and no longer written.
TEST_F(AdmissionTest, ADryRunIsRefusedForThoseWithSideEffects) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  EventLoop loop(1);
  const auto kept = changed(
      configuration("a", webhook("a.example.com", hook.client_config(), kMaps)),
      R"({"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1"})");
  std::string text = kept.to_json();
  const std::string none = R"("sideEffects":"None")";
  text.replace(text.find(none), none.size(), R"("sideEffects":"Some")");
  auto& place = server_.storage().resource("validatingwebhookconfigurations");
  loop.run(place.create("a", json(text)));
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
  // Written past the server, it counts when the watch has brought it.
  EXPECT_TRUE(eventually([&] { return code() == 400; }));
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, AWebhookIsAskedAgainIfALaterOneChangesTheObject) {
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

// The request that waits for the webhook must not be in the way of those that it makes.
TEST_F(AdmissionTest, AWebhookMayCallTheServer) {
  const TestWebhook hook([this](const api::Object& review) {
    const rest::Client own(server_.client_config());
    const auto secrets = own.resource(kSecrets, "default");
    secrets.create(json(
        fmt::format(R"({{"metadata":{{"name":"{}"}}}})", review["request"]["name"].as_string())));
    own.resource(kNamespaces).list({});
    return allowed(review);
  });
  validate_with(hook);
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_NO_THROW(in(kSecrets).get("a"));
}

TEST_F(AdmissionTest, AChangeMeanwhileIsAskedAboutAgain) {
  maps().create(config_map("a", "1"));
  std::atomic<int> calls{0};
  const TestWebhook hook([&](const api::Object& review) {
    if (review["request"]["userInfo"]["username"].as_string() == "other") return allowed(review);
    if (++calls == 1) {
      rest::Config config = server_.client_config();
      config.as.user = "other";
      const rest::Client other(config);
      other.resource(kConfigMaps, "default")
          .patch("a", rest::PatchType::kMerge, R"({"data":{"other":"x"}})");
    }
    return allowed(review);
  });
  validate_with(hook);
  maps().patch("a", rest::PatchType::kMerge, R"({"data":{"key":"2"}})");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(item("a", "key"), "2");
  EXPECT_EQ(item("a", "other"), "x");
}

TEST_F(AdmissionTest, WhoUpdatesAnOldVersionMeanwhileLosesTheRace) {
  const api::Object made = maps().create(config_map("a", "1"));
  std::atomic<int> calls{0};
  const TestWebhook hook([&](const api::Object& review) {
    if (++calls == 1) {
      const rest::Client other(server_.client_config());
      other.resource(kConfigMaps, "default")
          .patch("a", rest::PatchType::kMerge, R"({"data":{"other":"x"}})");
    }
    return allowed(review);
  });
  validate_with(hook);
  EXPECT_EQ(status_of([&] { maps().update(changed(made, R"({"data":{"key":"2"}})")); }).code, 409);
  EXPECT_EQ(item("a", "key"), "1");
}

TEST_F(AdmissionTest, AClientThatGoesAwayEndsTheCall) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":30,"failurePolicy":"Ignore")");
  HttpClient client(server_.port());
  const std::string body = R"({"metadata":{"name":"a"}})";
  client.send(
      fmt::format("POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 1; }));
  const auto failures = server_.stats().failures;
  client.close();
  EXPECT_TRUE(eventually([&] { return server_.stats().failures > failures; }));
  // Nobody waits for it, so it is not written, though failures of the webhook are ignored.
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST(Admission, TheServerStopsWhileACallRuns) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  auto server = std::make_unique<Server>();
  const rest::Client client(server->client_config());
  client.resource(kValidating)
      .create(configuration(
          "a", webhook("a.example.com", hook.client_config(), kMaps, R"("timeoutSeconds":30)")));
  auto writer = std::async(
      std::launch::async, [&] { client.resource(kConfigMaps, "default").create(config_map("a")); });
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  server->stop(100ms);
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_ANY_THROW(test::get(writer));
}

TEST(Admission, AServiceIsFoundByTheServersOptions) {
  const TestWebhook hook([](const auto& review) { return denied(review, "found"); },
                         {"DNS:hook.shop.svc"});
  ServerOptions options;
  options.resolve_service = [&](const std::string& ns, const std::string& name,
                                std::uint16_t port) -> std::optional<std::string> {
    if (ns != "shop" || name != "hook" || port != 8443) return std::nullopt;
    return fmt::format("127.0.0.1:{}", hook.port());
  };
  Server server(options);
  const rest::Client client(server.client_config());
  const std::string config = fmt::format(
      R"("service":{{"namespace":"shop","name":"hook","port":8443,"path":"/check"}},"caBundle":"{}")",
      hook.ca_bundle());
  client.resource(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  const auto maps = client.resource(kConfigMaps, "default");
  EXPECT_EQ(status_of([&] { maps.create(config_map("a")); }).message,
            "admission webhook \"a.example.com\" denied the request: found");
  EXPECT_EQ(hook.latest_target(), "/check?timeout=10s");
}

TEST_F(AdmissionTest, AServiceIsFoundByItsEndpoints) {
  const TestWebhook hook([](const auto& review) { return denied(review, "found"); },
                         {"DNS:hook.default.svc"});
  const std::string config = fmt::format(
      R"("service":{{"namespace":"default","name":"hook"}},"caBundle":"{}")", hook.ca_bundle());
  all(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  const auto message = [&] { return status_of([&] { maps().create(config_map("a")); }).message; };
  const std::string failed =
      "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: ";
  EXPECT_EQ(message(), failed + "service \"hook\" not found");
  in(kServices).create(
      json(R"({"metadata":{"name":"hook"},"spec":{"clusterIP":"None","ports":[{"port":80}]}})"));
  EXPECT_EQ(message(), failed + "no service port 443 found for service \"hook\"");
  in(kServices).patch("hook", rest::PatchType::kMerge,
                      R"({"spec":{"ports":[{"port":443,"name":"https"}]}})");
  EXPECT_EQ(message(), failed + "no endpoints available for service \"hook\"");
  const api::Resource slices{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};
  in(slices).create(json(fmt::format(
      R"({{"metadata":{{"name":"hook-1","labels":{{"kubernetes.io/service-name":"hook"}}}},)"
      R"("addressType":"IPv4","ports":[{{"name":"https","port":{}}}],)"
      R"("endpoints":[{{"addresses":["192.0.2.1"],"conditions":{{"ready":false}}}},)"
      R"({{"addresses":["127.0.0.1"]}}]}})",
      hook.port())));
  EXPECT_EQ(message(), "admission webhook \"a.example.com\" denied the request: found");
}

TEST_F(AdmissionTest, AConfigurationCountsAsSoonAsItIsWritten) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  for (int i = 0; i < 5; ++i) {
    validate_with(hook);
    EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 403);
    all(kValidating).remove("validating");
    EXPECT_NO_THROW(maps().create(config_map("a")));
    maps().remove("a");
  }
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
const api::Resource kThings{"example.com", "v1", "Thing", "things", true};

api::Object thing(const std::string& name) {
  return json(fmt::format(
      R"({{"kind":"Thing","apiVersion":"example.com/v1","metadata":{{"name":"{}"}},"spec":{{}}}})",
      name));
}

TEST_F(AdmissionTest, CustomResourcesAreShownWithDefaultsAndValidatedAfterwards) {
  all(kDefinitions).create(json(kVersionedThings));
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

TEST_F(AdmissionTest, AWebhookForOneVersionOfACustomResourceSeesTheOthers) {
  all(kDefinitions).create(json(kVersionedThings));
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

struct BadHook {
  const char* what;
  const char* change;
  const char* field;
  const char* message;
};
void PrintTo(const BadHook& c, std::ostream* out) { *out << c.what; }
class BadHooks : public AdmissionTest, public testing::WithParamInterface<BadHook> {};

TEST_P(BadHooks, AreRefused) {
  const api::Object good =
      json(webhook("a.example.com", R"("url":"https://hooks.test/check")", kMaps));
  const std::string bad = changed(good, GetParam().change).to_json();
  for (const auto& kind : {kValidating, kMutating}) {
    const api::Status status = status_of([&] { all(kind).create(configuration("a", bad)); });
    EXPECT_EQ(status.code, 422);
    ASSERT_FALSE(status.causes.empty());
    EXPECT_EQ(status.causes[0].field, std::string("webhooks[0]") + GetParam().field);
    EXPECT_NE(status.causes[0].message.find(GetParam().message), std::string::npos)
        << status.causes[0].message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadHooks,
    testing::Values(
        BadHook{"short name", R"({"name":"a.b"})", ".name", "at least three segments"},
        BadHook{"plain HTTP", R"({"clientConfig":{"url":"http://hooks.test"}})",
                ".clientConfig.url",
                "'https' is the only allowed URL scheme; desired format: https://host[/path]"},
        BadHook{"query", R"({"clientConfig":{"url":"https://hooks.test/?a=b"}})",
                ".clientConfig.url", "query parameters are not permitted in the URL"},
        BadHook{"nowhere", R"({"clientConfig":{"url":null}})", ".clientConfig",
                "exactly one of url or service is required"},
        BadHook{"two places", R"({"clientConfig":{"service":{"name":"a","namespace":"b"}}})",
                ".clientConfig", "exactly one of url or service is required"},
        BadHook{"service without a name",
                R"({"clientConfig":{"url":null,"service":{"namespace":"b"}}})",
                ".clientConfig.service.name", "service name is required"},
        BadHook{"long timeout", R"({"timeoutSeconds":31})", ".timeoutSeconds",
                "the timeout value must be between 1 and 30 seconds"},
        BadHook{"no side effects", R"({"sideEffects":null})", ".sideEffects",
                "must specify one of None, NoneOnDryRun"},
        BadHook{"side effects", R"({"sideEffects":"Some"})", ".sideEffects",
                R"(supported values: "None", "NoneOnDryRun")"},
        BadHook{"policy", R"({"failurePolicy":"Retry"})", ".failurePolicy",
                R"(supported values: "Fail", "Ignore")"},
        BadHook{"no versions", R"({"admissionReviewVersions":[]})", ".admissionReviewVersions",
                "must specify one of v1, v1beta1"},
        BadHook{"unknown versions", R"({"admissionReviewVersions":["v9"]})",
                ".admissionReviewVersions", "must include at least one of v1, v1beta1"},
        BadHook{"operations",
                R"({"rules":[{"apiGroups":[""],"apiVersions":["*"],"resources":["*"],
                    "operations":["*","CREATE"]}]})",
                ".rules[0].operations", "if '*' is present, must not specify other operations"}));

TEST_F(AdmissionTest, MatchConditionsAreTakenAsTrueWithAWarning) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  const auto answer =
      http(server_.port(), "POST",
           "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
           configuration("a", webhook("a.example.com", hook.client_config(), kMaps,
                                      R"("matchConditions":[{"name":"x","expression":"false"}])"))
               .to_json());
  EXPECT_EQ(answer.code, 201);
  EXPECT_NE(answer.headers.at("warning").find("match conditions are not evaluated"),
            std::string::npos);
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 403);
}

TEST_F(AdmissionTest, ServicesKeepTheirAddressesThroughAdmission) {
  const TestWebhook hook([](const auto& review) {
    if (review["request"]["operation"].as_string() != "UPDATE") return allowed(review);
    return patched(review, R"([{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}])");
  });
  mutate_with(hook, rule("", "v1", "services"));
  const api::Object made =
      in(kServices).create(json(R"({"metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}})"));
  const api::Object after = in(kServices).update(changed(made, R"({"spec":{"type":"NodePort"}})"));
  EXPECT_EQ(after["spec"]["clusterIP"].as_string(), made["spec"]["clusterIP"].as_string());
  EXPECT_GE(after["spec"]["ports"][std::size_t{0}]["nodePort"].as_int(), 30000);
  EXPECT_EQ(after.labels()["seen"].as_string(), "yes");
}

// ------------------------------------------------------------------------------------- metrics

class AdmissionMetricsTest : public AdmissionTest {
 protected:
  /// The value of the sample that has all these labels, on /metrics; -1 if there is none.
  double metric(const std::string& name, const std::vector<std::string>& labels) const {
    std::istringstream lines(http(server_.port(), "GET", "/metrics").body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("apiserver_admission_webhook_" + name + "{")) continue;
      const auto is_in = [&](const std::string& label) {
        return line.find(label) != std::string::npos;
      };
      if (std::all_of(labels.begin(), labels.end(), is_in))
        return std::stod(line.substr(line.rfind(' ')));
    }
    return -1;
  }

  static inline const std::vector<std::string> kCheck = {R"(name="check.example.com")",
                                                         R"(type="validating")"};
  static inline const std::vector<std::string> kChange = {R"(name="change.example.com")",
                                                          R"(type="admit")"};
  static std::vector<std::string> with(std::vector<std::string> labels,
                                       const std::vector<std::string>& more) {
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
  }
};

TEST_F(AdmissionMetricsTest, CallsAreCountedByOutcomeAndOperation) {
  const TestWebhook check([](const auto& review) {
    return review["request"]["operation"].as_string() == "DELETE" ? denied(review, "it stays")
                                                                  : allowed(review);
  });
  const TestWebhook change([](const auto& review) { return allowed(review); });
  validate_with(check);
  mutate_with(change);
  maps().create(config_map("a"));
  maps().create(config_map("b"));
  EXPECT_EQ(status_of([&] { maps().remove("a"); }).code, 403);

  EXPECT_EQ(metric("request_total",
                   with(kCheck, {R"(operation="CREATE")", R"(code="200")", R"(rejected="false")"})),
            2);
  EXPECT_EQ(metric("request_total",
                   with(kCheck, {R"(operation="DELETE")", R"(code="403")", R"(rejected="true")"})),
            1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(operation="DELETE")", R"(code="200")",
                                                   R"(rejected="false")"})),
            1);
  EXPECT_EQ(
      metric("rejection_count", with(kCheck, {R"(operation="DELETE")", R"(error_type="no_error")",
                                              R"(rejection_code="403")"})),
      1);
  EXPECT_EQ(metric("rejection_count", kChange), -1);
  EXPECT_EQ(metric("admission_duration_seconds_count",
                   with(kCheck, {R"(operation="CREATE")", R"(rejected="false")"})),
            2);
  EXPECT_EQ(metric("admission_duration_seconds_bucket",
                   with(kCheck, {R"(operation="CREATE")", R"(le="+Inf")"})),
            2);
  EXPECT_GT(metric("admission_duration_seconds_sum", with(kCheck, {R"(operation="CREATE")"})), 0);
  const std::string page = http(server_.port(), "GET", "/metrics").body;
  EXPECT_NE(page.find("# HELP apiserver_admission_webhook_rejection_count Number of requests that"),
            std::string::npos);
}

TEST_F(AdmissionMetricsTest, ARefusalWithAStrangeCodeIsOneOf600) {
  const TestWebhook check([](const auto& review) {
    return review_answer(review, R"("allowed":false,"status":{"code":999})");
  });
  validate_with(check);
  EXPECT_THROW(maps().create(config_map("a")), api::StatusError);
  EXPECT_EQ(metric("rejection_count", with(kCheck, {R"(rejection_code="600")"})), 1);
  EXPECT_EQ(metric("request_total", with(kCheck, {R"(code="600")"})), 1);
}

TEST_F(AdmissionMetricsTest, ARefusalWithACodeThatHttpCannotSayIs400) {
  const TestWebhook check([](const auto& review) {
    return review_answer(review, R"("allowed":false,"status":{"code":31337})");
  });
  validate_with(check);
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 400);
}

TEST_F(AdmissionMetricsTest, FailuresAreRejectionsOrGoOn) {
  // Neither answers: nobody listens there any more.
  std::string gone;
  {
    const TestWebhook hook([](const auto& review) { return allowed(review); });
    gone = hook.client_config();
  }
  all(kValidating)
      .create(configuration(
          "ignored", webhook("check.example.com", gone, kMaps, R"("failurePolicy":"Ignore")")));
  maps().create(config_map("a"));
  EXPECT_EQ(metric("fail_open_count", kCheck), 1);
  EXPECT_EQ(metric("request_total", with(kCheck, {R"(code="400")", R"(rejected="false")"})), 1);
  EXPECT_EQ(metric("rejection_count", kCheck), -1);

  all(kMutating).create(configuration("needed", webhook("change.example.com", gone, kMaps)));
  EXPECT_EQ(status_of([&] { maps().create(config_map("b")); }).code, 500);
  EXPECT_EQ(metric("fail_open_count", kChange), -1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(code="503")", R"(rejected="true")"})), 1);
  EXPECT_EQ(metric("rejection_count", with(kChange, {R"(error_type="calling_webhook_error")",
                                                     R"(rejection_code="503")"})),
            1);
}

TEST_F(AdmissionMetricsTest, APatchThatDoesNotFitIsAnErrorOfTheServer) {
  const TestWebhook change([](const auto& review) {
    return patched(review, R"([{"op":"remove","path":"/data/nothing"}])");
  });
  mutate_with(change);
  EXPECT_EQ(status_of([&] { maps().create(config_map("a")); }).code, 500);
  EXPECT_EQ(metric("rejection_count", with(kChange, {R"(error_type="apiserver_internal_error")",
                                                     R"(rejection_code="0")"})),
            1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(code="0")", R"(rejected="true")"})), 1);
}

}  // namespace
}  // namespace lookout::apiserver
