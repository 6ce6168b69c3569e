// Evictions: rejections by budgets, and written objects. The responses are those of kube-apiserver 1.36.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lookout/api/status.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

const api::Resource kBudgets("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true);

/// Budgets with these conditions.
std::string condition(const std::string& reason, const std::string& message) {
  return R"(,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":")" + reason +
         R"(","message":")" + message + R"(","lastTransitionTime":"2026-01-01T00:00:00Z"}])";
}

class Evictions : public ClientTest {
 protected:
  /// A running pod. The finalizer keeps it, so that the test can check the result.
  void run_pod(bool ready, const std::string& phase = "Running") {
    Object created = pods().create(changed(
        pod("p"), R"({"metadata":{"labels":{"a":"b"},"finalizers":["example.com/keep"]}})"));
    pods().update_status(changed(created, R"({"status":{"phase":")" + phase +
                                              R"(","conditions":[{"type":"Ready","status":")" +
                                              (ready ? "True" : "False") + R"("}]}})"));
  }
  /// A budget for the pod, with this status. Empty: no controller has seen it.
  void set_budget(const std::string& status, const std::string& spec = "") {
    in(kBudgets).create(from_json(R"({"metadata":{"name":"b"},"spec":{"minAvailable":1)" + spec +
                                  R"(,"selector":{"matchLabels":{"a":"b"}}}})"));
    if (status.empty()) return;
    in(kBudgets).update_status(
        changed(in(kBudgets).get("b"),
                R"({"status":{"observedGeneration":1,"expectedPods":2,)" + status + "}}"));
  }
  HttpAnswer evict(const std::string& options = "", const std::string& parameters = "") {
    return http(server_.port(), "POST", "/api/v1/namespaces/default/pods/p/eviction" + parameters,
                R"({"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"})" +
                    (options.empty() ? "" : R"(,"deleteOptions":)" + options) + "}");
  }
  /// The response's message about the budget.
  static std::string reason_of(const HttpAnswer& answer) {
    const Object status = Object::parse(answer.body);
    EXPECT_EQ(status["reason"].as_string(), "TooManyRequests") << answer.body;
    return std::string(status["details"]["causes"][0]["message"].as_string());
  }
  static std::string message_of(const HttpAnswer& answer) {
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  }
  bool is_leaving() {
    return lookout::test::held(pods().get("p"))["metadata"]["deletionTimestamp"].exists();
  }
};

TEST_F(Evictions, DeletePods) {
  pods().create(pod("p"));
  EXPECT_EQ(evict().code, 201);
  EXPECT_EQ(status_of([&] { pods().get("p"); }).code, 404);
  EXPECT_EQ(evict().code, 404);
}

TEST_F(Evictions, SetADisruptionCondition) {
  run_pod(true);
  EXPECT_EQ(evict().code, 201);
  const Object left = pods().get("p");
  EXPECT_TRUE(left["metadata"]["deletionTimestamp"].exists());
  const api::Value why = left["status"]["conditions"][1];
  EXPECT_EQ(why["type"].as_string(), "DisruptionTarget");
  EXPECT_EQ(why["status"].as_string(), "True");
  EXPECT_EQ(why["reason"].as_string(), "EvictionByEvictionAPI");
  EXPECT_EQ(why["message"].as_string(), "Eviction API: evicting");
}

TEST_F(Evictions, DryRunsChangeNothing) {
  run_pod(true);
  set_budget(R"("disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1)");
  const Object before = pods().get("p");
  EXPECT_EQ(evict(R"({"dryRun":["All"]})").code, 201);
  EXPECT_EQ(evict("", "?dryRun=All").code, 201);
  EXPECT_EQ(evict(R"({"dryRun":["All"]})", "?dryRun=All").code, 201);
  EXPECT_EQ(pods().get("p"), before);
  EXPECT_EQ(lookout::test::held(in(kBudgets).get("b"))["status"]["disruptionsAllowed"].as_int(), 1);
  EXPECT_EQ(evict(R"({"dryRun":["All","x"]})").code, 422);
}

TEST_F(Evictions, CheckPreconditions) {
  run_pod(true);
  const HttpAnswer uid = evict(R"({"preconditions":{"uid":"x"}})");
  EXPECT_EQ(uid.code, 409);
  EXPECT_TRUE(message_of(uid).starts_with(
      "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (x) does not match"))
      << message_of(uid);
  EXPECT_EQ(evict(R"({"preconditions":{"resourceVersion":"1"}})").code, 409);
  EXPECT_FALSE(is_leaving());
  const std::string version(pods().get("p").resource_version());
  EXPECT_EQ(evict(R"({"preconditions":{"resourceVersion":")" + version + R"("}})").code, 201);
  EXPECT_TRUE(is_leaving());
}

TEST_F(Evictions, DeleteNothingIfMalformed) {
  run_pod(true);
  const auto refused = [&](const std::string& body) {
    return http(server_.port(), "POST", "/api/v1/namespaces/default/pods/p/eviction", body);
  };
  EXPECT_EQ(message_of(refused(R"({"metadata":{"name":"q"}})")),
            "name in URL does not match name in Eviction object");
  EXPECT_EQ(message_of(refused(R"({"metadata":{}})")),
            "name in URL does not match name in Eviction object");
  EXPECT_EQ(
      message_of(refused(R"({"metadata":{"name":"p","namespace":"other"}})")),
      "the namespace of the provided object does not match the namespace sent on the request");
  EXPECT_EQ(refused(R"({"kind":"Eviction","apiVersion":"v1","metadata":{"name":"p"}})").code, 400);
  EXPECT_EQ(message_of(evict(R"({"dryRun":"All"})")),
            "Eviction in version \"v1\" cannot be handled as a Eviction: json: cannot unmarshal "
            "string into Go struct field DeleteOptions.deleteOptions.dryRun of type []string");
  EXPECT_EQ(evict(R"("now")").code, 400);
  EXPECT_EQ(evict(R"({"ignoreStoreReadErrorWithClusterBreakingPotential":true})").code, 422);
  EXPECT_FALSE(is_leaving());
}

TEST_F(Evictions, WaitForTheController) {
  run_pod(true);
  set_budget("");
  const HttpAnswer answer = evict();
  EXPECT_EQ(answer.code, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "10");
  EXPECT_EQ(reason_of(answer), "The disruption budget b is still being processed by the server.");
}

TEST_F(Evictions, AreCounted) {
  run_pod(true);
  set_budget(R"("disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1)");
  EXPECT_EQ(evict().code, 201);
  EXPECT_TRUE(is_leaving());
  const Object budget = in(kBudgets).get("b");
  const api::Value status = budget["status"];
  EXPECT_EQ(status["disruptionsAllowed"].as_int(), 0);
  EXPECT_TRUE(status["disruptedPods"].contains("p"));
  const api::Value allowed = status["conditions"][0];
  EXPECT_EQ(allowed["type"].as_string(), "DisruptionAllowed");
  EXPECT_EQ(allowed["status"].as_string(), "False");
  EXPECT_EQ(allowed["reason"].as_string(), "InsufficientPods");
  EXPECT_EQ(allowed["observedGeneration"].as_int(), 1);
}

TEST_F(Evictions, RefuseTooManyDisruptedPods) {
  run_pod(true);
  std::string disrupted;
  for (int i = 0; i <= 2000; ++i)
    disrupted += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":"2026-01-01T00:00:00Z")";
  set_budget(R"("disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"disruptedPods":{)" +
             disrupted + "}");
  EXPECT_EQ(message_of(evict()),
            "poddisruptionbudget.policy \"b\" is forbidden: DisruptedPods map too big - too many "
            "evictions not confirmed by PDB controller");
}

TEST_F(Evictions, QuoteTheConditionsOfBudgets) {
  in(kBudgets).create(from_json(R"({"metadata":{"name":"c"},"spec":{"minAvailable":1}})"));
  const auto write = [&](const std::string& condition) {
    return in(kBudgets).patch("c", rest::PatchType::kMerge,
                              R"({"status":{"conditions":[)" + condition + "]}}", {}, "status");
  };
  const auto message = [&](const std::string& condition) {
    return status_of([&] { write(condition); }).message;
  };
  const std::string begin = "PodDisruptionBudget.policy \"c\" is invalid: ";
  EXPECT_EQ(message(R"({"type":"Ready","status":"True"})"),
            begin +
                "[status.conditions[0].lastTransitionTime: Required value, "
                "status.conditions[0].reason: Required value]");
  const std::string rest = R"("status":"True","lastTransitionTime":"2026-01-01T00:00:00Z",)";
  EXPECT_THAT(
      message(R"({"type":"Ready",)" + rest + R"("reason":"Not so"})"),
      testing::StartsWith(begin + "status.conditions[0].reason: Invalid value: \"Not so\": a "
                                  "condition reason must start with"));
  const Object written = write(R"({"type":"Ready",)" + rest + R"("reason":"A:b,C_1"})");
  EXPECT_EQ(written["status"]["conditions"].size(), 1u);
}

TEST_F(Evictions, AreRejectedUnderTwoBudgets) {
  run_pod(true);
  set_budget("");
  in(kBudgets).create(from_json(
      R"({"metadata":{"name":"c"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})"));
  const HttpAnswer answer = evict();
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(message_of(answer),
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.");
  EXPECT_FALSE(is_leaving());
}

struct Refusal {
  const char* name;
  std::string status;
  const char* message;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusedEvictions : public Evictions, public testing::WithParamInterface<Refusal> {};

TEST_P(RefusedEvictions, HaveTheExpectedMessage) {
  run_pod(true);
  set_budget(GetParam().status);
  const HttpAnswer answer = evict();
  EXPECT_EQ(answer.code, 429);
  EXPECT_EQ(reason_of(answer), GetParam().message);
  EXPECT_FALSE(is_leaving());
}

const char* const kSpare = R"("disruptionsAllowed":0,"currentHealthy":2,"desiredHealthy":1)";
INSTANTIATE_TEST_SUITE_P(
    Server, RefusedEvictions,
    testing::Values(
        Refusal{"TooFew", R"("disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1)",
                "The disruption budget b needs 1 healthy pods and has 1 currently"},
        Refusal{"Spare", kSpare, "The disruption budget b does not allow evicting pods currently"},
        Refusal{"SyncFailed", kSpare + condition("SyncFailed", "oops"),
                "The disruption budget b does not allow evicting pods currently because it failed "
                "sync: oops"},
        Refusal{"Other", kSpare + condition("Other", "why"),
                "The disruption budget b does not allow evicting pods currently (Other): why"}),
    [](const auto& test) { return test.param.name; });

struct Uncounted {
  const char* name;
  const char* phase;
  bool ready;
  std::string status;
  const char* spec;
  int code;
};
void PrintTo(const Uncounted& pod, std::ostream* out) { *out << pod.name; }

class UncountedPods : public Evictions, public testing::WithParamInterface<Uncounted> {};

TEST_P(UncountedPods, AreEvictedOrKept) {
  const auto& [name, phase, ready, status, spec, code] = GetParam();
  run_pod(ready, phase);
  set_budget(R"("disruptionsAllowed":0,)" + status, spec);
  EXPECT_EQ(evict().code, code);
  EXPECT_EQ(is_leaving(), code == 201);
  EXPECT_TRUE(
      lookout::test::held(in(kBudgets).get("b"))["status"]["disruptedPods"].members().empty());
}

const char* const kEnough = R"("currentHealthy":1,"desiredHealthy":1)";
const char* const kTooFew = R"("currentHealthy":0,"desiredHealthy":1)";
INSTANTIATE_TEST_SUITE_P(
    Server, UncountedPods,
    testing::Values(Uncounted{"Pending", "Pending", false, kTooFew, "", 201},
                    Uncounted{"Succeeded", "Succeeded", false, kTooFew, "", 201},
                    Uncounted{"Failed", "Failed", false, kTooFew, "", 201},
                    Uncounted{"UnreadyOfAHealthySet", "Running", false, kEnough, "", 201},
                    Uncounted{"UnreadyOfASickSet", "Running", false, kTooFew, "", 429},
                    Uncounted{"UnreadyThatMayAlwaysGo", "Running", false, kTooFew,
                              R"(,"unhealthyPodEvictionPolicy":"AlwaysAllow")", 201},
                    Uncounted{"ReadyOfAHealthySet", "Running", true, kEnough,
                              R"(,"unhealthyPodEvictionPolicy":"AlwaysAllow")", 429}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lookout::apiserver
