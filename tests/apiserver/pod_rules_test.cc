// Validation of pods, and changes that the server makes to new pods, without recorded responses of
// a real kube-apiserver. The messages and paths are those of k8s.io/kubernetes' validation and of
// its strategy for pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kPod =
    R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})";

class PodRules : public ClientTest {
 protected:
  HttpAnswer send(const std::string& method, const std::string& path, const std::string& body,
                  const std::string& type = "application/json") {
    return http(server_.port(), method, path, body, {{"Content-Type", type}});
  }
  Object create(const std::string& body) {
    const HttpAnswer answer = send("POST", kPodsPath, body);
    EXPECT_EQ(answer.code, 201) << answer.body;
    return Object::parse(answer.body);
  }
};

struct Refused {
  std::string changes;  // of a pod with one container
  std::vector<std::string> causes;
};
void PrintTo(const Refused& one, std::ostream* out) { *out << one.changes; }

class RefusedPods : public PodRules, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedPods, HaveTheExpectedMessage) {
  const HttpAnswer answer = send("POST", std::string(kPodsPath) + "?dryRun=All",
                                 json_patched(kPod, GetParam().changes).to_json());
  EXPECT_EQ(answer.code, GetParam().causes.empty() ? 201 : 422) << answer.body;
  EXPECT_EQ(causes_of(answer), GetParam().causes);
}

std::string windows_user(const std::string& name) {
  return add_to_spec("/securityContext",
                     R"({"windowsOptions":{"runAsUserName":")" + name + R"("}})");
}
constexpr const char* kUser = "spec.securityContext.windowsOptions.runAsUserName: Invalid value: ";

INSTANTIATE_TEST_SUITE_P(
    Windows, RefusedPods,
    testing::Values(
        Refused{windows_user(R"(DOMAIN\\user)"), {}},
        Refused{windows_user(R"(example.com\\user name)"), {}},
        Refused{windows_user(""),
                {kUser + std::string(R"("": runAsUserName cannot be an empty string)")}},
        Refused{
            windows_user(R"(a\tb)"),
            {kUser + std::string(R"("a\tb": runAsUserName cannot contain control characters)")}},
        Refused{
            windows_user(R"(a\\b\\c)"),
            {kUser +
             std::string(R"("a\\b\\c": runAsUserName cannot contain more than one backslash)")}},
        Refused{
            windows_user(R"(.a*\\b)"),
            {kUser + std::string(R"(".a*\\b": runAsUserName's Domain doesn't match the NetBios )"
                                 "nor the DNS format")}},
        Refused{windows_user(R"(A\\)"),
                {kUser + std::string(R"("A\\": runAsUserName's User cannot be empty)")}},
        Refused{
            windows_user(". ."),
            {kUser + std::string(R"(". .": runAsUserName's User cannot contain only periods or )"
                                 "spaces")}},
        Refused{windows_user("a@b"),
                {kUser + std::string(R"("a@b": runAsUserName's User cannot contain the following )"
                                     R"(characters: "/\:;|=,+*?<>@[])")}},
        Refused{add_to_spec(
                    "/containers/0/securityContext",
                    R"({"windowsOptions":{"gmsaCredentialSpec":"","gmsaCredentialSpecName":"a"}})"),
                {"spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid "
                 R"(value: "": gmsaCredentialSpec cannot be an empty string)"}},
        Refused{add_to_spec("/securityContext", R"({"windowsOptions":{"hostProcess":true}})"),
                {"spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains "
                 "any hostProcess containers"}},
        Refused{add_to_spec("/hostNetwork", "true") + "," +
                    add_to_spec("/containers/-", R"({"name":"d","image":"i","securityContext":)"
                                                 R"({"windowsOptions":{"hostProcess":true}}})"),
                {R"(spec: Invalid value: "": If pod contains any hostProcess containers then all )"
                 "containers must be HostProcess containers"}},
        Refused{add_to_spec("/hostNetwork", "true") + "," +
                    add_to_spec("/securityContext", R"({"windowsOptions":{"hostProcess":true}})") +
                    "," +
                    add_to_spec("/containers/0/securityContext",
                                R"({"windowsOptions":{"hostProcess":false}})"),
                {"spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: "
                 "false: pod hostProcess value must be identical if both are specified, was true"}},
        Refused{add_to_spec("/os", "{}"), {"spec.os.name: Required value: cannot be empty"}},
        Refused{add_to_spec("/os", R"({"name":"plan9"})"),
                {R"(spec.os: Unsupported value: "plan9": supported values: "linux", "windows")"}},
        Refused{
            add_to_spec("/os", R"({"name":"linux"})") + "," +
                add_to_spec("/securityContext", R"({"windowsOptions":{}})"),
            {"spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for "
             "a linux pod"}},
        Refused{add_to_spec("/os", R"({"name":"windows"})") + "," +
                    add_to_spec("/securityContext", R"({"runAsUser":1,"fsGroup":2})") + "," +
                    add_to_spec("/hostPID", "true") + "," +
                    add_to_spec("/containers/0/securityContext", R"({"privileged":false})"),
                {"spec.hostPID: Forbidden: cannot be set for a windows pod",
                 "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
                 "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
                 "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a "
                 "windows pod"}}));

INSTANTIATE_TEST_SUITE_P(
    Security, RefusedPods,
    testing::Values(
        Refused{add_to_spec("/containers/0/securityContext",
                            R"({"allowPrivilegeEscalation":false,"privileged":true,"runAsUser":7,)"
                            R"("capabilities":{"add":["CAP_SYS_ADMIN"]}})"),
                {R"(spec.containers[0].securityContext: Invalid value: {"Capabilities":{"Add":)"
                 R"(["CAP_SYS_ADMIN"],"Drop":null},"Privileged":true,"SELinuxOptions":null,)"
                 R"("WindowsOptions":null,"RunAsUser":7,"RunAsGroup":null,"RunAsNonRoot":null,)"
                 R"("ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":)"
                 R"(null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set )"
                 "`allowPrivilegeEscalation` to false and `privileged` to true",
                 R"(spec.containers[0].securityContext: Invalid value: {"Capabilities":{"Add":)"
                 R"(["CAP_SYS_ADMIN"],"Drop":null},"Privileged":true,"SELinuxOptions":null,)"
                 R"("WindowsOptions":null,"RunAsUser":7,"RunAsGroup":null,"RunAsNonRoot":null,)"
                 R"("ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":)"
                 R"(null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set )"
                 "`allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"}},
        Refused{add_to_spec("/hostNetwork", "true") + "," + add_to_spec("/hostIPC", "true") + "," +
                    add_to_spec(
                        "/securityContext",
                        R"({"sysctls":[{"name":"net.a","value":"1"},{"name":"net/b","value":"1"},)"
                        R"({"name":"kernel.shmmax","value":"1"},{"name":"vm.a","value":"1"}]})"),
                {R"(spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be )"
                 "specified when 'hostNetwork' is true",
                 R"(spec.securityContext.sysctls[1].name: Invalid value: "net/b": may not be )"
                 "specified when 'hostNetwork' is true",
                 R"(spec.securityContext.sysctls[2].name: Invalid value: "kernel.shmmax": may not )"
                 "be specified when 'hostIPC' is true"}},
        Refused{
            R"({"op":"add","path":"/metadata/annotations","value":)"
            R"({"seccomp.security.alpha.kubernetes.io/pod":"unconfined",)"
            R"("container.apparmor.security.beta.kubernetes.io/c":"localhost/a"}},)" +
                add_to_spec("/securityContext", R"({"seccompProfile":{"type":"RuntimeDefault"}})") +
                "," +
                add_to_spec("/containers/0/securityContext",
                            R"({"appArmorProfile":{"type":"Localhost","localhostProfile":"b"}})"),
            {"spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation "
             "and field must match",
             "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: "
             "apparmor profile in annotation and field must match"}}));

INSTANTIATE_TEST_SUITE_P(
    Resources, RefusedPods,
    testing::Values(
        Refused{add_to_spec("/resourceClaims", R"([{"name":"a"}])"),
                {R"(spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,)"
                 R"("ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, )"
                 "`resourceClaimTemplateName`"}},
        Refused{
            add_to_spec("/containers/0/resources", R"({"claims":[{"name":"a"}]})"),
            {R"(spec.containers[0].resources.claims[0]: Not found: "a": must be one of the names )"
             "in pod.spec.resourceClaims which is empty"}},
        Refused{
            add_to_spec("/resourceClaims", R"([{"name":"b","resourceClaimName":"x"}])") + "," +
                add_to_spec("/containers/0/resources",
                            R"({"claims":[{"name":"a"},{"name":"b","request":"r"},{"name":"b"},)"
                            R"({"name":"b","request":"s"},{}]})"),
            {R"(spec.containers[0].resources.claims[0]: Not found: "a": must be one of the names )"
             "in pod.spec.resourceClaims: b",
             R"(spec.containers[0].resources.claims[2]: Duplicate value: "b")",
             R"(spec.containers[0].resources.claims[3]: Duplicate value: "b")",
             "spec.containers[0].resources.claims[4]: Required value"}},
        Refused{add_to_spec("/containers/0/resources", R"({"limits":{"hugepages-2Mi":"3Mi"}})"),
                {R"(spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi )"
                 "is not positive integer multiple of hugepages-2Mi",
                 R"(spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": )"
                 "3Mi is not positive integer multiple of hugepages-2Mi",
                 "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"}},
        Refused{add_to_spec("/overhead", R"({"a":"1"})"),
                {R"(spec.overhead.limits[a]: Invalid value: "a": must be a standard resource type )"
                 "or fully qualified",
                 R"(spec.overhead.limits[a]: Invalid value: "a": must be a standard resource for )"
                 "containers"}}));

INSTANTIATE_TEST_SUITE_P(
    Volumes, RefusedPods,
    testing::Values(
        Refused{add_to_spec("/volumes", R"([{"name":"v","image":{}}])"),
                {"spec.volumes[0].image.reference: Required value"}},
        Refused{
            add_to_spec("/volumes", R"([{"name":"v","flocker":{"datasetName":"a/b"}}])"),
            {R"(spec.volumes[0].flocker.datasetName: Invalid value: "a/b": must not contain '/')"}},
        Refused{add_to_spec("/volumes",
                            R"([{"name":"v","quobyte":{"registry":"a:1,b","volume":"v"}}])"),
                {R"(spec.volumes[0].quobyte.registry: Invalid value: "a:1,b": must be a host:port )"
                 "pair or multiple pairs separated by commas"}},
        Refused{add_to_spec("/volumes", R"([{"name":"v","flexVolume":{"driver":"a/b",)"
                                        R"("options":{"Kubernetes.io/x":"1"}}}])"),
                {"spec.volumes[0].flexVolume.options[Kubernetes.io/x]: Invalid value: "
                 R"("Kubernetes.io/x": kubernetes.io and k8s.io namespaces are reserved)"}},
        Refused{
            add_to_spec(
                "/volumes",
                R"([{"name":"v","azureDisk":{"diskName":"a","diskURI":"b","kind":"Managed"}}])"),
            {R"(spec.volumes[0].azureDisk.diskURI: Unsupported value: "b": supported values: )"
             R"("/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/)"
             R"(microsoft.compute/disks/{disk-id}")"}},
        Refused{
            add_to_spec("/volumes",
                        R"([{"name":"v","iscsi":{"targetPortal":"a","iqn":"iqn.2001-4.x",)"
                        R"("lun":0,"initiatorName":"x"}}])"),
            {R"(spec.volumes[0].iscsi.iqn: Invalid value: "iqn.2001-4.x": must be valid format)",
             R"(spec.volumes[0].iscsi.initiatorname: Invalid value: "x": must be valid format )"
             "starting with iqn, eui, or naa"}},
        Refused{add_to_spec("/volumes", R"([{"name":"v","image":{"pullPolicy":"x"}}])"),
                {"spec.volumes[0].image.reference: Required value",
                 R"(spec.volumes[0].image.pullPolicy: Unsupported value: "x": supported values: )"
                 R"("Always", "IfNotPresent", "Never")"}},
        Refused{add_to_spec("/volumes", R"([{"name":"v","scaleIO":{}}])"),
                {"spec.volumes[0].scaleIO.gateway: Required value",
                 "spec.volumes[0].scaleIO.system: Required value",
                 "spec.volumes[0].scaleIO.volumeName: Required value"}}));

INSTANTIATE_TEST_SUITE_P(
    Hostnames, RefusedPods,
    testing::Values(
        Refused{add_to_spec("/hostnameOverride", R"("web.example.com")"), {}},
        Refused{add_to_spec("/hostnameOverride", '"' + std::string(65, 'a') + '"'),
                {"spec.hostnameOverride: Too long: may not be more than 64 bytes"}},
        Refused{add_to_spec("/hostnameOverride", R"("a")") + "," +
                    add_to_spec("/setHostnameAsFQDN", "true") + "," +
                    add_to_spec("/hostNetwork", "true"),
                {"spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is "
                 "true",
                 "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is "
                 "true"}}));

/// The first container with rules when to restart it, or one rule with exit codes.
std::string restart_rules(std::size_t rules, std::size_t codes) {
  std::string values = "1";
  for (std::size_t i = 1; i < codes; ++i) values += ",1";
  const std::string rule =
      R"({"action":"Restart","exitCodes":{"operator":"In","values":[)" + values + "]}}";
  std::string list = rule;
  for (std::size_t i = 1; i < rules; ++i) list += "," + rule;
  return add_to_spec("/containers/0/restartPolicy", R"("Never")") + "," +
         add_to_spec("/containers/0/restartPolicyRules", "[" + list + "]");
}

INSTANTIATE_TEST_SUITE_P(
    Restarts, RefusedPods,
    testing::Values(
        Refused{restart_rules(20, 255), {}},
        Refused{
            restart_rules(21, 1),
            {"spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"}},
        Refused{restart_rules(1, 256),
                {"spec.containers[0].restartPolicyRules[0].exitCodes.values: Too many: 256: must "
                 "have at most 255 items"}}));

/// A pod with a volume, and a variable from a file in the volume v.
std::string variable_from_file(const std::string& volume) {
  return add_to_spec("/volumes", "[" + volume + "]") + "," +
         add_to_spec("/containers/0/env", R"([{"name":"A","valueFrom":{"fileKeyRef":)"
                                          R"({"volumeName":"v","path":"a.env","key":"A"}}}])");
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedPods,
    testing::Values(
        Refused{variable_from_file(R"({"name":"v","emptyDir":{}})"), {}},
        Refused{variable_from_file(R"({"name":"other","emptyDir":{}})"),
                {R"(spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "v")"}},
        Refused{variable_from_file(R"({"name":"v","configMap":{"name":"a"}})"),
                {"spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "
                 R"("v": referenced volume must be of type emptyDir)"}}));

TEST_F(PodRules, SearchListsAreLimited) {
  std::string domains;
  for (int i = 0; i < 13; ++i) {
    if (i > 0) domains += ",";
    domains += '"' + std::string(60, 'a') + "." + std::string(60, 'b') + "." +
               std::string(60, 'c') + "." + std::to_string(i) + '"';
  }
  const auto causes = causes_of(
      send("POST", std::string(kPodsPath) + "?dryRun=All",
           json_patched(kPod, add_to_spec("/dnsConfig", R"({"searches":[)" + domains + "]}"))
               .to_json()));
  EXPECT_THAT(causes,
              ElementsAre(HasSubstr("must not have more than 2048 characters (including spaces) in "
                                    "the search list")));
}

TEST_F(PodRules, PersistentVolumesHaveTheirOwnSources) {
  const auto volume = [&](const std::string& source) {
    return causes_of(send("POST", "/api/v1/persistentvolumes?dryRun=All",
                          R"({"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],)"
                          R"("capacity":{"storage":"1Gi"},)" +
                              source + "}}"));
  };
  EXPECT_THAT(
      volume(R"("gcePersistentDisk":{"partition":300})"),
      ElementsAre("spec.persistentDisk.pdName: Required value",
                  "spec.persistentDisk.partition: Invalid value: 300: must be between 1 and "
                  "255, inclusive"));
  EXPECT_THAT(volume(R"("cinder":{"volumeID":"a","secretRef":{"name":"b"}})"),
              ElementsAre("spec.cinder.secretRef.namespace: Required value"));
  EXPECT_THAT(volume(R"("glusterfs":{"endpoints":"a","path":"b","endpointsNamespace":""})"),
              ElementsAre(R"(spec.glusterfs.endpointsNamespace: Invalid value: "": if the )"
                          "endpointnamespace is set, it must be a valid namespace name"));
  EXPECT_THAT(volume(R"("nfs":{"server":"a","path":"/b"},"hostPath":{"path":"/c"})"),
              ElementsAre("spec.nfs: Forbidden: may not specify more than 1 volume type"));
}

TEST_F(PodRules, AGatedPodHasACondition) {
  const Object pod =
      create(json_patched(kPod, add_to_spec("/schedulingGates", R"([{"name":"example.com/a"}])"))
                 .to_json());
  const api::Value condition = pod["status"]["conditions"][0];
  EXPECT_EQ(condition["type"].as_string(), "PodScheduled");
  EXPECT_EQ(condition["status"].as_string(), "False");
  EXPECT_EQ(condition["reason"].as_string(), "SchedulingGated");
  EXPECT_EQ(condition["message"].as_string(),
            "Scheduling is blocked due to non-empty scheduling gates");
  EXPECT_FALSE(condition["lastTransitionTime"].as_string().empty());
}

TEST_F(PodRules, AGatedPodMayTightenItsNodeSelection) {
  const std::string affinity =
      R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":)"
      R"([{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}})";
  create(json_patched(kPod, add_to_spec("/schedulingGates", R"([{"name":"example.com/a"}])") + "," +
                                add_to_spec("/affinity", affinity))
             .to_json());
  const std::string terms =
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
  const auto patch = [&](const std::string& change) {
    return send("PATCH", std::string(kPodsPath) + "/p", "[" + change + "]",
                "application/json-patch+json");
  };
  EXPECT_EQ(
      patch(add_to_spec(terms + "/0/matchExpressions/-", R"({"key":"b","operator":"Exists"})"))
          .code,
      200);
  EXPECT_EQ(
      patch(add_to_spec("/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
                        R"([{"weight":1,"preference":{}}])"))
          .code,
      200);
  const auto more = causes_of(patch(
      add_to_spec(terms + "/-", R"({"matchExpressions":[{"key":"c","operator":"Exists"}]})")));
  const std::string field =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const std::string first = R"({"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null},)"
                            R"({"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null})";
  EXPECT_THAT(more,
              ElementsAre(field + ": Invalid value: [" + first +
                          R"(,{"MatchExpressions":[{"Key":"c","Operator":"Exists","Values":null}],)"
                          R"("MatchFields":null}]: no additions/deletions to non-empty )"
                          "NodeSelectorTerms list are allowed"));
  const auto other = causes_of(patch(R"({"op":"replace","path":"/spec)" + terms +
                                     R"(/0/matchExpressions/0/key","value":"z"})"));
  ASSERT_EQ(other.size(), 1u);
  EXPECT_THAT(other[0], HasSubstr(field + "[0]: Invalid value: {"));
  EXPECT_THAT(other[0], HasSubstr("only additions are allowed (no mutations or deletions)"));
}

TEST_F(PodRules, LabelKeysBecomePartsOfSelectors) {
  const std::string term = R"({"topologyKey":"zone","labelSelector":{"matchLabels":{"x":"y"}},)"
                           R"("matchLabelKeys":["app","none"],"mismatchLabelKeys":["tenant"]})";
  const Object pod = create(
      json_patched(
          kPod,
          R"({"op":"add","path":"/metadata/labels","value":{"app":"a","tenant":"t"}},)" +
              add_to_spec("/affinity",
                          R"({"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" +
                              term + "]}}") +
              "," +
              add_to_spec(
                  "/topologySpreadConstraints",
                  R"([{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",)"
                  R"("labelSelector":{},"matchLabelKeys":["app"]}])"))
          .to_json());
  const api::Value required =
      pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
  EXPECT_EQ(required["labelSelector"]["matchExpressions"].to_json(),
            R"([{"key":"app","operator":"In","values":["a"]},)"
            R"({"key":"tenant","operator":"NotIn","values":["t"]}])");
  EXPECT_EQ(pod["spec"]["topologySpreadConstraints"][0]["labelSelector"].to_json(),
            R"({"matchExpressions":[{"key":"app","operator":"In","values":["a"]}]})");
  // A duplicate is rejected.
  const auto causes = causes_of(send(
      "POST", std::string(kPodsPath) + "?dryRun=All",
      json_patched(kPod,
                   R"({"op":"add","path":"/metadata/labels","value":{"app":"a"}},)" +
                       add_to_spec("/topologySpreadConstraints",
                                   R"([{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":)"
                                   R"("DoNotSchedule","labelSelector":{"matchLabels":{"app":"a"}},)"
                                   R"("matchLabelKeys":["app"]}])"))
          .to_json()));
  EXPECT_THAT(causes, ElementsAre(R"(spec.topologySpreadConstraints[0][0]: Invalid value: "app": )"
                                  "exists in both matchLabelKeys and labelSelector"));
}

TEST_F(PodRules, ProfileAnnotationsBecomeFields) {
  const HttpAnswer answer = send(
      "POST", kPodsPath,
      json_patched(
          kPod,
          R"({"op":"add","path":"/metadata/annotations","value":)"
          R"({"container.apparmor.security.beta.kubernetes.io/c":"localhost/a",)"
          R"("container.apparmor.security.beta.kubernetes.io/d":"runtime/default"}},)" +
              add_to_spec("/securityContext", R"({"appArmorProfile":{"type":"RuntimeDefault"}})") +
              "," + add_to_spec("/containers/-", R"({"name":"d","image":"i"})"))
          .to_json());
  EXPECT_EQ(answer.code, 201) << answer.body;
  const Object pod = Object::parse(answer.body);
  EXPECT_EQ(pod["spec"]["containers"][0]["securityContext"].to_json(),
            R"({"appArmorProfile":{"type":"Localhost","localhostProfile":"a"}})");
  // The pod has the same profile already.
  EXPECT_FALSE(pod["spec"]["containers"][1]["securityContext"].exists());
  const auto warning = answer.headers.find("warning");
  ASSERT_NE(warning, answer.headers.end());
  EXPECT_THAT(warning->second,
              HasSubstr("metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: "
                        "deprecated since v1.30; use the \\\"appArmorProfile\\\" field instead"));
}

// The feature gates of these fields are off by default in 1.36.
TEST_F(PodRules, FieldsOfTheFutureAreDropped) {
  const std::string spec =
      R"({"restartPolicy":"Never","schedulingGroup":{"podGroupName":"g"},"os":{"name":"linux"},)"
      R"("containers":[{"name":"c","image":"i","lifecycle":{"stopSignal":"SIGUSR1"}},)"
      R"({"name":"d","image":"i","lifecycle":{"stopSignal":"SIGUSR1",)"
      R"("preStop":{"sleep":{"seconds":1}}}}],)"
      R"("volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"path":"a",)"
      R"("name":"b"}},{"podCertificate":{"signerName":"x.com/y","keyType":"RSA3072"}},)"
      R"({"configMap":{"name":"m"}}]}}]})";
  const auto check = [](const Object& object, const api::Value found) {
    EXPECT_FALSE(found.contains("schedulingGroup")) << object.to_json();
    EXPECT_FALSE(found["containers"][0].contains("lifecycle"));
    EXPECT_EQ(found["containers"][1]["lifecycle"].to_json(),
              R"({"preStop":{"sleep":{"seconds":1}}})");
    EXPECT_EQ(found["volumes"][0]["projected"]["sources"].to_json(),
              R"([{},{},{"configMap":{"name":"m"}}])");
  };
  const Object pod = create(R"({"metadata":{"name":"p"},"spec":)" + spec + "}");
  check(pod, pod["spec"]);
  const Object jobs = Object::parse(
      send("POST", "/apis/batch/v1/namespaces/default/cronjobs",
           R"({"metadata":{"name":"j"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":)"
           R"({"template":{"spec":)" +
               spec + "}}}}}")
          .body);
  check(jobs, jobs["spec"]["jobTemplate"]["spec"]["template"]["spec"]);
  const Object changed =
      Object::parse(send("PATCH", "/apis/batch/v1/namespaces/default/cronjobs/j",
                         R"({"spec":{"jobTemplate":{"spec":{"template":{"spec":)" + spec + "}}}}}",
                         "application/merge-patch+json")
                        .body);
  check(changed, changed["spec"]["jobTemplate"]["spec"]["template"]["spec"]);
}

}  // namespace
}  // namespace lookout::apiserver
