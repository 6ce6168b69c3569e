// The configurations of admission webhooks.
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/admission_fixture.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {
namespace {

TEST_F(AdmissionTest, AConfigurationAppliesAtOnce) {
  const TestWebhook hook([](const auto& review) { return denied(review, "no"); });
  for (int i = 0; i < 5; ++i) {
    validate_with(hook);
    EXPECT_EQ(refused_write().code, 403);
    all(kValidating).remove("validating");
    EXPECT_NO_THROW(maps().create(config_map("a")));
    maps().remove("a");
  }
}

struct BadHook {
  const char* what;
  const char* change;
  const char* field;
  const char* message;
};
void PrintTo(const BadHook& c, std::ostream* out) { *out << c.what; }
class BadHooks : public AdmissionTest, public testing::WithParamInterface<BadHook> {};

TEST_P(BadHooks, AreRejected) {
  const api::Object good =
      from_json(webhook("a.example.com", R"("url":"https://hooks.test/check")", kMaps));
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
                // (kube-apiserver has the two exchanged.)
                ".clientConfig.service.namespace", "Required value"},
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

TEST_F(AdmissionTest, MatchConditionsCountAsTrueWithAWarning) {
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
  EXPECT_EQ(refused_write().code, 403);
}

}  // namespace
}  // namespace lookout::apiserver
