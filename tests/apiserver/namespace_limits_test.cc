// The effects of LimitRanges and ResourceQuotas on clients.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

const api::Resource kQuotas{"", "v1", "ResourceQuota", "resourcequotas", true};
const api::Resource kClaims{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true};

/// A pod with one container that has these resources.
Object pod_with(const std::string& name, const std::string& resources,
                const std::string& more = "") {
  return from_json(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[{{"name":"main","image":"nginx:1",
          "resources":{}}}]{}}}}})",
      name, resources, more));
}

Object claim(const std::string& name, const std::string& size, const std::string& more = "") {
  return from_json(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"accessModes":["ReadWriteOnce"],
          "resources":{{"requests":{{"storage":"{}"}}}}{}}}}})",
      name, size, more));
}

class NamespaceLimitsTest : public ClientTest {
 protected:
  using ClientTest::ClientTest;

  void create_range(const std::string& item, const std::string& name = "range") {
    in(kLimitRanges)
        .create(from_json(
            fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"limits":[{}]}}}})", name, item)));
  }
  void create_quota(const std::string& hard, const std::string& more = "",
                    const std::string& name = "quota") {
    in(kQuotas).create(from_json(
        fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"hard":{}{}}}}})", name, hard, more)));
  }
  std::string used(const std::string& what, const std::string& name = "quota") const {
    return std::string(held(in(kQuotas).get(name))["status"]["used"][what].as_string());
  }
  /// The message of a 403.
  std::string refusal(const api::Resource& resource, const Object& object) const {
    const api::Status status = status_of([&] { in(resource).create(object); });
    EXPECT_EQ(status.code, 403);
    return status.message;
  }
};

class LimitRanges : public NamespaceLimitsTest {};

TEST_F(LimitRanges, GiveDefaultsToContainers) {
  create_range(R"({"type":"Container","default":{"cpu":"2","memory":"1Gi"},
                   "defaultRequest":{"cpu":"500m"}})");
  const Object made = pods().create(from_json(R"({"metadata":{"name":"a"},"spec":{
      "initContainers":[{"name":"first","image":"i"}],
      "containers":[{"name":"main","image":"i"},
                    {"name":"own","image":"i","resources":{"limits":{"cpu":"1"}}}]}})"));
  const auto containers = made["spec"]["containers"];
  EXPECT_EQ(containers[0]["resources"].to_json(),
            R"({"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"500m","memory":"1Gi"}})");
  EXPECT_EQ(containers[1]["resources"].to_json(),
            R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}})");
  EXPECT_EQ(made["spec"]["initContainers"][0]["resources"], containers[0]["resources"]);
  EXPECT_EQ(made["metadata"]["annotations"]["kubernetes.io/limit-ranger"].as_string(),
            "LimitRanger plugin set: cpu, memory request for container main; "
            "cpu, memory limit for container main; memory request for container own; "
            "memory limit for container own; cpu, memory request for init container first; "
            "cpu, memory limit for init container first");
  // Fields that admission sets have no owner.
  for (const api::Value entry : made["metadata"]["managedFields"].elements())
    EXPECT_FALSE(entry["fieldsV1"]["f:metadata"]["f:annotations"].exists());
}

TEST_F(LimitRanges, OfOtherNamespacesDoNotApply) {
  create_range(R"({"type":"Container","max":{"cpu":"1"}})");
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"other"}})"));
  EXPECT_FALSE(held(pods("other").create(pod("a")))["metadata"]["annotations"].exists());
  EXPECT_TRUE(held(pods().create(pod("a")))["metadata"]["annotations"].exists());
}

TEST_F(LimitRanges, RejectContainers) {
  create_range(R"({"type":"Container","min":{"cpu":"100m"},"max":{"memory":"1Gi"},
                   "default":{"memory":"512Mi"},"defaultRequest":{"cpu":"200m"},
                   "maxLimitRequestRatio":{"cpu":"2"}})");
  const std::string begin = "pods \"a\" is forbidden: ";
  const auto with = [&](const std::string& resources) {
    return refusal(kPods, pod_with("a", resources));
  };
  EXPECT_EQ(with(R"({"requests":{"cpu":"50m"},"limits":{"cpu":"100m"}})"),
            begin + "minimum cpu usage per Container is 100m, but request is 50m");
  EXPECT_EQ(with(R"({"requests":{"cpu":"50m"},"limits":{"cpu":"60m"}})"),
            begin + "minimum cpu usage per Container is 100m, but request is 50m");
  EXPECT_EQ(with(R"({"requests":{"cpu":"1"},"limits":{"cpu":"1","memory":"2Gi"}})"),
            begin + "maximum memory usage per Container is 1Gi, but limit is 2Gi");
  EXPECT_EQ(with(R"({"requests":{"cpu":"1"},"limits":{"cpu":"3"}})"),
            begin +
                "cpu max limit to request ratio per Container is 2, but provided ratio is "
                "3.000000");
  EXPECT_EQ(with(R"({"requests":{"cpu":"1"}})"),
            begin +
                "cpu max limit to request ratio per Container is 2, but no limit is specified "
                "or limit is 0");
  EXPECT_EQ(with(R"({"requests":{"cpu":"50m"},"limits":{"cpu":"1","memory":"2Gi"}})"),
            begin +
                "[minimum cpu usage per Container is 100m, but request is 50m, maximum memory "
                "usage per Container is 1Gi, but limit is 2Gi, cpu max limit to request ratio "
                "per Container is 2, but provided ratio is 20.000000]");
  pods().create(pod_with("a", R"({"requests":{"cpu":"1"},"limits":{"cpu":"2","memory":"1Gi"}})"));
}

TEST_F(LimitRanges, RejectPods) {
  create_range(R"({"type":"Pod","max":{"memory":"1Gi"},"min":{"cpu":"1"}})");
  const Object two = from_json(R"({"metadata":{"name":"a"},"spec":{"containers":[
      {"name":"x","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1","memory":"800Mi"}}},
      {"name":"y","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1","memory":"300Mi"}}}]}})");
  EXPECT_EQ(refusal(kPods, two),
            "pods \"a\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 1100Mi");
  EXPECT_EQ(refusal(kPods, pod("a")),
            "pods \"a\" is forbidden: [minimum cpu usage per Pod is 1.  No request is specified, "
            "maximum memory usage per Pod is 1Gi.  No limit is specified]");
  const Object init = from_json(R"({"metadata":{"name":"a"},"spec":{
      "initContainers":[{"name":"i","image":"i","resources":{"limits":{"cpu":"1","memory":"2Gi"}}}],
      "containers":[{"name":"x","image":"i","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}})");
  EXPECT_EQ(refusal(kPods, init),
            "pods \"a\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi");
}

TEST_F(LimitRanges, RejectClaims) {
  create_range(
      R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"5Gi"}})");
  const std::string begin = "persistentvolumeclaims \"c\" is forbidden: ";
  EXPECT_EQ(refusal(kClaims, claim("c", "10Gi")),
            begin + "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi");
  EXPECT_EQ(refusal(kClaims, claim("c", "1Mi")),
            begin + "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi");
  in(kClaims).create(claim("c", "2Gi"));
}

TEST_F(LimitRanges, KeepExistingObjects) {
  pods().create(pod("a"));
  create_range(R"({"type":"Container","min":{"cpu":"1"}})");
  const Object labelled =
      pods().patch("a", rest::PatchType::kMerge, R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(labelled["metadata"]["labels"]["x"].as_string(), "y");
  EXPECT_EQ(refusal(kPods, pod_with("b", R"({"requests":{"cpu":"0"}})")),
            "pods \"b\" is forbidden: minimum cpu usage per Container is 1, but request is 0");
}

class Quotas : public NamespaceLimitsTest {
 public:
  using NamespaceLimitsTest::NamespaceLimitsTest;
};

TEST_F(Quotas, CountObjects) {
  in(kConfigMaps).create(config_map("old"));
  create_quota(R"({"configmaps":"2","count/secrets":"1","count/deployments.apps":"0"})");
  // They apply to the next request.
  EXPECT_EQ(used("configmaps"), "1");
  EXPECT_EQ(used("count/secrets"), "0");
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(used("configmaps"), "2");
  EXPECT_EQ(refusal(kConfigMaps, config_map("b")),
            "configmaps \"b\" is forbidden: exceeded quota: quota, requested: configmaps=1, used: "
            "configmaps=2, limited: configmaps=2");
  in(kSecrets).create(from_json(R"({"metadata":{"name":"a"}})"));
  EXPECT_EQ(refusal(kSecrets, from_json(R"({"metadata":{"name":"b"}})")),
            "secrets \"b\" is forbidden: exceeded quota: quota, requested: count/secrets=1, used: "
            "count/secrets=1, limited: count/secrets=1");
  EXPECT_EQ(refusal(kDeployments, from_json(R"({"metadata":{"name":"d"},"spec":{
                "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
                "spec":{"containers":[{"name":"main","image":"i"}]}}}})")),
            "deployments.apps \"d\" is forbidden: exceeded quota: quota, requested: "
            "count/deployments.apps=1, used: count/deployments.apps=0, limited: "
            "count/deployments.apps=0");
}

TEST_F(Quotas, AreFreedByDeletion) {
  create_quota(R"({"configmaps":"1"})");
  in(kConfigMaps).create(config_map("a"));
  EXPECT_NE(refusal(kConfigMaps, config_map("b")), "");
  in(kConfigMaps).remove("a");
  EXPECT_TRUE(eventually([&] { return used("configmaps") == "0"; }));
  in(kConfigMaps).create(config_map("b"));
}

TEST_F(Quotas, DoNotChargeFailedWrites) {
  create_quota(R"({"configmaps":"2"})");
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(status_of([&] { in(kConfigMaps).create(config_map("a")); }).code, 409);
  EXPECT_EQ(used("configmaps"), "1");
  EXPECT_EQ(status_of([&] { in(kConfigMaps).create(config_map("NO")); }).code, 422);
  rest::CreateOptions dry;
  dry.dry_run = true;
  in(kConfigMaps).create(config_map("b"), dry);
  EXPECT_EQ(used("configmaps"), "1");
  in(kConfigMaps).create(config_map("b"));
  // A dry run is rejected, too.
  EXPECT_EQ(status_of([&] { in(kConfigMaps).create(config_map("c"), dry); }).code, 403);
}

TEST_F(Quotas, ChangeWithTheirSpec) {
  create_quota(R"({"configmaps":"0"})");
  EXPECT_NE(refusal(kConfigMaps, config_map("a")), "");
  in(kQuotas).patch("quota", rest::PatchType::kMerge, R"({"spec":{"hard":{"configmaps":"1"}}})");
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(used("configmaps"), "1");
  in(kQuotas).remove("quota");
  in(kConfigMaps).create(config_map("b"));
}

TEST_F(Quotas, CountRequestsOfPods) {
  create_quota(R"({"pods":"2","requests.cpu":"1","limits.memory":"1Gi"})");
  EXPECT_EQ(refusal(kPods, pod("a")),
            "pods \"a\" is forbidden: failed quota: quota: must specify limits.memory for: main; "
            "requests.cpu for: main");
  pods().create(pod_with("a", R"({"requests":{"cpu":"600m"},"limits":{"memory":"512Mi"}})"));
  EXPECT_EQ(used("pods"), "1");
  EXPECT_EQ(used("requests.cpu"), "600m");
  EXPECT_EQ(used("limits.memory"), "512Mi");
  EXPECT_EQ(
      refusal(kPods, pod_with("b", R"({"requests":{"cpu":"500m"},"limits":{"memory":"1Gi"}})")),
      "pods \"b\" is forbidden: exceeded quota: quota, requested: limits.memory=1Gi,"
      "requests.cpu=500m, used: limits.memory=512Mi,requests.cpu=600m, limited: "
      "limits.memory=1Gi,requests.cpu=1");
  pods().create(pod_with("b", R"({"requests":{"cpu":"400m"},"limits":{"memory":"512Mi"}})"));
  EXPECT_EQ(
      refusal(kPods, pod_with("c", R"({"requests":{"cpu":"0"},"limits":{"memory":"0"}})")),
      "pods \"c\" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=2, limited: "
      "pods=2");
  // A pod that has ended uses nothing.
  pods().patch("a", rest::PatchType::kMerge, R"({"status":{"phase":"Succeeded"}})", {}, "status");
  EXPECT_TRUE(eventually([&] { return used("pods") == "1" && used("requests.cpu") == "400m"; }));
}

TEST_F(Quotas, SeeTheDefaultsOfLimitRanges) {
  create_range(R"({"type":"Container","default":{"cpu":"1"}})");
  create_quota(R"({"limits.cpu":"1"})");
  pods().create(pod("a"));
  EXPECT_EQ(refusal(kPods, pod("b")),
            "pods \"b\" is forbidden: exceeded quota: quota, requested: limits.cpu=1, used: "
            "limits.cpu=1, limited: limits.cpu=1");
}

TEST_F(Quotas, HaveScopes) {
  create_quota(R"({"pods":"0"})", R"(,"scopes":["BestEffort"])", "best-effort");
  create_quota(R"({"pods":"0"})", R"(,"scopes":["Terminating","NotBestEffort"])", "ending");
  create_quota(R"({"pods":"0"})",
               R"(,"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass",
                   "operator":"In","values":["system-node-critical"]}]})",
               "critical");
  const std::string cpu = R"({"requests":{"cpu":"1"}})";
  EXPECT_THAT(refusal(kPods, pod("a")), testing::HasSubstr("exceeded quota: best-effort"));
  EXPECT_THAT(refusal(kPods, pod_with("a", cpu, R"(,"activeDeadlineSeconds":60)")),
              testing::HasSubstr("exceeded quota: ending"));
  EXPECT_THAT(refusal(kPods, pod_with("a", cpu, R"(,"priorityClassName":"system-node-critical")")),
              testing::HasSubstr("exceeded quota: critical"));
  pods().create(pod_with("a", cpu));
}

TEST_F(Quotas, HaveScopesByQosClass) {
  create_quota(R"({"pods":"0"})", R"(,"scopes":["NotBestEffort"])");
  const std::string of_pod = R"(,"resources":{"requests":{"cpu":"1"}})";
  EXPECT_THAT(refusal(kPods, pod("whole", of_pod)), testing::HasSubstr("exceeded quota: quota"));
  // These resources do not make a class.
  const auto class_of = [&](const std::string& name, const std::string& resources) {
    const Object made = pods().create(pod_with(name, resources));
    return std::string(made["status"]["qosClass"].as_string());
  };
  EXPECT_EQ(class_of("zero", R"({"requests":{"cpu":"0"},"limits":{"memory":"0"}})"), "BestEffort");
  EXPECT_EQ(class_of("disk", R"({"requests":{"ephemeral-storage":"1Gi"}})"), "BestEffort");
  in(kQuotas).remove("quota");
  EXPECT_EQ(class_of("same", R"({"requests":{"cpu":"1","memory":"1Gi"},
                                 "limits":{"cpu":"1","memory":"1073741824"}})"),
            "Guaranteed");
  create_quota(R"({"pods":"0"})", R"(,"scopes":["BestEffort"])");
  pods().create(pod("whole", of_pod));
}

TEST_F(Quotas, IgnorePodsKeptOnlyByAFinalizer) {
  create_quota(R"({"pods":"1","count/pods":"5"})");
  pods().create(changed(pod("a"), R"({"metadata":{"finalizers":["example.com/wait"]}})"));
  EXPECT_NE(refusal(kPods, pod("b")), "");
  pods().remove("a", {.grace_period_seconds = 0});
  EXPECT_TRUE(eventually([&] { return used("pods") == "0"; }));
  EXPECT_EQ(used("count/pods"), "1");
  pods().create(pod("b"));
}

TEST_F(Quotas, CountServicesAndClaimsThatGrow) {
  create_quota(R"({"services":"2","services.nodeports":"1","services.loadbalancers":"0",
                   "requests.storage":"3Gi",
                   "gold.storageclass.storage.k8s.io/persistentvolumeclaims":"0"})");
  in(kServices).create(
      from_json(R"({"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80}]}})"));
  in(kServices).create(from_json(R"({"metadata":{"name":"b"},"spec":{"ports":[{"port":80}]}})"));
  EXPECT_EQ(used("services.nodeports"), "1");
  EXPECT_EQ(
      status_of([&] {
        in(kServices).patch("b", rest::PatchType::kMerge, R"({"spec":{"type":"NodePort"}})");
      }).message,
      "services \"b\" is forbidden: exceeded quota: quota, requested: services.nodeports=1, used: "
      "services.nodeports=1, limited: services.nodeports=1");
  in(kServices).patch("a", rest::PatchType::kMerge, R"({"spec":{"type":"ClusterIP"}})");
  EXPECT_TRUE(eventually([&] { return used("services.nodeports") == "0"; }));
  in(kServices).patch("b", rest::PatchType::kMerge, R"({"spec":{"type":"NodePort"}})");
  EXPECT_EQ(used("services.nodeports"), "1");
  EXPECT_EQ(used("services"), "2");

  in(kClaims).create(claim("c", "2Gi"));
  EXPECT_EQ(refusal(kClaims, claim("d", "2Gi")),
            "persistentvolumeclaims \"d\" is forbidden: exceeded quota: quota, requested: "
            "requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi");
  EXPECT_THAT(refusal(kClaims, claim("d", "1Gi", R"(,"storageClassName":"gold")")),
              testing::HasSubstr("requested: gold.storageclass.storage.k8s.io/"
                                 "persistentvolumeclaims=1"));
}

TEST_F(Quotas, CountClaimsOfAClassThatAnAnnotationNames) {
  create_quota(R"({"requests.storage":"10",
                   "gold.storageclass.storage.k8s.io/requests.storage":"2",
                   "iron.storageclass.storage.k8s.io/persistentvolumeclaims":"0"})");
  const auto annotated = [](const char* name, const char* size) {
    return changed(claim(name, size, R"(,"storageClassName":"iron")"),
                   R"({"metadata":{"annotations":{
                       "volume.beta.kubernetes.io/storage-class":"gold"}}})");
  };
  // Parts of a byte are bytes.
  in(kClaims).create(annotated("a", "100m"));
  EXPECT_EQ(used("gold.storageclass.storage.k8s.io/requests.storage"), "1");
  EXPECT_EQ(used("requests.storage"), "1");
  EXPECT_THAT(refusal(kClaims, annotated("b", "2")),
              testing::HasSubstr("requested: gold.storageclass.storage.k8s.io/requests.storage=2"));
}

TEST_F(Quotas, CountCustomResources) {
  create_quota(R"({"count/things.example.com":"1"})");
  all(kDefinitions)
      .create(from_json(std::string(kThingDefinition) +
                        R"("schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  // The resource did not exist when the quota was created.
  in(kQuotas).patch("quota", rest::PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})");
  const auto thing = [](const char* name) {
    return from_json(fmt::format(
        R"({{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{}"}}}})", name));
  };
  in(kThings).create(thing("a"));
  EXPECT_EQ(refusal(kThings, thing("b")),
            "things.example.com \"b\" is forbidden: exceeded quota: quota, requested: "
            "count/things.example.com=1, used: count/things.example.com=1, limited: "
            "count/things.example.com=1");
  in(kThings).remove("a");
  EXPECT_TRUE(eventually([&] { return used("count/things.example.com") == "0"; }));
}

TEST_F(Quotas, MustAllAllowARequest) {
  create_quota(R"({"configmaps":"5"})", "", "large");
  create_quota(R"({"configmaps":"1"})", "", "small");
  in(kConfigMaps).create(config_map("a"));
  EXPECT_THAT(refusal(kConfigMaps, config_map("b")), testing::HasSubstr("exceeded quota: small"));
  // The first quota's charge is refunded.
  EXPECT_EQ(used("configmaps", "large"), "1");
}

TEST_F(Quotas, CountObjectsCreatedByApply) {
  create_quota(R"({"configmaps":"0"})");
  rest::ApplyOptions options;
  options.field_manager = "test";
  const api::Status status = status_of([&] {
    in(kConfigMaps)
        .apply(from_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})"),
               options);
  });
  EXPECT_EQ(status.code, 403);
}

/// Clients create and delete concurrently, while the server recounts.
TEST_F(Quotas, AreNeverExceeded) {
  constexpr int kHard = 4;
  constexpr int kThreads = 6;
  constexpr int kRounds = 60;
  create_quota(fmt::format(R"({{"configmaps":"{}"}})", kHard));
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const rest::Client mine(server_.client_config());
      const auto maps = mine.resource(kConfigMaps, "default");
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = fmt::format("m-{}-{}", t, i);
        try {
          maps.create(config_map(name));
          ++created;
        } catch (const api::StatusError& e) {
          EXPECT_EQ(e.status().code, 403) << e.what();
          ++refused;
          continue;
        }
        const int now = static_cast<int>(maps.list().items.size());
        for (int known = most; known < now && !most.compare_exchange_weak(known, now);) {
        }
        maps.remove(name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kHard);
  EXPECT_GT(created, kHard);
  EXPECT_EQ(created + refused, kThreads * kRounds);
  EXPECT_TRUE(eventually([&] { return used("configmaps") == "0"; }));
}

/// Quotas count resizes, and limit ranges bound them, like in the responses of a real
/// kube-apiserver 1.36.2.
TEST_F(NamespaceLimitsTest, ResizesEqualARealServer) {
  const Object recorded =
      Object::parse(lookout::test::read_file(lookout::test::testdata("kube-1.36/resizes.json")));
  const auto send = [&](api::Value one) {
    const bool patches = one["method"].as_string() == "PATCH";
    const api::Value type = one["type"];
    return http(server_.port(), std::string(one["method"].as_string()),
                std::string(one["path"].as_string()),
                one["body"].exists() ? one["body"].to_json() : "",
                {{"Content-Type", type.exists() ? std::string(type.as_string())
                                  : patches     ? "application/merge-patch+json"
                                                : "application/json"}});
  };
  for (const api::Value one : recorded["requests"].elements()) {
    SCOPED_TRACE(one.to_json());
    if (one["used"].exists()) {
      EXPECT_TRUE(eventually(
          [&] { return held(Object::parse(send(one).body))["status"]["used"] == one["used"]; }));
      continue;
    }
    const HttpAnswer answer = send(one);
    EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
    const Object told = Object::parse(answer.body);
    if (one["message"].exists()) {
      EXPECT_EQ(told["message"].as_string(), one["message"].as_string());
    }
    std::size_t index = 0;
    for (const api::Value resources : one["resources"].elements()) {
      const api::Value container = told["spec"]["containers"][index++];
      EXPECT_TRUE(Object::parse(container["resources"].to_json()).to_document() ==
                  Object::parse(resources.to_json()).to_document())
          << answer.body;
    }
    // Until the quota is counted, it admits nothing.
    if (told.kind() == "ResourceQuota" && one["method"].as_string() == "POST") {
      EXPECT_TRUE(eventually([&] {
        const HttpAnswer quota =
            http(server_.port(), "GET",
                 std::string(one["path"].as_string()) + "/" + std::string(told.name()));
        return held(Object::parse(quota.body))["status"]["used"]["pods"].exists();
      }));
    }
  }
}

}  // namespace
}  // namespace lookout::apiserver
