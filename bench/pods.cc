#include "bench/pods.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <map>

#include "lookout/api/merge_patch.h"
#include "tests/support/realistic_pods.h"

namespace lookout::bench {
namespace {

/// What a server adds. The managed fields are those that kube-controller-manager and kubelet leave.
constexpr const char* kServerSide = R"({"metadata":{"uid":"5a283ee6-7a93-48ed-b397-%012zx",
"resourceVersion":"%zu","creationTimestamp":"2026-11-20T10:54:22Z","generateName":"web-","managedFields":[
{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-20T10:54:22Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{},"f:tier":{},"f:version":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0c9ee4a2-3b1f-4a52-9d3e-0000abcdef01\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"POD_IP\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{".":{},"f:allowPrivilegeEscalation":{},"f:capabilities":{".":{},"f:drop":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/web\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}},"k:{\"mountPath\":\"/tmp\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{".":{},"f:fsGroup":{},"f:runAsNonRoot":{},"f:runAsUser":{}},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}},"k:{\"name\":\"tmp\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}},
{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-20T10:54:31Z","fieldsType":"FieldsV1","subresource":"status","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}}]},
"spec":{"enableServiceLinks":true,"priority":0,"preemptionPolicy":"PreemptLowerPriority","schedulerName":"default-scheduler"}})";

std::string server_side(std::size_t number) {
  std::string out(8192, '\0');
  const int size = std::snprintf(out.data(), out.size(), kServerSide, number, number + 1000);
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace

std::string pod_json(std::size_t number) {
  rapidjson::Document pod =
      api::Object::parse(test::realistic_pod(number, fmt::format("ns-{}", number % 100)))
          .to_document();
  for (const std::string& patch : {test::realistic_pod_status(number), server_side(number)}) {
    rapidjson::Document document;
    document.Parse(patch.c_str());
    api::apply_merge_patch(pod, document, pod.GetAllocator());
  }
  return api::Object::from(pod).to_json();
}

std::string pod_list_json(std::size_t count) {
  std::string out =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100000"},"items":[)";
  for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + pod_json(i);
  return out + "]}";
}

const std::vector<api::Object>& pods(std::size_t count) {
  static std::map<std::size_t, std::vector<api::Object>> kept;
  auto& out = kept[count];
  while (out.size() < count) out.push_back(api::Object::parse(pod_json(out.size())));
  return out;
}

}  // namespace lookout::bench
