// Decision tables: the requests for which a webhook is called, and its valid responses.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "apiserver/admission/hook.h"
#include "apiserver/admission/review.h"
#include "lookout/api/status.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver::admission {
namespace {

using lookout::test::thrown;

struct RuleCase {
  const char* what;
  Rule rule;
  Subject subject;
  bool matches;
};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.what; }
class Rules : public testing::TestWithParam<RuleCase> {};

TEST_P(Rules, SelectRequests) {
  EXPECT_EQ(matches(GetParam().rule, GetParam().subject), GetParam().matches);
}

const Rule kPodRule{{"CREATE"}, {""}, {"v1"}, {"pods"}, ""};
const Subject kNewPod{"", "v1", "pods", "", "shop", "CREATE"};

Rule with_resource(const char* resource) {
  Rule rule = kPodRule;
  rule.resources = {resource};
  return rule;
}
Rule with_scope(const char* resource, const char* scope) {
  Rule rule = with_resource(resource);
  rule.scope = scope;
  return rule;
}
Subject on(const char* resource, const char* subresource, const char* ns) {
  return {"", "v1", resource, subresource, ns, "CREATE"};
}

INSTANTIATE_TEST_SUITE_P(
    All, Rules,
    testing::Values(
        RuleCase{"exactly", kPodRule, kNewPod, true},
        RuleCase{"operation", kPodRule, {"", "v1", "pods", "", "shop", "UPDATE"}, false},
        RuleCase{"any operation", {{"*"}, {""}, {"v1"}, {"pods"}, ""}, kNewPod, true},
        RuleCase{"group", kPodRule, {"apps", "v1", "pods", "", "shop", "CREATE"}, false},
        RuleCase{"any group", {{"CREATE"}, {"*"}, {"v1"}, {"pods"}, ""}, kNewPod, true},
        RuleCase{"version", kPodRule, {"", "v2", "pods", "", "shop", "CREATE"}, false},
        RuleCase{"any version", {{"CREATE"}, {""}, {"*"}, {"pods"}, ""}, kNewPod, true},
        RuleCase{"no rule at all", {}, kNewPod, false},
        RuleCase{"other resource", with_resource("services"), kNewPod, false},
        RuleCase{"subresources are not meant", kPodRule, on("pods", "status", "shop"), false},
        RuleCase{"any resource has no subresources", with_resource("*"),
                 on("pods", "status", "shop"), false},
        RuleCase{"any resource", with_resource("*"), kNewPod, true},
        RuleCase{"a subresource", with_resource("pods/status"), on("pods", "status", "shop"), true},
        RuleCase{"a subresource is not the resource", with_resource("pods/status"), kNewPod, false},
        RuleCase{"all subresources", with_resource("pods/*"), on("pods", "eviction", "shop"), true},
        RuleCase{"all subresources and the resource", with_resource("pods/*"), kNewPod, true},
        RuleCase{"one subresource of all", with_resource("*/scale"), on("things", "scale", "shop"),
                 true},
        RuleCase{"one subresource of all, another", with_resource("*/scale"),
                 on("things", "status", "shop"), false},
        RuleCase{"everything", with_resource("*/*"), on("things", "status", "shop"), true},
        RuleCase{"namespaced", with_scope("pods", "Namespaced"), kNewPod, true},
        RuleCase{"not of the cluster", with_scope("pods", "Cluster"), kNewPod, false},
        RuleCase{"of the cluster", with_scope("nodes", "Cluster"), on("nodes", "", ""), true},
        RuleCase{"not namespaced", with_scope("nodes", "Namespaced"), on("nodes", "", ""), false},
        RuleCase{"a namespace is of the cluster", with_scope("namespaces", "Cluster"),
                 on("namespaces", "", "shop"), true},
        RuleCase{"a namespace is not namespaced", with_scope("namespaces", "Namespaced"),
                 on("namespaces", "", "shop"), false},
        RuleCase{"any scope", with_scope("pods", "*"), kNewPod, true},
        RuleCase{"unknown scope", with_scope("pods", "Galaxy"), kNewPod, false}));

const Version kV1{"autoscaling", "v1", "horizontalpodautoscalers", {"autoscaling", "v1", "H"}};
const Version kV2{"autoscaling", "v2", "horizontalpodautoscalers", {"autoscaling", "v2", "H"}};
const Subject kScaler{"autoscaling", "v1", "horizontalpodautoscalers", "", "shop", "CREATE"};

Hook hook_for(std::vector<std::string> versions, bool equivalent) {
  Hook hook;
  hook.rules = {{{"*"}, {"autoscaling"}, std::move(versions), {"horizontalpodautoscalers"}, ""}};
  hook.equivalent = equivalent;
  return hook;
}

TEST(MatchPolicy, ExactMatchesOnlyItsOwnVersions) {
  EXPECT_FALSE(wanted_version(hook_for({"v2"}, false), kScaler, kV1, {kV2}));
  EXPECT_TRUE(wanted_version(hook_for({"v1"}, false), kScaler, kV1, {kV2}));
}

TEST(MatchPolicy, EquivalentConvertsToAVersionOfItsRules) {
  const auto wanted = wanted_version(hook_for({"v2"}, true), kScaler, kV1, {kV2});
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->version, "v2");
  EXPECT_EQ(wanted->kind.version, "v2");
}

TEST(MatchPolicy, EquivalentPrefersTheVersionOfTheRequest) {
  const auto wanted = wanted_version(hook_for({"v2", "v1"}, true), kScaler, kV1, {kV2});
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->version, "v1");
}

api::Object labelled(const std::string& labels) {
  return api::Object::parse(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":)" +
                            labels + "}}");
}

std::shared_ptr<const Hook> hook_with(const std::string& members) {
  return hooks_of(api::Object::parse(R"({"metadata":{"name":"c"},"webhooks":[{"name":"a.b.c",)" +
                                     members + "}]}"))
      .at(0);
}

TEST(ObjectSelector, MatchesTheOldOrTheNewObject) {
  const auto hook = hook_with(R"("objectSelector":{"matchLabels":{"app":"web"}})");
  const api::Object web = labelled(R"({"app":"web"})");
  const api::Object other = labelled(R"({"app":"db"})");
  EXPECT_TRUE(selects_objects(*hook, web, {}));
  EXPECT_TRUE(selects_objects(*hook, other, web));
  EXPECT_TRUE(selects_objects(*hook, web, other));
  EXPECT_TRUE(selects_objects(*hook, {}, web));
  EXPECT_FALSE(selects_objects(*hook, other, other));
  EXPECT_FALSE(selects_objects(*hook, {}, {}));
}

TEST(ObjectSelector, AnEmptySelectorSelectsEverything) {
  const auto hook = hook_with(R"("objectSelector":{})");
  EXPECT_TRUE(selects_objects(*hook, labelled("{}"), {}));
  EXPECT_TRUE(selects_objects(*hook, {}, {}));
}

TEST(ObjectSelector, AnInvalidSelectorFailsTheRequest) {
  const auto hook = hook_with(
      R"("objectSelector":{"matchExpressions":[{"key":"a","operator":"Near","values":["b"]}]})");
  const auto error = thrown<api::StatusError>([&] { selects_objects(*hook, labelled("{}"), {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), 500);
}

TEST(Configuration, HasDefaults) {
  const auto hook = hook_with(R"("rules":[])");
  EXPECT_EQ(hook->configuration, "c");
  EXPECT_TRUE(hook->equivalent);
  EXPECT_FALSE(hook->ignores_failures);
  EXPECT_FALSE(hook->reinvoked);
  EXPECT_EQ(hook->timeout, std::chrono::seconds(10));
  EXPECT_EQ(hook->side_effects, "");
}

struct AnswerCase {
  const char* body;
  bool mutating;
  const char* error;
};
void PrintTo(const AnswerCase& c, std::ostream* out) { *out << c.body; }
class BadAnswers : public testing::TestWithParam<AnswerCase> {};

TEST_P(BadAnswers, AreFailuresOfTheCall) {
  const auto hook = hook_with(R"("admissionReviewVersions":["v1"])");
  const auto error =
      thrown<CallError>([&] { read_verdict(*hook, GetParam().mutating, "id", GetParam().body); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find(GetParam().error), std::string::npos) << error->what();
}

#define REVIEW(members)                                                                             \
  R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"id",)" members \
  "}}"

INSTANTIATE_TEST_SUITE_P(
    All, BadAnswers,
    testing::Values(
        AnswerCase{"", true, "couldn't get version/kind; json parse error"},
        AnswerCase{"hello", true, "couldn't get version/kind; json parse error"},
        AnswerCase{"{}", true, "webhook response was absent"},
        AnswerCase{R"({"response":[]})", true, "webhook response was absent"},
        AnswerCase{R"({"response":{"uid":"other","allowed":true}})", true,
                   R"(expected response.uid="id", got "other")"},
        AnswerCase{R"({"response":{"uid":"id","allowed":true}})", true,
                   "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, "
                   "Kind="},
        AnswerCase{R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",)"
                   R"("response":{"uid":"id","allowed":true}})",
                   true, "got admission.k8s.io/v1beta1, Kind=AdmissionReview"},
        AnswerCase{REVIEW(R"("allowed":"yes")"), true, "response.allowed is not a bool"},
        AnswerCase{REVIEW(R"("allowed":true,"patch":"W10=")"), true,
                   "webhook returned response.patch but not response.patchType"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"JSONPatch")"), true,
                   "webhook returned response.patchType but not response.patch"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"","patch":"W10=")"), true,
                   R"(webhook returned invalid response.patchType of "")"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"Merge","patch":"e30=")"), true,
                   R"(unsupported patch type "Merge")"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"JSONPatch","patch":"*")"), true,
                   "response.patch is not base64"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"JSONPatch","patch":"W10=")"), false,
                   "validating webhook may not return response.patch"},
        AnswerCase{REVIEW(R"("allowed":true,"patchType":"JSONPatch")"), false,
                   "validating webhook may not return response.patchType"}));

TEST(Reviews, RefusalsHaveTheMessagesOfKubeApiserver) {
  const struct {
    const char* status;
    int code;
    std::string why;
  } cases[] = {{"", 400, " without explanation"},
               {R"(,"status":{"message":"no","code":403})", 403, ": no"},
               {R"(,"status":{"reason":"Forbidden"})", 400, ": Forbidden"},
               {R"(,"status":{"status":"Success","code":200,"message":"fine"})", 400, ": fine"}};
  const auto hook = hook_with(R"("admissionReviewVersions":["v1"])");
  const std::string body = REVIEW(R"("allowed":false)");
  for (const auto& c : cases) {
    std::string with_status = body;
    with_status.insert(body.size() - 2, c.status);
    const Verdict verdict = read_verdict(*hook, false, "id", with_status);
    EXPECT_FALSE(verdict.allowed) << c.status;
    EXPECT_EQ(verdict.refusal.code, c.code) << c.status;
    EXPECT_EQ(verdict.refusal.message, R"(admission webhook "a.b.c" denied the request)" + c.why);
    EXPECT_EQ(verdict.refusal.status, "Failure") << c.status;
  }
}

TEST(Reviews, V1Beta1NeedsNoType) {
  const auto hook = hook_with(R"("admissionReviewVersions":["v2","v1beta1"])");
  EXPECT_EQ(review_version(*hook), "v1beta1");
  const Verdict verdict =
      read_verdict(*hook, true, "id", R"({"response":{"allowed":true,"patch":"W10="}})");
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.patch, "[]");
}

TEST(Reviews, NeedAKnownVersion) {
  const auto hook = hook_with(R"("admissionReviewVersions":["v2"])");
  const auto error = thrown<CallError>([&] { review_version(*hook); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(),
               "could not create admission objects: webhook does not accept known AdmissionReview "
               "versions (v1, v1beta1)");
}

}  // namespace
}  // namespace lookout::apiserver::admission
