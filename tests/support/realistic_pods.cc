#include "tests/support/realistic_pods.h"

#include <fmt/format.h>

namespace lookout::test {
namespace {

constexpr const char* kPod = R"({{
"apiVersion":"v1","kind":"Pod",
"metadata":{{"name":"{app}-{hash:08x}-{number:05}","namespace":"{ns}",
 "labels":{{"app":"{app}","app.kubernetes.io/name":"{app}","app.kubernetes.io/part-of":"shop",
  "pod-template-hash":"{hash:08x}","tier":"{tier}","version":"v3.5.{patch}"}},
 "annotations":{{"prometheus.io/scrape":"true","prometheus.io/port":"9090",
  "checksum/config":"{hash:08x}5e0b7f4f9c1f0a1d2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192"}},
 "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-{hash:08x}",
  "uid":"0c9ee4a2-3b1f-4a52-9d3e-{hash:012x}","controller":true,"blockOwnerDeletion":true}}]}},
"spec":{{
 "nodeName":"node-{node}","serviceAccountName":"{app}","automountServiceAccountToken":false,
 "restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
 "securityContext":{{"runAsNonRoot":true,"runAsUser":10001,"fsGroup":10001}},
 "volumes":[{{"name":"config","configMap":{{"name":"{app}-config","defaultMode":420}}}},
  {{"name":"tmp","emptyDir":{{}}}},{{"name":"tls","secret":{{"secretName":"{app}-tls","defaultMode":420}}}}],
 "containers":[
  {{"name":"{app}","image":"registry.example.com/shop/{app}:v3.5.{patch}","imagePullPolicy":"IfNotPresent",
   "args":["--config=/etc/{app}/config.yaml","--listen=:8080"],
   "ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],
   "env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},
    {{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}},
    {{"name":"DATABASE_URL","valueFrom":{{"secretKeyRef":{{"name":"{app}-db","key":"url"}}}}}},
    {{"name":"LOG_LEVEL","value":"info"}},{{"name":"GOMAXPROCS","value":"2"}}],
   "resources":{{"limits":{{"cpu":"500m","memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"256Mi"}}}},
   "livenessProbe":{{"httpGet":{{"path":"/healthz","port":"http","scheme":"HTTP"}},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},
   "readinessProbe":{{"httpGet":{{"path":"/ready","port":"http","scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3}},
   "volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/{app}"}},{{"name":"tmp","mountPath":"/tmp"}},{{"name":"tls","readOnly":true,"mountPath":"/etc/tls"}}],
   "securityContext":{{"capabilities":{{"drop":["ALL"]}},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}},
  {{"name":"sidecar","image":"registry.example.com/mesh/proxy:1.22.{patch}","imagePullPolicy":"IfNotPresent",
   "ports":[{{"name":"proxy","containerPort":15001,"protocol":"TCP"}}],
   "env":[{{"name":"MESH_ID","value":"prod"}},{{"name":"UPSTREAM","value":"127.0.0.1:8080"}}],
   "resources":{{"limits":{{"cpu":"200m","memory":"128Mi"}},"requests":{{"cpu":"50m","memory":"64Mi"}}}}}}],
 "tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},
  {{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}}}})";

constexpr const char* kStatus = R"({{"status":{{
"phase":"Running","hostIP":"10.1.{node}.7","podIP":"10.{a}.{b}.{c}","podIPs":[{{"ip":"10.{a}.{b}.{c}"}}],
"startTime":"2026-11-20T10:54:22Z","qosClass":"Burstable",
"conditions":[
 {{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T10:54:22Z"}},
 {{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T10:54:31Z"}},
 {{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T10:54:31Z"}},
 {{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T10:54:22Z"}}],
"containerStatuses":[
 {{"name":"{app}","state":{{"running":{{"startedAt":"2026-11-20T10:54:25Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,
  "image":"registry.example.com/shop/{app}:v3.5.{patch}","started":true,
  "imageID":"registry.example.com/shop/{app}@sha256:{number:064x}","containerID":"containerd://{hash:064x}"}},
 {{"name":"sidecar","state":{{"running":{{"startedAt":"2026-11-20T10:54:26Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,
  "image":"registry.example.com/mesh/proxy:1.22.{patch}","started":true,
  "imageID":"registry.example.com/mesh/proxy@sha256:{number:064x}","containerID":"containerd://{number:064x}"}}]}}}})";

constexpr const char* kApps[] = {"web", "api", "cart", "search", "payments"};
constexpr const char* kTiers[] = {"front", "back"};

/// Something that differs from pod to pod and is the same each time.
std::size_t scramble(std::size_t number) { return (number / 50 + 1) * 2654435761u % 0xFFFFFFFF; }

}  // namespace

std::string realistic_pod(std::size_t number, const std::string& ns) {
  using namespace fmt::literals;
  return fmt::format(kPod, "app"_a = kApps[number % 5], "tier"_a = kTiers[number % 2],
                     "hash"_a = scramble(number), "number"_a = number, "ns"_a = ns,
                     "node"_a = number % 100, "patch"_a = number % 7);
}

std::string realistic_pod_status(std::size_t number) {
  using namespace fmt::literals;
  return fmt::format(kStatus, "app"_a = kApps[number % 5], "hash"_a = scramble(number),
                     "number"_a = number, "node"_a = number % 100, "patch"_a = number % 7,
                     "a"_a = 100 + number / 65536 % 100, "b"_a = number / 256 % 256,
                     "c"_a = number % 256);
}

}  // namespace lookout::test
