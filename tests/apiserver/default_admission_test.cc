// The default admission plugins of a kube-apiserver that depend on other objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/pod_security.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using testing::HasSubstr;
using testing::Not;

const api::Resource kVolumeClaims{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims",
                                  true};
const api::Resource kStorageClasses{"storage.k8s.io", "v1", "StorageClass", "storageclasses",
                                    false};
const api::Resource kIngresses{"networking.k8s.io", "v1", "Ingress", "ingresses", true};
const api::Resource kIngressClasses{"networking.k8s.io", "v1", "IngressClass", "ingressclasses",
                                    false};
const api::Resource kRuntimeClasses{"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false};

constexpr const char* kClaimsPath = "/api/v1/namespaces/default/persistentvolumeclaims";
const HttpClient::Headers kMergePatch{{"Content-Type", "application/merge-patch+json"}};
const HttpClient::Headers kStrategicPatch{
    {"Content-Type", "application/strategic-merge-patch+json"}};

/// `annotations`: members, for the whole of the metadata; `more`: members of the spec.
Object claim(const std::string& name, const std::string& more = "",
             const std::string& annotations = "") {
  return from_json(R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
                   R"(}},"spec":{"accessModes":["ReadWriteOnce"],)"
                   R"("resources":{"requests":{"storage":"1Gi"}})" +
                   more + "}}");
}

Object ingress(const std::string& name, const std::string& more = "",
               const std::string& annotations = "") {
  return from_json(R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
                   R"(}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}})" +
                   more + "}}");
}

class DefaultClasses : public ClientTest {
 protected:
  void create_storage_class(const std::string& name, const std::string& annotations,
                            const std::string& more = "") {
    all(kStorageClasses)
        .create(from_json(R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
                          R"(}},"provisioner":"example.com/p")" + more + "}"));
  }
  void create_ingress_class(const std::string& name, const std::string& annotations) {
    all(kIngressClasses)
        .create(from_json(R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
                          R"(}},"spec":{"controller":"example.com/c"}})"));
  }
  /// The class of a new object; "none" if it has none.
  std::string class_of(const api::Resource& resource, const Object& wanted) {
    const Object created = in(resource).create(wanted);
    const char* const field = resource.kind == "Ingress" ? "ingressClassName" : "storageClassName";
    return std::string(created["spec"][field].as_string("none"));
  }
};

constexpr const char* kIsDefault = R"("storageclass.kubernetes.io/is-default-class":"true")";
constexpr const char* kIsDefaultBeta =
    R"("storageclass.beta.kubernetes.io/is-default-class":"true")";
constexpr const char* kIsDefaultIngress = R"("ingressclass.kubernetes.io/is-default-class":"true")";

TEST_F(DefaultClasses, AreSetInClaims) {
  EXPECT_EQ(class_of(kVolumeClaims, claim("a")), "none");
  create_storage_class("plain", "");
  create_storage_class("not", R"("storageclass.kubernetes.io/is-default-class":"false")");
  EXPECT_EQ(class_of(kVolumeClaims, claim("b")), "none");
  create_storage_class("second", kIsDefaultBeta);
  EXPECT_EQ(class_of(kVolumeClaims, claim("c")), "second");
  // The newest class is the default, or of equally old ones the first by name.
  create_storage_class("first", kIsDefault);
  EXPECT_EQ(class_of(kVolumeClaims, claim("d")), "first");
}

TEST_F(DefaultClasses, DoNotReplaceAnExplicitClass) {
  create_storage_class("usual", kIsDefault);
  EXPECT_EQ(class_of(kVolumeClaims, claim("a", R"(,"storageClassName":"plain")")), "plain");
  EXPECT_EQ(class_of(kVolumeClaims, claim("b", R"(,"storageClassName":"")")), "");
  EXPECT_EQ(class_of(kVolumeClaims,
                     claim("c", "", R"("volume.beta.kubernetes.io/storage-class":"plain")")),
            "none");
  // Only new claims get one.
  const Object patched =
      in(kVolumeClaims)
          .patch("c", rest::PatchType::kMerge, R"({"metadata":{"annotations":{"a":"b"}}})");
  EXPECT_FALSE(patched["spec"]["storageClassName"].exists());
}

TEST_F(DefaultClasses, HaveNoFieldOwner) {
  create_storage_class("usual", kIsDefault);
  const Object created = in(kVolumeClaims).create(claim("a"));
  EXPECT_EQ(created["spec"]["storageClassName"].as_string(), "usual");
  const std::string fields = created["metadata"]["managedFields"].to_json();
  EXPECT_THAT(fields, HasSubstr("f:accessModes"));
  EXPECT_THAT(fields, Not(HasSubstr("f:storageClassName")));
}

TEST_F(DefaultClasses, ApplyToDryRuns) {
  create_storage_class("usual", kIsDefault);
  const HttpAnswer answer = http(server_.port(), "POST", std::string(kClaimsPath) + "?dryRun=All",
                                 claim("a").to_json(), kJsonBody);
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"("storageClassName":"usual")"));
}

TEST_F(DefaultClasses, AreSetInAppliedClaims) {
  create_storage_class("usual", kIsDefault);
  const HttpAnswer answer = http(
      server_.port(), "PATCH", std::string(kClaimsPath) + "/a?fieldManager=m",
      R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},)"
      R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
      {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"("storageClassName":"usual")"));
}

TEST_F(DefaultClasses, AreSetInIngresses) {
  EXPECT_EQ(class_of(kIngresses, ingress("a")), "none");
  create_ingress_class("plain", "");
  EXPECT_EQ(class_of(kIngresses, ingress("b")), "none");
  create_ingress_class("second", kIsDefaultIngress);
  EXPECT_EQ(class_of(kIngresses, ingress("c")), "second");
  create_ingress_class("first", kIsDefaultIngress);
  EXPECT_EQ(class_of(kIngresses, ingress("d")), "first");
  EXPECT_EQ(class_of(kIngresses, ingress("e", R"(,"ingressClassName":"plain")")), "plain");
  EXPECT_EQ(class_of(kIngresses, ingress("f", "", R"("kubernetes.io/ingress.class":"plain")")),
            "none");
}

class Growth : public DefaultClasses {
 protected:
  /// A bound claim.
  void bind(const std::string& name, const std::string& more) {
    in(kVolumeClaims).create(claim(name, more));
    const HttpAnswer answer =
        http(server_.port(), "PATCH", std::string(kClaimsPath) + "/" + name + "/status",
             R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})", kMergePatch);
    EXPECT_EQ(answer.code, 200) << answer.body;
  }
  HttpAnswer resize(const std::string& name, const std::string& size,
                    const std::string& query = "") {
    return http(server_.port(), "PATCH", std::string(kClaimsPath) + "/" + name + query,
                R"({"spec":{"resources":{"requests":{"storage":")" + size + R"("}}}})",
                kMergePatch);
  }
};

TEST_F(Growth, IsAllowedByTheClass) {
  create_storage_class("elastic", "", R"(,"allowVolumeExpansion":true)");
  bind("a", R"(,"storageClassName":"elastic")");
  const HttpAnswer answer = resize("a", "2Gi");
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"("requests":{"storage":"2Gi"})"));
}

TEST_F(Growth, IsRejectedForOtherClaims) {
  create_storage_class("rigid", "");
  create_storage_class("never", "", R"(,"allowVolumeExpansion":false)");
  bind("a", R"(,"storageClassName":"rigid")");
  bind("b", R"(,"storageClassName":"never")");
  bind("c", R"(,"storageClassName":"missing")");
  bind("d", "");
  for (const std::string name : {"a", "b", "c", "d"}) {
    const HttpAnswer answer = resize(name, "2Gi");
    EXPECT_EQ(answer.code, 403);
    EXPECT_EQ(held(Object::parse(answer.body))["message"].as_string(),
              "persistentvolumeclaims \"" + name +
                  "\" is forbidden: only dynamically provisioned pvc can be resized and the "
                  "storageclass that provisions the pvc must support resize");
    EXPECT_EQ(resize(name, "2Gi", "?dryRun=All").code, 403);
    // This is not an expansion.
    EXPECT_EQ(resize(name, "1024Mi").code, 200);
    in(kVolumeClaims).patch(name, rest::PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})");
  }
}

class RuntimeClasses : public ClientTest {
 protected:
  void create_class(const std::string& name, const std::string& more) {
    all(kRuntimeClasses)
        .create(from_json(R"({"metadata":{"name":")" + name + R"("},"handler":"h")" + more + "}"));
  }
  std::string refusal(const std::string& spec) {
    const api::Status status = status_of([&] { pods().create(pod("a", spec)); });
    EXPECT_EQ(status.code, 403);
    return status.message;
  }
};

constexpr const char* kOfClass = R"(,"runtimeClassName":"vm")";

TEST_F(RuntimeClasses, ApplyToTheirPods) {
  create_class("vm", R"(,"overhead":{"podFixed":{"cpu":"100m","memory":"64Mi"}},
      "scheduling":{"nodeSelector":{"vm":"yes"},
                    "tolerations":[{"key":"vm","operator":"Exists","effect":"NoSchedule"}]})");
  const Object created =
      pods().create(pod("a", std::string(kOfClass) + R"(,"nodeSelector":{"disk":"ssd"})"));
  const api::Value spec = created["spec"];
  EXPECT_EQ(spec["overhead"].to_json(), R"({"cpu":"100m","memory":"64Mi"})");
  EXPECT_EQ(spec["nodeSelector"]["disk"].as_string(), "ssd");
  EXPECT_EQ(spec["nodeSelector"]["vm"].as_string(), "yes");
  ASSERT_EQ(spec["tolerations"].size(), 3u);
  EXPECT_EQ(spec["tolerations"][0]["key"].as_string(), "node.kubernetes.io/not-ready");
  EXPECT_EQ(spec["tolerations"][1]["key"].as_string(), "node.kubernetes.io/unreachable");
  EXPECT_EQ(spec["tolerations"][2]["key"].as_string(), "vm");
  EXPECT_THAT(created["metadata"]["managedFields"].to_json(), Not(HasSubstr("f:overhead")));
  EXPECT_FALSE(held(pods().create(pod("b")))["spec"]["overhead"].exists());
  // Equal quantities may have different forms.
  pods().create(
      pod("c", std::string(kOfClass) + R"(,"overhead":{"cpu":"0.1","memory":"65536Ki"})"));
}

TEST_F(RuntimeClasses, DoNotRepeatTolerations) {
  create_class("vm", R"(,"scheduling":{"tolerations":[
      {"key":"vm","operator":"Exists","effect":"NoSchedule"},
      {"key":"gpu","operator":"Exists"}]})");
  const Object created = pods().create(pod("a", std::string(kOfClass) + R"(,"tolerations":[
          {"key":"vm","operator":"Exists"},
          {"key":"gpu","operator":"Equal","value":"a","effect":"NoExecute"}])"));
  std::vector<std::string> tolerations;
  for (const api::Value one : created["spec"]["tolerations"].elements())
    tolerations.emplace_back(std::string(one["key"].as_string()) + " " +
                             std::string(one["effect"].as_string("any")));
  EXPECT_THAT(tolerations,
              testing::ElementsAre("vm any", "node.kubernetes.io/not-ready NoExecute",
                                   "node.kubernetes.io/unreachable NoExecute", "gpu any"));
}

TEST_F(RuntimeClasses, RejectContradictions) {
  const std::string begin = "pods \"a\" is forbidden: ";
  EXPECT_EQ(refusal(kOfClass), begin + "pod rejected: RuntimeClass \"vm\" not found");
  create_class("plain", "");
  create_class("vm", R"(,"overhead":{"podFixed":{"cpu":"100m"}},
      "scheduling":{"nodeSelector":{"vm":"yes"}})");
  EXPECT_EQ(refusal(std::string(kOfClass) + R"(,"overhead":{"cpu":"1"})"),
            begin + "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  EXPECT_EQ(refusal(std::string(kOfClass) + R"(,"nodeSelector":{"vm":"no"})"),
            begin +
                "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
                "pod.spec.nodeSelector[vm] = no");
  const std::string without =
      begin + "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
  EXPECT_EQ(refusal(R"(,"overhead":{"cpu":"1"})"), without);
  EXPECT_EQ(refusal(R"(,"runtimeClassName":"plain","overhead":{"cpu":"1"})"), without);
  pods().create(pod("b", R"(,"runtimeClassName":"plain")"));
}

// Pod security.

struct Rule {
  const char* standard;
  const char* pod;  // metadata and spec
  const char* violations;
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.standard << " " << rule.pod; }

/// "restricted:v1.30".
admission::SecurityStandard standard_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Object ns = from_json(R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":")" +
                              std::string(text.substr(0, colon)) +
                              R"(","pod-security.kubernetes.io/enforce-version":")" +
                              std::string(text.substr(colon + 1)) + R"("}}})");
  return admission::pod_security_of(ns.labels()).enforce;
}

class PodSecurityRules : public testing::TestWithParam<Rule> {};

TEST_P(PodSecurityRules, NameViolations) {
  const Object pod = from_json(GetParam().pod);
  const admission::SecurityStandard standard = standard_of(GetParam().standard);
  EXPECT_EQ(standard.to_string(), GetParam().standard);
  EXPECT_EQ(admission::details_of(admission::violations_of(standard, pod["metadata"], pod["spec"])),
            GetParam().violations);
}

/// A pod that "restricted" allows, up to the end of its spec.
#define LOOKOUT_STRICT_POD                                                       \
  R"({"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":)" \
  R"("RuntimeDefault"}},"containers":[{"name":"c","securityContext":{)"          \
  R"("allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}])"

INSTANTIATE_TEST_SUITE_P(
    Server, PodSecurityRules,
    testing::Values(
        Rule{"privileged:latest", R"({"spec":{"hostNetwork":true}})", ""},
        Rule{"baseline:latest", R"({"spec":{"containers":[{"name":"c"}]}})", ""},
        Rule{"restricted:latest", LOOKOUT_STRICT_POD "}}", ""},
        Rule{"restricted:latest", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
             R"(allowPrivilegeEscalation != false (containers "a", "b" must set )"
             R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
             R"((containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), )"
             R"(runAsNonRoot != true (pod or containers "a", "b" must set )"
             R"(securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "b" )"
             R"(must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
        // Older versions have fewer rules.
        Rule{"restricted:v1.21", R"({"spec":{"containers":[{"name":"a"}]}})",
             R"(allowPrivilegeEscalation != false (container "a" must set )"
             R"(securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or )"
             R"(container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or )"
             R"(container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or )"
             R"("Localhost"))"},
        Rule{"restricted:v1.7", R"({"spec":{"containers":[{"name":"a"}]}})",
             R"(runAsNonRoot != true (pod or container "a" must set )"
             R"(securityContext.runAsNonRoot=true))"},
        Rule{"restricted:v1.24",
             R"({"spec":{"os":{"name":"windows"},"securityContext":)"
             R"({"runAsNonRoot":true},"containers":[{"name":"a"}]}})",
             R"(allowPrivilegeEscalation != false (container "a" must set )"
             R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
             R"((container "a" must set securityContext.capabilities.drop=["ALL"]), )"
             R"(seccompProfile (pod or container "a" must set )"
             R"(securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
        Rule{"restricted:v1.25",
             R"({"spec":{"os":{"name":"windows"},"securityContext":)"
             R"({"runAsNonRoot":true},"containers":[{"name":"a"}]}})",
             ""},
        Rule{"baseline:latest",
             R"({"metadata":{"annotations":)"
             R"({"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},)"
             R"("spec":{"containers":[{"name":"c","securityContext":{"appArmorProfile":)"
             R"({"type":"Unconfined"}}}]}})",
             R"(forbidden AppArmor profiles (container "c" and annotation must not set AppArmor )"
             R"(profile type to "Unconfined", )"
             R"("container.apparmor.security.beta.kubernetes.io/c="unconfined""))"},
        Rule{"baseline:latest",
             R"({"spec":{"containers":[{"name":"c","securityContext":{"capabilities":)"
             R"({"add":["SYS_ADMIN","CHOWN","NET_RAW"]}}}]}})",
             R"(non-default capabilities (container "c" must not include "NET_RAW", "SYS_ADMIN" )"
             R"(in securityContext.capabilities.add))"},
        Rule{"restricted:latest",
             R"({"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":)"
             R"({"type":"Localhost"}},"containers":[{"name":"c","securityContext":)"
             R"({"allowPrivilegeEscalation":false,"capabilities":{"add":["CHOWN",)"
             R"("NET_BIND_SERVICE"]}}}]}})",
             R"(unrestricted capabilities (container "c" must set )"
             R"(securityContext.capabilities.drop=["ALL"]; container "c" must not include "CHOWN" )"
             R"(in securityContext.capabilities.add))"},
        Rule{"baseline:latest", R"({"spec":{"hostNetwork":true,"hostPID":true,"hostIPC":true}})",
             "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
        Rule{"baseline:latest",
             R"({"spec":{"volumes":[{"name":"a","hostPath":{"path":"/"}},{"name":"b","nfs":{}}]}})",
             R"(hostPath volumes (volume "a"))"},
        Rule{"restricted:latest",
             LOOKOUT_STRICT_POD R"(,"volumes":[{"name":"a","hostPath":{"path":"/"}},)"
                                R"({"name":"b","nfs":{}},{"name":"c","emptyDir":{}}]}})",
             R"(restricted volume types (volumes "a", "b" use restricted volume types )"
             R"("hostPath", "nfs"))"},
        Rule{"baseline:latest",
             R"({"spec":{"containers":[{"name":"c","ports":[{"hostPort":90},{"hostPort":8080},)"
             R"({"containerPort":1}]}]}})",
             R"(hostPort (container "c" uses hostPorts 8080, 90))"},
        Rule{"baseline:latest",
             R"({"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"host":"h"}},)"
             R"("lifecycle":{"preStop":{"tcpSocket":{"host":"g"}}}}]}})",
             R"(probe or lifecycle host (container "c" uses probe or lifecycle hosts "g", "h"))"},
        Rule{"baseline:v1.33",
             R"({"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"host":"h"}}}]}})",
             ""},
        Rule{"baseline:latest",
             R"({"spec":{"initContainers":[{"name":"i","securityContext":{"privileged":true}}],)"
             R"("ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]}})",
             R"(privileged (containers "i", "e" must not set securityContext.privileged=true))"},
        Rule{"baseline:latest",
             R"({"spec":{"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})",
             R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
        Rule{"baseline:latest",
             R"({"spec":{"hostUsers":false,)"
             R"("containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})",
             ""},
        Rule{"baseline:v1.34",
             R"({"spec":{"hostUsers":false,)"
             R"("containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})",
             R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
        Rule{"restricted:latest",
             R"({"spec":{"hostUsers":false,"securityContext":{"runAsUser":0,"seccompProfile":)"
             R"({"type":"RuntimeDefault"}},"containers":[{"name":"c","securityContext":)"
             R"({"procMount":"Unmasked","allowPrivilegeEscalation":false,)"
             R"("capabilities":{"drop":["ALL"]}}}]}})",
             R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
        Rule{"baseline:latest",
             R"({"spec":{"securityContext":{"seLinuxOptions":{"user":"u","role":"r"}},)"
             R"("containers":[{"name":"c","securityContext":{"seLinuxOptions":{"type":"t"}}}]}})",
             R"(seLinuxOptions (pod and container "c" set forbidden )"
             R"(securityContext.seLinuxOptions: type "t"; user may not be set; role may not be )"
             R"(set))"},
        Rule{"baseline:v1.31",
             R"({"spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}})",
             ""},
        Rule{"baseline:v1.30",
             R"({"spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}})",
             R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type )"
             R"("container_engine_t"))"},
        Rule{"baseline:latest",
             R"({"spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}})",
             R"(seccompProfile (pod must not set securityContext.seccompProfile.type to )"
             R"("Unconfined"))"},
        Rule{"baseline:v1.18",
             R"({"metadata":{"annotations":)"
             R"({"container.seccomp.security.alpha.kubernetes.io/c":"unconfined",)"
             R"("seccomp.security.alpha.kubernetes.io/pod":"docker/default"}},)"
             R"("spec":{"containers":[{"name":"c"}]}})",
             R"(seccompProfile (forbidden annotation )"
             R"(container.seccomp.security.alpha.kubernetes.io/c="unconfined"))"},
        Rule{"baseline:latest",
             R"({"spec":{"securityContext":{"sysctls":[{"name":"kernel.msgmax"},)"
             R"({"name":"net.ipv4.tcp_wmem"}]}}})",
             "forbidden sysctls (kernel.msgmax)"},
        Rule{"baseline:v1.28",
             R"({"spec":{"securityContext":{"sysctls":[)"
             R"({"name":"net.ipv4.ip_local_reserved_ports"},)"
             R"({"name":"net.ipv4.tcp_fin_timeout"}]}}})",
             "forbidden sysctls (net.ipv4.tcp_fin_timeout)"},
        Rule{"baseline:latest",
             R"({"spec":{"securityContext":{"windowsOptions":{"hostProcess":true}}}})",
             "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
        Rule{
            "restricted:latest",
            R"({"spec":{"securityContext":{"runAsNonRoot":true,"runAsUser":0,"seccompProfile":)"
            R"({"type":"RuntimeDefault"}},"containers":[{"name":"c","securityContext":)"
            R"({"runAsNonRoot":false,"allowPrivilegeEscalation":false,)"
            R"("capabilities":{"drop":["ALL"]}}}]}})",
            R"(runAsNonRoot != true (container "c" must not set )"
            R"(securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0))"}));

#undef LOOKOUT_STRICT_POD

class PodSecurityOfNamespaces : public ClientTest {
 protected:
  /// `labels`: "enforce":"restricted", without their common prefix.
  void create_namespace(const std::string& name,
                        const std::vector<std::pair<std::string, std::string>>& labels) {
    all(kNamespaces).create(labelled(name, labels));
  }
  static Object labelled(const std::string& name,
                         const std::vector<std::pair<std::string, std::string>>& labels) {
    std::string members;
    for (const auto& [label, value] : labels) {
      members += members.empty() ? "" : ",";
      members += R"("pod-security.kubernetes.io/)" + label + R"(":")" + value + '"';
    }
    return from_json(R"({"metadata":{"name":")" + name + R"(","labels":{)" + members + "}}}");
  }
  HttpAnswer label(const std::string& ns, const std::string& name, const std::string& value,
                   const std::string& query = "") {
    return http(server_.port(), "PATCH", "/api/v1/namespaces/" + ns + query,
                R"({"metadata":{"labels":{"pod-security.kubernetes.io/)" + name + R"(":")" + value +
                    R"("}}})",
                kMergePatch);
  }
  HttpAnswer post_pod(const std::string& ns, const std::string& name, const std::string& spec = "",
                      const std::string& query = "") {
    return http(server_.port(), "POST", "/api/v1/namespaces/" + ns + "/pods" + query,
                pod(name, spec).to_json(), kJsonBody);
  }
  static std::string message_of(const HttpAnswer& answer) {
    return std::string(held(Object::parse(answer.body))["message"].as_string());
  }
  /// The last warning of the header; empty if there is none.
  static std::string warning_of(const HttpAnswer& answer) {
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  }
};

TEST_F(PodSecurityOfNamespaces, RejectsPods) {
  create_namespace("strict", {{"enforce", "restricted"}});
  const HttpAnswer refused = post_pod("strict", "a");
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(message_of(refused),
            R"(pods "a" is forbidden: violates PodSecurity "restricted:latest": )"
            R"(allowPrivilegeEscalation != false (container "main" must set )"
            R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
            R"((container "main" must set securityContext.capabilities.drop=["ALL"]), )"
            R"(runAsNonRoot != true (pod or container "main" must set )"
            R"(securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must )"
            R"(set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))");
  EXPECT_EQ(warning_of(refused), "");
  EXPECT_EQ(post_pod("strict", "a", "", "?dryRun=All").code, 403);
  EXPECT_EQ(post_pod("default", "a", R"(,"hostNetwork":true)").code, 201);
  EXPECT_EQ(
      http(server_.port(), "POST", "/api/v1/namespaces/strict/pods",
           R"({"metadata":{"name":"b"},"spec":{"securityContext":{"runAsNonRoot":true,)"
           R"("seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"c","image":"i",)"
           R"("securityContext":{"allowPrivilegeEscalation":false,)"
           R"("capabilities":{"drop":["ALL"]}}}]}})",
           kJsonBody)
          .code,
      201);
}

TEST_F(PodSecurityOfNamespaces, HasTheRulesOfAVersion) {
  create_namespace("old", {{"enforce", "restricted"}, {"enforce-version", "v1.7"}});
  EXPECT_EQ(message_of(post_pod("old", "a")),
            R"(pods "a" is forbidden: violates PodSecurity "restricted:v1.7": )"
            R"(runAsNonRoot != true (pod or container "main" must set )"
            R"(securityContext.runAsNonRoot=true))");
}

TEST_F(PodSecurityOfNamespaces, WarnsAboutPodsAndTemplates) {
  create_namespace("soft", {{"warn", "baseline"}});
  const HttpAnswer accepted = post_pod("soft", "a", R"(,"hostNetwork":true)");
  EXPECT_EQ(accepted.code, 201) << accepted.body;
  EXPECT_THAT(warning_of(accepted),
              HasSubstr(R"(would violate PodSecurity \"baseline:latest\": host namespaces )"
                        "(hostNetwork=true)"));
  EXPECT_EQ(warning_of(post_pod("soft", "b")), "");

  // The enforced standard is not enforced for templates, but causes warnings.
  create_namespace("strict", {{"enforce", "baseline"}});
  const auto post_deployment = [&](const std::string& name, const std::string& spec) {
    return http(server_.port(), "POST", "/apis/apps/v1/namespaces/strict/deployments",
                R"({"metadata":{"name":")" + name + R"("},"spec":{"selector":{"matchLabels":)" +
                    R"({"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{)" +
                    R"("containers":[{"name":"c","image":"i"}])" + spec + "}}}}",
                kJsonBody);
  };
  const HttpAnswer created = post_deployment("a", R"(,"hostPID":true)");
  EXPECT_EQ(created.code, 201) << created.body;
  const std::string warning =
      R"(would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true))";
  EXPECT_THAT(warning_of(created), HasSubstr(warning));
  EXPECT_EQ(warning_of(post_deployment("b", "")), "");
  const HttpAnswer scaled =
      http(server_.port(), "PATCH", "/apis/apps/v1/namespaces/strict/deployments/a",
           R"({"spec":{"replicas":2}})", kMergePatch);
  EXPECT_THAT(warning_of(scaled), HasSubstr(warning));
  const HttpAnswer job =
      http(server_.port(), "POST", "/apis/batch/v1/namespaces/strict/cronjobs",
           R"({"metadata":{"name":"a"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":)"
           R"({"template":{"spec":{"hostPID":true,"restartPolicy":"Never",)"
           R"("containers":[{"name":"c","image":"i"}]}}}}}})",
           kJsonBody);
  EXPECT_EQ(job.code, 201) << job.body;
  EXPECT_THAT(warning_of(job), HasSubstr(warning));
}

TEST_F(PodSecurityOfNamespaces, AppliesOnlyToUpdatesOfImages) {
  create_namespace("later", {});
  EXPECT_EQ(post_pod("later", "a").code, 201);
  EXPECT_EQ(label("later", "enforce", "restricted").code, 200);
  const std::string path = "/api/v1/namespaces/later/pods/a";
  const auto patch = [&](const std::string& where, const std::string& body) {
    return http(server_.port(), "PATCH", path + where, body, kStrategicPatch);
  };
  EXPECT_EQ(patch("", R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  EXPECT_EQ(patch("/status", R"({"status":{"phase":"Running"}})").code, 200);
  const HttpAnswer image = patch("", R"({"spec":{"containers":[{"name":"main","image":"i:2"}]}})");
  EXPECT_EQ(image.code, 403) << image.body;
  EXPECT_THAT(message_of(image), HasSubstr("violates PodSecurity"));
  const HttpAnswer debug = patch(
      "/ephemeralcontainers", R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"i"}]}})");
  EXPECT_EQ(debug.code, 403) << debug.body;
}

TEST_F(PodSecurityOfNamespaces, AcceptsOnlyKnownValues) {
  const auto refusal = [&](const std::string& name, const std::string& value) {
    const api::Status status = status_of([&] { create_namespace("a", {{name, value}}); });
    EXPECT_EQ(status.code, 422);
    return status.message;
  };
  const std::string begin =
      R"(Namespace "a" is invalid: metadata.labels[pod-security.kubernetes.io/)";
  EXPECT_EQ(
      refusal("enforce", "foo"),
      begin + R"(enforce]: Invalid value: "foo": must be one of privileged, baseline, restricted)");
  EXPECT_EQ(
      refusal("audit", "foo"),
      begin + R"(audit]: Invalid value: "foo": must be one of privileged, baseline, restricted)");
  for (const std::string version : {"1.30", "v1", "v2.0", "v1.01", "v1.x", "Latest"}) {
    EXPECT_EQ(refusal("warn-version", version), begin + R"(warn-version]: Invalid value: ")" +
                                                    version + R"(": must be "latest" or "v1.x")");
  }
  create_namespace("a", {{"enforce", "baseline"}, {"enforce-version", "v1.0"}});
  EXPECT_EQ(label("a", "enforce", "foo").code, 422);
  EXPECT_EQ(label("a", "enforce-version", "latest").code, 200);
}

TEST_F(PodSecurityOfNamespaces, WarnsAboutExistingPods) {
  create_namespace("a", {});
  for (const char* name : {"y", "x"}) EXPECT_EQ(post_pod("a", name).code, 201);
  EXPECT_EQ(warning_of(label("a", "enforce", "baseline")), "");
  EXPECT_EQ(post_pod("a", "z", R"(,"securityContext":{"runAsNonRoot":true})").code, 201);
  // The last one; the warnings are in order.
  const std::string warning =
      "z: allowPrivilegeEscalation != false, unrestricted capabilities, seccompProfile";
  EXPECT_THAT(warning_of(label("a", "enforce", "restricted", "?dryRun=All")), HasSubstr(warning));
  EXPECT_THAT(warning_of(label("a", "enforce", "restricted")), HasSubstr(warning));
  // This level is not stricter.
  EXPECT_EQ(warning_of(label("a", "enforce", "baseline")), "");

  const std::vector<Object> pods = {pod("y"), pod("x"), pod("z", R"(,"hostPID":true)")};
  EXPECT_THAT(
      admission::warnings_about_pods("a", standard_of("restricted:v1.7"), pods),
      testing::ElementsAre(
          R"(existing pods in namespace "a" violate the new PodSecurity enforce level )"
          R"("restricted:v1.7")",
          "x (and 1 other pod): runAsNonRoot != true", "z: host namespaces, runAsNonRoot != true"));
  EXPECT_THAT(admission::warnings_about_pods("a", standard_of("baseline:latest"), {pod("x")}),
              testing::IsEmpty());
}

}  // namespace
}  // namespace lookout::apiserver
