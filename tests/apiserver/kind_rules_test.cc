// Rules of kinds other than pods without recorded responses of a real kube-apiserver. The messages
// and paths are those of k8s.io/kubernetes' validation and strategies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const api::Resource kJobs{"batch", "v1", "Job", "jobs", true};
const api::Resource kCronJobs{"batch", "v1", "CronJob", "cronjobs", true};
const api::Resource kVolumes{"", "v1", "PersistentVolume", "persistentvolumes", false};
const api::Resource kStorageClaims{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims",
                                   true};
const api::Resource kSlices{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};
const api::Resource kSchemas{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas",
                             false};

class KindRules : public ClientTest {
 protected:
  /// "field: message" of each cause of a rejected operation.
  static std::vector<std::string> causes(const std::function<void()>& operation) {
    std::vector<std::string> out;
    const api::Status status = status_of(operation);
    for (const api::StatusCause& cause : status.causes)
      out.push_back(cause.field + ": " + cause.message);
    if (out.empty() && status.code != 0) out.push_back(status.message);
    return out;
  }
  std::vector<std::string> refused(const api::Resource& resource, const std::string& object) const {
    const Object wanted = from_json(object);
    return causes([&] { of(resource).create(wanted, {.dry_run = true}); });
  }
  rest::ResourceClient of(const api::Resource& resource) const {
    return resource.namespaced ? in(resource) : all(resource);
  }
  std::vector<std::string> refused_change(const api::Resource& resource, const char* name,
                                          const std::string& patch) const {
    return causes([&] { of(resource).patch(name, rest::PatchType::kMerge, patch); });
  }
};

std::string base64_of(std::size_t bytes) {
  const std::size_t rest = bytes % 3;
  std::string out(bytes / 3 * 4, 'A');
  if (rest != 0) out += rest == 1 ? "AA==" : "AAA=";
  return out;
}

TEST_F(KindRules, DataIsLimitedToAMegabyteInAnyEncoding) {
  constexpr std::size_t kMost = 1 << 20;
  const auto map = [](std::size_t size) {
    return R"({"metadata":{"name":"a"},"binaryData":{"a":")" + base64_of(size) + R"("}})";
  };
  EXPECT_THAT(refused(kConfigMaps, map(kMost)), IsEmpty());
  EXPECT_THAT(refused(kConfigMaps, map(kMost + 1)), ElementsAre(HasSubstr("Too long")));
  const auto secret = [](std::size_t size) {
    return R"({"metadata":{"name":"a"},"data":{"a":")" + base64_of(size) + R"("}})";
  };
  EXPECT_THAT(refused(kSecrets, secret(kMost)), IsEmpty());
  EXPECT_THAT(refused(kSecrets, secret(kMost + 1)), ElementsAre(HasSubstr("data: Too long")));
}

TEST_F(KindRules, SecretsHaveTheKeysOfTheirType) {
  const auto secret = [](const char* type, const char* data) {
    return std::string(R"({"metadata":{"name":"a"},"type":"kubernetes.io/)") + type +
           R"(","data":{)" + data + "}}";
  };
  EXPECT_THAT(refused(kSecrets, secret("dockerconfigjson", R"(".dockerconfigjson":"e30=")")),
              IsEmpty());
  EXPECT_THAT(refused(kSecrets, secret("dockercfg", R"(".dockercfg":"bnVsbA==")")), IsEmpty());
  EXPECT_THAT(
      refused(kSecrets, secret("dockerconfigjson", R"(".dockerconfigjson":"bm90IGpzb24=")")),
      ElementsAre(
          HasSubstr("data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\"")));
  EXPECT_THAT(refused(kSecrets, secret("dockercfg", R"(".dockercfg":"W10=")")),
              ElementsAre("data[.dockercfg]: Invalid value: \"<secret contents redacted>\": json: "
                          "cannot unmarshal array into Go value of type map[string]interface {}"));
  EXPECT_THAT(refused(kSecrets, secret("ssh-auth", R"("ssh-privatekey":"")")),
              ElementsAre("data[ssh-privatekey]: Required value"));
}

TEST_F(KindRules, ResourcesWithoutOvercommitHaveOneDefault) {
  const auto range = [](const char* resource, const char* limit) {
    return R"({"metadata":{"name":"a"},"spec":{"limits":[{"type":"Container","default":{")" +
           std::string(resource) + R"(":")" + limit + R"("},"defaultRequest":{")" + resource +
           R"(":"1"}}]}})";
  };
  EXPECT_THAT(refused(kLimitRanges, range("cpu", "2")), IsEmpty());
  EXPECT_THAT(refused(kLimitRanges, range("nvidia.com/gpu", "1")), IsEmpty());
  EXPECT_THAT(
      refused(kLimitRanges, range("nvidia.com/gpu", "2")),
      ElementsAre("spec.limits[0].defaultRequest[nvidia.com/gpu]: Invalid value: \"1\": "
                  "default value 2 must equal to defaultRequest value 1 in nvidia.com/gpu"));
}

std::string job(const std::string& spec) {
  return R"({"metadata":{"name":"j"},"spec":{)" + spec + R"("template":{"spec":{"restartPolicy":)" +
         R"("Never","containers":[{"name":"c","image":"i"}]}}}})";
}

TEST_F(KindRules, PoliciesOfJobsAreLimited) {
  std::string patterns;
  for (int i = 0; i < 21; ++i)
    patterns += std::string(i == 0 ? "" : ",") + R"({"type":"t","status":"True"})";
  EXPECT_THAT(
      refused(kJobs, job(R"("podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[)" +
                         patterns + "]}]},")),
      ElementsAre("spec.podFailurePolicy.rules[0].onPodConditions: Too many: 21: must have at most "
                  "20 items"));
  std::string indexes = "0";
  for (int i = 2; i < 30000; i += 2) indexes += "," + std::to_string(i);
  EXPECT_THAT(
      refused(kJobs, job(R"("completionMode":"Indexed","completions":50000,"parallelism":1,)"
                         R"("successPolicy":{"rules":[{"succeededIndexes":")" +
                         indexes + R"("}]},)")),
      ElementsAre(HasSubstr("spec.successPolicy.rules[0].succeededIndexes: Too long")));
}

TEST_F(KindRules, ASuspendedJobMayMoveWithoutRunningPods) {
  in(kJobs).create(from_json(job(R"("suspend":true,)")));
  const auto move = [&](const std::string& zone) {
    return refused_change(
        kJobs, "j",
        R"({"spec":{"template":{"spec":{"nodeSelector":{"zone":")" + zone + R"("}}}}})");
  };
  const auto set_status = [&](const std::string& status) {
    in(kJobs).update_status(changed(in(kJobs).get("j"), R"({"status":)" + status + "}"));
  };
  EXPECT_THAT(move("a"), IsEmpty()) << "it has not started";
  set_status(R"({"active":1,"ready":0})");
  EXPECT_THAT(move("b"), ElementsAre(HasSubstr("spec.template: Invalid value")));
  set_status(R"({"active":0,"startTime":"2026-01-02T03:04:05Z"})");
  EXPECT_THAT(move("b"), ElementsAre(HasSubstr("spec.template: Invalid value")));
  set_status(R"({"conditions":[{"type":"Suspended","status":"True"}]})");
  EXPECT_THAT(move("b"), IsEmpty());
}

TEST_F(KindRules, SchedulesOfCronJobs) {
  const auto cron = [](const char* schedule, const char* more) {
    return std::string(R"({"metadata":{"name":"c"},"spec":{"schedule":")") + schedule + "\"," +
           more + R"("jobTemplate":)" + job("") + "}}";
  };
  EXPECT_THAT(refused(kCronJobs, cron("@every 1.5h", "")), IsEmpty());
  EXPECT_THAT(refused(kCronJobs, cron("@every 500ms", "")), IsEmpty());
  EXPECT_THAT(refused(kCronJobs, cron("@daily", R"("timeZone":"Local",)")),
              ElementsAre(HasSubstr("timeZone must be an explicit time zone")));
}

std::string volume(const std::string& spec) {
  return R"({"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},)"
         R"("accessModes":["ReadWriteOnce"],)" +
         spec + "}}";
}

TEST_F(KindRules, AVolumesResizeSecretMayBeAddedLater) {
  all(kVolumes).create(from_json(volume(R"("csi":{"driver":"d.example.com","volumeHandle":"h"})")));
  const auto set_secret = [&](const char* name) {
    return refused_change(kVolumes, "v",
                          std::string(R"({"spec":{"csi":{"controllerExpandSecretRef":{"name":")") +
                              name + R"(","namespace":"default"}}}})");
  };
  EXPECT_THAT(set_secret("a"), IsEmpty());
  EXPECT_THAT(set_secret("b"), ElementsAre(HasSubstr("is immutable after creation")));
}

TEST_F(KindRules, AVolumesAffinityMayMigrateFromBetaLabels) {
  const auto affinity = [](const char* key, const char* value) {
    return std::string(
               R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)") +
           R"({"key":")" + key + R"(","operator":"In","values":[")" + value + R"("]}]}]}})";
  };
  all(kVolumes).create(
      from_json(volume(R"("local":{"path":"/a"},)" + affinity("beta.kubernetes.io/os", "linux"))));
  const auto change = [&](const char* key, const char* value) {
    return refused_change(kVolumes, "v", R"({"spec":{)" + affinity(key, value) + "}}");
  };
  EXPECT_THAT(change("kubernetes.io/arch", "linux"), ElementsAre(HasSubstr("field is immutable")));
  EXPECT_THAT(change("kubernetes.io/os", "windows"), ElementsAre(HasSubstr("field is immutable")));
  EXPECT_THAT(change("kubernetes.io/os", "linux"), IsEmpty());
  EXPECT_THAT(change("beta.kubernetes.io/os", "linux"),
              ElementsAre(HasSubstr("field is immutable")));
}

TEST_F(KindRules, AClaimCannotDropItsAttributesClass) {
  const auto claims = in(kStorageClaims);
  claims.create(from_json(
      R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"volumeName":"v",)"
      R"("resources":{"requests":{"storage":"1Gi"}},"volumeAttributesClassName":"a"}})"));
  const auto set = [&](const std::string& name) {
    return refused_change(kStorageClaims, "c",
                          R"({"spec":{"volumeAttributesClassName":)" + name + "}}");
  };
  const auto bind = [&](const std::string& status) {
    Object claim = claims.get("c");
    claims.update_status(changed(claim, R"({"status":)" + status + "}"));
  };
  bind(R"({"phase":"Bound"})");
  EXPECT_THAT(set("null"), IsEmpty());
  EXPECT_THAT(set(R"("b")"), IsEmpty());
  bind(R"({"currentVolumeAttributesClassName":"b"})");
  const std::string path = "spec.volumeAttributesClassName: Forbidden: update to ";
  const std::string why = " is forbidden when status.currentVolumeAttributesClassName is not nil";
  EXPECT_THAT(set("null"), ElementsAre(path + "nil" + why));
  EXPECT_THAT(set(R"("")"), testing::Contains(path + "empty string" + why));
  EXPECT_THAT(set(R"("c")"), IsEmpty());
}

TEST_F(KindRules, SomeVolumesRejectTheMountOptionsAnnotation) {
  const auto volume = [](const std::string& source) {
    return R"({"metadata":{"name":"v","annotations":{"volume.beta.kubernetes.io/mount-options":)"
           R"("ro"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],)" +
           source + "}}";
  };
  EXPECT_THAT(refused(kVolumes, volume(R"("nfs":{"server":"s","path":"/p"})")), IsEmpty());
  EXPECT_THAT(refused(kVolumes, volume(R"("hostPath":{"path":"/p"})")),
              ElementsAre("metadata.annotations.volume.beta.kubernetes.io/mount-options: "
                          "Forbidden: may not specify mount options for this volume type"));
}

TEST_F(KindRules, TheRootOfAHostIsNotRecycled) {
  for (const char* path : {"/", "//", "/./", "/a/..", "/../"}) {
    EXPECT_THAT(refused(kVolumes, volume(R"("persistentVolumeReclaimPolicy":"Recycle",)"
                                         R"("hostPath":{"path":")" +
                                         std::string(path) + R"("})")),
                testing::Contains(HasSubstr("may not be 'recycle' for a hostPath mount of '/'")))
        << path;
  }
}

TEST_F(KindRules, TheDeprecatedTopologyIsDropped) {
  const Object made = in(kSlices).create(from_json(
      R"({"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],)"
      R"("deprecatedTopology":{"kubernetes.io/hostname":"n"}}]})"));
  EXPECT_FALSE(made["endpoints"][0].contains("deprecatedTopology"));
  EXPECT_FALSE(made["endpoints"][0].contains("nodeName"));
}

TEST_F(KindRules, MandatoryFlowSchemasHaveFixedSpecs) {
  const auto schema = [](const char* name) {
    return R"({"metadata":{"name":")" + std::string(name) +
           R"("},"spec":{"matchingPrecedence":9000,"priorityLevelConfiguration":{"name":"a"}}})";
  };
  EXPECT_THAT(refused(kSchemas, schema("mine")), IsEmpty());
  EXPECT_THAT(refused(kSchemas, schema("catch-all")),
              ElementsAre(R"(spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"a"},)"
                          R"("MatchingPrecedence":9000,"DistinguisherMethod":null,"Rules":null}: )"
                          "spec of 'catch-all' must equal the fixed value"));
  EXPECT_THAT(
      refused(kSchemas, R"({"metadata":{"name":"exempt"},"spec":{"matchingPrecedence":1,)"
                        R"("priorityLevelConfiguration":{"name":"exempt"},"rules":[{"subjects":[)"
                        R"({"kind":"Group","group":{"name":"g"}}],"resourceRules":[{"verbs":["*"],)"
                        R"("apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}})"),
      ElementsAre(
          HasSubstr(R"("Rules":[{"Subjects":[{"Kind":"Group","User":null,"Group":{"Name":"g"},)"
                    R"("ServiceAccount":null}],"ResourceRules":[{"Verbs":["*"],"APIGroups":["*"],)"
                    R"("Resources":["*"],"ClusterScope":false,"Namespaces":["*"]}],)"
                    R"("NonResourceRules":null}]}: spec of 'exempt')")));
}

TEST_F(KindRules, FlowObjectsMayBeReplacedWithoutAVersion) {
  const api::Resource levels{"flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
                             "prioritylevelconfigurations", false};
  const auto schema = [](int precedence) {
    return from_json(R"({"metadata":{"name":"f"},"spec":{"matchingPrecedence":)" +
                     std::to_string(precedence) +
                     R"(,"priorityLevelConfiguration":{"name":"a"}}})");
  };
  all(kSchemas).create(schema(9000));
  const Object changed = all(kSchemas).update(schema(9001));
  EXPECT_EQ(changed["spec"]["matchingPrecedence"].as_int(), 9001);
  const auto level =
      from_json(R"({"metadata":{"name":"l"},"spec":{"type":"Limited","limited":{"limitResponse":)"
                R"({"type":"Reject"}}}})");
  all(levels).create(level);
  EXPECT_THAT(causes([&] { all(levels).update(level); }), IsEmpty());
}

TEST_F(KindRules, StorageClassesAreImmutable) {
  const api::Resource classes{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false};
  all(classes).create(
      from_json(R"({"metadata":{"name":"s"},"provisioner":"a.b","parameters":{"a":"b"}})"));
  EXPECT_THAT(refused_change(classes, "s",
                             R"({"provisioner":"c.d","parameters":{"a":"c"},)"
                             R"("reclaimPolicy":"Retain",)"
                             R"("volumeBindingMode":"WaitForFirstConsumer"})"),
              ElementsAre("parameters: Forbidden: updates to parameters are forbidden.",
                          "provisioner: Forbidden: updates to provisioner are forbidden.",
                          "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
                          "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is "
                          "immutable"));
  EXPECT_THAT(refused_change(classes, "s", R"({"allowVolumeExpansion":true})"), IsEmpty());
}

TEST_F(KindRules, ABudgetHasOneLimit) {
  const api::Resource budgets{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true};
  EXPECT_THAT(
      refused(budgets, R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"maxUnavailable":"5%",)"
                       R"("selector":{"matchLabels":{"a":"b"}}}})"),
      ElementsAre(R"(spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":)"
                  R"({"a":"b"}},"MaxUnavailable":"5%","UnhealthyPodEvictionPolicy":null}: )"
                  "minAvailable and maxUnavailable cannot be both set"));
}

TEST_F(KindRules, NewKindsRequireCanonicalAddresses) {
  const api::Resource addresses{"networking.k8s.io", "v1", "IPAddress", "ipaddresses", false};
  const api::Resource ranges{"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", false};
  const auto address = [&](const std::string& name) {
    return refused(addresses, R"({"metadata":{"name":")" + name +
                                  R"("},"spec":{"parentRef":{"resource":"services","name":"s"}}})");
  };
  EXPECT_THAT(address("2001:db8::1"), IsEmpty());
  EXPECT_THAT(address("2001:DB8:0::1"),
              ElementsAre(HasSubstr("must be in canonical form (\"2001:db8::1\")")));
  EXPECT_THAT(address("10.09.0.1"), ElementsAre(HasSubstr("must not have leading 0s")));
  EXPECT_THAT(address("::ffff:1.2.3.4"),
              ElementsAre(HasSubstr("must not be an IPv4-mapped IPv6 address")));
  const auto range = [&](const std::string& cidrs) {
    return refused(ranges, R"({"metadata":{"name":"r"},"spec":{"cidrs":[)" + cidrs + "]}}");
  };
  EXPECT_THAT(range(R"("10.9.0.0/16","2001:db8::/64")"), IsEmpty());
  EXPECT_THAT(range(R"("2001:DB8::/64")"),
              ElementsAre("spec.cidrs[0]: Invalid value: \"2001:DB8::/64\": must be in canonical "
                          "form (\"2001:db8::/64\")"));
  EXPECT_THAT(range(R"("10.9.0.0/16","x")"),
              ElementsAre(HasSubstr("may specify no more than one IP for each IP family")));
}

TEST_F(KindRules, ARangeOfServicesHasTheStatusThatItsWritersGiveIt) {
  const api::Resource ranges{"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", false};
  const Object created = all(ranges).create(from_json(
      R"({"metadata":{"name":"r"},"spec":{"cidrs":["10.9.0.0/16"]},"status":{"conditions":[)"
      R"({"type":"Ready","status":"True","reason":"r","message":"",)"
      R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})"));
  EXPECT_EQ(created["status"]["conditions"].size(), 1u);
  const Object after =
      all(ranges).patch("r", rest::PatchType::kMerge, R"({"status":{"conditions":null}})");
  EXPECT_EQ(after["status"]["conditions"].size(), 0u);
}

TEST_F(KindRules, NodesHaveNoSourceOfTheirConfiguration) {
  const std::string source = R"({"configMap":{"name":"a","namespace":"b","kubeletConfigKey":"c"}})";
  const Object created =
      all(kNodes).create(from_json(R"({"metadata":{"name":"n"},"spec":{"podCIDR":"10.0.0.0/24",)"
                                   R"("configSource":)" +
                                   source + "}}"));
  EXPECT_FALSE(created["spec"].contains("configSource"));
  const Object after = all(kNodes).patch("n", rest::PatchType::kMerge,
                                         R"({"spec":{"configSource":)" + source + "}}");
  EXPECT_FALSE(after["spec"].contains("configSource"));
  EXPECT_EQ(after["spec"]["podCIDR"].as_string(), "10.0.0.0/24");
}

TEST_F(KindRules, DeprecatedNodeAnnotationsAreValidated) {
  const auto node = [](const std::string& annotation, const std::string& text) {
    return R"({"metadata":{"name":"n","annotations":{"scheduler.alpha.kubernetes.io/)" +
           annotation + R"(":")" + text + R"("}}})";
  };
  EXPECT_THAT(
      refused(kNodes, node("preferAvoidPods", R"({\"preferAvoidPods\":[{\"podSignature\":)"
                                              R"({\"podController\":{\"apiVersion\":\"v1\",)"
                                              R"(\"controller\":true}}}]})")),
      IsEmpty());
  EXPECT_THAT(refused(kNodes, node("preferAvoidPods", "foo")),
              ElementsAre(HasSubstr("metadata.annotations.AvoidPods: Invalid value")));
  EXPECT_THAT(refused(kNodes, node("preferAvoidPods", R"({\"preferAvoidPods\":[{}]})")),
              ElementsAre("metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0]."
                          "PodSignature: Required value"));
  EXPECT_THAT(refused(kNodes, node("taints", "foo")),
              ElementsAre(HasSubstr("metadata.annotations: Invalid value")));
  all(kNodes).create(from_json(R"({"metadata":{"name":"n"},"spec":{"externalID":"a"}})"));
  EXPECT_THAT(refused_change(kNodes, "n", R"({"spec":{"externalID":"b"}})"),
              ElementsAre("spec.externalID: Forbidden: may not be updated"));
}

}  // namespace
}  // namespace lookout::apiserver
