// Fields that the server sets, keeps or drops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/text_case.h"

namespace lookout::apiserver {
namespace {

using testing::ElementsAre;

constexpr const char* kStatefulSetsPath = "/apis/apps/v1/namespaces/default/statefulsets";
constexpr const char* kDaemonSetsPath = "/apis/apps/v1/namespaces/default/daemonsets";
constexpr const char* kJobsPath = "/apis/batch/v1/namespaces/default/jobs";
constexpr const char* kVolumeClaimsPath = "/api/v1/namespaces/default/persistentvolumeclaims";

class Defaults : public ClientTest {
 protected:
  HttpAnswer post(const std::string& path, const std::string& body) const {
    return http(server_.port(), "POST", path + "?dryRun=All", body);
  }
  Object created(const std::string& path, const std::string& body) const {
    const HttpAnswer answer = post(path, body);
    EXPECT_EQ(answer.code, 201) << answer.body;
    return from_json(answer.body);
  }
};

/// A workload with more members of its spec, and of the spec of its pods.
std::string workload_of(const std::string& spec, const std::string& of_pods) {
  return R"({"metadata":{"name":"w"},"spec":{"selector":{"matchLabels":{"a":"b"}},)" + spec +
         R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{)" + of_pods + "}}}}";
}

constexpr const char* kOneContainer = R"("containers":[{"name":"c","image":"i:1"}])";

TEST_F(Defaults, AnExplicitStrategyStays) {
  const auto strategy_of = [&](const std::string& strategy) {
    const Object set = created(kStatefulSetsPath, workload_of(strategy, kOneContainer));
    return set["spec"]["updateStrategy"].to_json();
  };
  EXPECT_EQ(strategy_of(""), R"({"type":"RollingUpdate","rollingUpdate":{"partition":0}})");
  EXPECT_EQ(strategy_of(R"("updateStrategy":{"type":"RollingUpdate"},)"),
            R"({"type":"RollingUpdate"})");
  EXPECT_EQ(strategy_of(R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}},)"),
            R"({"type":"RollingUpdate","rollingUpdate":{"partition":0}})");
  EXPECT_EQ(strategy_of(R"("updateStrategy":{"rollingUpdate":{"partition":2}},)"),
            R"({"type":"RollingUpdate","rollingUpdate":{"partition":2}})");
  EXPECT_EQ(strategy_of(R"("updateStrategy":{"type":"OnDelete"},)"), R"({"type":"OnDelete"})");
}

TEST_F(Defaults, HostPortsAreDefaultedOnlyInPods) {
  const std::string spec =
      R"("hostNetwork":true,"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}]}],)"
      R"("initContainers":[{"name":"d","image":"i:1","ports":[{"containerPort":90}]}])";
  const auto ports_of = [](api::Value pod) {
    return std::vector{pod["containers"][0]["ports"][0]["hostPort"].as_int(),
                       pod["initContainers"][0]["ports"][0]["hostPort"].as_int()};
  };
  const Object pod = created(kPodsPath, R"({"metadata":{"name":"p"},"spec":{)" + spec + "}}");
  EXPECT_THAT(ports_of(pod["spec"]), ElementsAre(80, 90));
  const Object set = created(kDaemonSetsPath, workload_of("", spec));
  EXPECT_THAT(ports_of(set["spec"]["template"]["spec"]), ElementsAre(0, 0));
  EXPECT_FALSE(set["spec"]["template"]["spec"]["containers"][0]["ports"][0].contains("hostPort"));
}

TEST_F(Defaults, ANewDaemonSetMayHaveAnyTemplateGeneration) {
  constexpr const char* kGeneration = "deprecated.daemonset.template.generation";
  const auto generation_of = [&](const std::string& annotations) {
    std::string body = workload_of("", kOneContainer);
    body.insert(body.find(R"("name":"w")"), annotations);
    const Object set = created(kDaemonSetsPath, body);
    return std::string(set.annotations()[kGeneration].as_string());
  };
  const auto annotation = [&](const std::string& value) {
    return R"("annotations":{")" + std::string(kGeneration) + R"(":")" + value + R"("},)";
  };
  EXPECT_EQ(generation_of(""), "1");
  EXPECT_EQ(generation_of(annotation("0")), "1");
  EXPECT_EQ(generation_of(annotation("7")), "7");
}

TEST_F(Defaults, ControllerLabelsOfAJobAreRemoved) {
  const auto job = [](const std::string& labels, const std::string& selector) {
    return R"({"metadata":{"name":"j"},"spec":{)" + selector +
           R"("template":{"metadata":{"labels":{)" + labels +
           R"(}},"spec":{"restartPolicy":"Never",)" + kOneContainer + "}}}}";
  };
  const Object fresh = created(kJobsPath, job("", ""));
  const api::Value labels = fresh["spec"]["template"]["metadata"]["labels"];
  EXPECT_EQ(labels["job-name"].as_string(), "j");
  EXPECT_EQ(labels["controller-uid"].as_string(), fresh.uid());
  EXPECT_EQ(fresh["spec"]["selector"]["matchLabels"].to_json(),
            R"({"batch.kubernetes.io/controller-uid":")" + std::string(fresh.uid()) + R"("})");

  const auto fields_of = [&](const std::string& body) {
    const HttpAnswer answer = post(kJobsPath, body);
    EXPECT_EQ(answer.code, 422) << answer.body;
    std::vector<std::string> fields;
    const Object status = from_json(answer.body);
    for (const api::Value cause : status["details"]["causes"].elements())
      fields.emplace_back(cause["field"].as_string());
    return fields;
  };
  EXPECT_THAT(fields_of(job(R"("controller-uid":"old","job-name":"k")", "")),
              ElementsAre("spec.template.metadata.labels[controller-uid]",
                          "spec.template.metadata.labels[job-name]"));
  EXPECT_THAT(
      fields_of(job(R"("batch.kubernetes.io/controller-uid":"old")",
                    R"("selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"old"}},)")),
      ElementsAre("spec.template.metadata.labels[batch.kubernetes.io/controller-uid]",
                  "spec.selector"));
}

TEST_F(Defaults, ResourceQuantitiesAreRoundedToMilli) {
  const Object pod = created(
      kPodsPath,
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i:1","resources":)"
      R"({"limits":{"cpu":"1500u"},"requests":{"cpu":"0.0001"}}}]}})");
  const api::Value resources = pod["spec"]["containers"][0]["resources"];
  EXPECT_EQ(resources["limits"]["cpu"].as_string(), "2m");
  EXPECT_EQ(resources["requests"]["cpu"].as_string(), "1m");
}

TEST_F(Defaults, AClaimDropsASourceInAnotherNamespace) {
  const auto claim = [](const std::string& ns) {
    return R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":)"
           R"({"requests":{"storage":"1Gi"}},"dataSourceRef":{)" +
           ns + R"("kind":"PersistentVolumeClaim","name":"d"}}})";
  };
  const Object foreign = created(kVolumeClaimsPath, claim(R"("namespace":"other",)"));
  EXPECT_FALSE(foreign["spec"].contains("dataSourceRef"));
  const Object own = created(kVolumeClaimsPath, claim(""));
  EXPECT_TRUE(own["spec"].contains("dataSourceRef"));
}

TEST_F(Defaults, AServiceAccountNamesItsSecretsOnly) {
  constexpr const char* kAccounts = "/api/v1/namespaces/default/serviceaccounts";
  const std::string body =
      R"({"metadata":{"name":"a"},"secrets":[{"kind":"Secret","namespace":"other","name":"s"}]})";
  const Object account = created(kAccounts, body);
  EXPECT_EQ(account["secrets"].to_json(), R"([{"name":"s"}])");
  EXPECT_EQ(http(server_.port(), "POST", kAccounts, R"({"metadata":{"name":"a"}})").code, 201);
  const HttpAnswer answer = http(server_.port(), "PUT", std::string(kAccounts) + "/a", body);
  const Object replaced = from_json(answer.body);
  EXPECT_EQ(replaced["secrets"].to_json(), R"([{"name":"s"}])");
}

TEST_F(Defaults, AVariableFromAFileIsNotOptional) {
  const Object pod = created(
      kPodsPath,
      R"({"metadata":{"name":"p"},"spec":{"volumes":[{"name":"v"}],"containers":[{"name":"c",)"
      R"("image":"i:1","env":[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"v",)"
      R"("path":"p","key":"K"}}}]}]}})");
  const api::Value source = pod["spec"]["containers"][0]["env"][0]["valueFrom"]["fileKeyRef"];
  EXPECT_EQ(source["optional"].to_json(), "false");
}

TEST_F(Defaults, ThePullPolicyDependsOnTheTag) {
  constexpr const char* kImageWithBoth =
      "nginx:latest@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  constexpr const char* kImageWithDigest =
      "nginx@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const test::TextCase cases[] = {
      {"nginx", "Always"},
      {"nginx:latest", "Always"},
      {"nginx:1", "IfNotPresent"},
      {"localhost:5000/nginx", "Always"},
      {"Registry/a/b__c.d---e", "Always"},
      {"r.io:5000/a/b:v1", "IfNotPresent"},
      {kImageWithDigest, "IfNotPresent"},
      {kImageWithBoth, "Always"},
      // Not valid image references.
      {"IMAGE", "IfNotPresent"},
      {"${IMAGE}", "IfNotPresent"},
      {"r.io/A", "IfNotPresent"},
      {"a//b", "IfNotPresent"},
      {"a:", "IfNotPresent"},
      {"a_-b", "IfNotPresent"},
      {"a-", "IfNotPresent"},
  };
  for (const auto& [image, policy] : cases) {
    const Object set = created(
        kStatefulSetsPath,
        workload_of("", R"("containers":[{"name":"c","image":")" + std::string(image) + R"("}])"));
    EXPECT_EQ(set["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"].as_string(),
              policy)
        << image;
  }
}

}  // namespace
}  // namespace lookout::apiserver
