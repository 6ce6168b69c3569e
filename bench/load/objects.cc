#include "bench/load/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/load/stamp.h"

namespace lookout::bench {
namespace {

constexpr std::array kApps = {"web", "api", "cart", "search", "billing", "mail", "auth", "images"};

std::string app(std::size_t variant) { return kApps[variant % kApps.size()]; }
std::size_t hash(std::size_t variant) { return (variant + 1) * 2654435761u % 0x100000000u; }

std::string join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

/// metadata without its closing brace.
std::string metadata(const std::string& name_prefix, bool namespaced, const std::string& labels,
                     const std::string& annotations) {
  return fmt::format(
      R"("metadata":{{"name":"{0}-{1}",{2}"uid":"5a283ee6-7a93-48ed-b397-00{1}",)"
      R"("resourceVersion":"{3}","creationTimestamp":"2026-11-20T10:54:22Z","labels":{{{4}}},)"
      R"("annotations":{{"{5}":"{6}"{7}}})",
      name_prefix, marker::kNumber,
      namespaced ? fmt::format(R"("namespace":"{}",)", marker::kNamespace) : "", marker::kVersion,
      labels, kSentAnnotation, marker::kSent, annotations.empty() ? "" : "," + annotations);
}

// ---------------------------------------------------------------------------------------- pods

/// The value of a container's n-th environment variable.
std::string env_value(std::size_t n) {
  switch (n % 4) {
    case 0:
      return R"("value":"info")";
    case 1:
      return R"("valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}})";
    case 2:
      return fmt::format(R"("valueFrom":{{"secretKeyRef":{{"name":"database","key":"key-{}"}}}})",
                         n);
    default:
      return fmt::format(R"("value":"http://service-{}.shop.svc.cluster.local:8080/v1")", n);
  }
}

std::string env_name(std::size_t n) { return fmt::format("SETTING_{:03}", n); }

std::string container_name(std::size_t variant, std::size_t n) {
  return n == 0 ? app(variant) : fmt::format("{}-sidecar-{}", app(variant), n);
}

std::string container(std::size_t variant, std::size_t n, std::size_t env) {
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < env; ++i)
    settings.push_back(fmt::format(R"({{"name":"{}",{}}})", env_name(i), env_value(i)));
  return fmt::format(
      R"({{"name":"{0}","image":"registry.example.com/shop/{0}:v3.5.{1}",)"
      R"("args":["--config=/etc/{0}/config.yaml","--listen=:8080"],)"
      R"("ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},)"
      R"({{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],"env":[{2}],)"
      R"("resources":{{"limits":{{"cpu":"500m","memory":"512Mi"}},)"
      R"("requests":{{"cpu":"100m","memory":"256Mi"}}}},)"
      R"("volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/{0}"}},)"
      R"({{"name":"tmp","mountPath":"/tmp"}},{{"name":"kube-api-access-x7k2p","readOnly":true,)"
      R"("mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],)"
      R"("livenessProbe":{{"httpGet":{{"path":"/healthz","port":"http","scheme":"HTTP"}},)"
      R"("initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,)"
      R"("failureThreshold":3}},)"
      R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
      R"("imagePullPolicy":"IfNotPresent","securityContext":{{"capabilities":{{"drop":["ALL"]}},)"
      R"("readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}})",
      container_name(variant, n), variant, join(settings));
}

std::string container_fields(std::size_t variant, std::size_t n, std::size_t env) {
  std::vector<std::string> settings{R"(".":{})"};
  for (std::size_t i = 0; i < env; ++i) {
    settings.push_back(fmt::format(R"("k:{{\"name\":\"{}\"}}":{{".":{{}},"f:name":{{}},{}}})",
                                   env_name(i),
                                   i % 4 == 1   ? R"("f:valueFrom":{".":{},"f:fieldRef":{}})"
                                   : i % 4 == 2 ? R"("f:valueFrom":{".":{},"f:secretKeyRef":{}})"
                                                : R"("f:value":{})"));
  }
  return fmt::format(
      R"("k:{{\"name\":\"{0}\"}}":{{".":{{}},"f:args":{{}},"f:env":{{{1}}},"f:image":{{}},)"
      R"("f:imagePullPolicy":{{}},"f:livenessProbe":{{".":{{}},"f:failureThreshold":{{}},)"
      R"("f:httpGet":{{".":{{}},"f:path":{{}},"f:port":{{}},"f:scheme":{{}}}},)"
      R"("f:initialDelaySeconds":{{}},"f:periodSeconds":{{}},"f:successThreshold":{{}},)"
      R"("f:timeoutSeconds":{{}}}},"f:name":{{}},"f:ports":{{".":{{}},)"
      R"("k:{{\"containerPort\":8080,\"protocol\":\"TCP\"}}":{{".":{{}},"f:containerPort":{{}},)"
      R"("f:name":{{}},"f:protocol":{{}}}}}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},)"
      R"("f:cpu":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}},)"
      R"("f:securityContext":{{".":{{}},"f:allowPrivilegeEscalation":{{}},)"
      R"("f:capabilities":{{".":{{}},"f:drop":{{}}}},"f:readOnlyRootFilesystem":{{}}}},)"
      R"("f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}},)"
      R"("f:volumeMounts":{{".":{{}},"k:{{\"mountPath\":\"/tmp\"}}":{{".":{{}},)"
      R"("f:mountPath":{{}},"f:name":{{}}}}}}}})",
      container_name(variant, n), join(settings));
}

std::string container_status(std::size_t variant, std::size_t n) {
  return fmt::format(
      R"({{"name":"{0}","state":{{"running":{{"startedAt":"2026-11-20T10:54:30Z"}}}},)"
      R"("lastState":{{}},"ready":true,"restartCount":0,)"
      R"("image":"registry.example.com/shop/{0}:v3.5.{1}",)"
      R"("imageID":"registry.example.com/shop/{0}@sha256:{2:064x}",)"
      R"("containerID":"containerd://{2:064x}","started":true}})",
      container_name(variant, n), variant, hash(variant + n));
}

std::string condition(std::string_view type) {
  return fmt::format(R"({{"type":"{}","status":"True","lastProbeTime":null,)"
                     R"("lastTransitionTime":"2026-11-20T10:54:31Z"}})",
                     type);
}

/// A pod with this many containers, each with this many settings, labelled as by kratos' registry.
std::string full_pod(std::size_t variant, std::size_t containers, std::size_t env) {
  std::vector<std::string> specs, fields, statuses;
  for (std::size_t n = 0; n < containers; ++n) {
    specs.push_back(container(variant, n, env));
    fields.push_back(container_fields(variant, n, env));
    statuses.push_back(container_status(variant, n));
  }
  const std::string name = app(variant);
  const std::string labels = fmt::format(
      R"("app":"{0}","app.kubernetes.io/name":"{0}","app.kubernetes.io/part-of":"shop",)"
      R"("kratos-service-app":"{0}","kratos-service-id":"{0}-{4}",)"
      R"("kratos-service-version":"v3.5.{3}","pod-template-hash":"{1:08x}","tier":"{2}",)"
      R"("version":"v3.5.{3}")",
      name, hash(variant), variant % 2 ? "front" : "back", variant, marker::kNumber);
  const std::string annotations = fmt::format(
      R"("checksum/config":"{0:064x}","kratos-service-metadata":"{{\"zone\":\"sh001\"}}",)"
      R"("kratos-service-protocols":"{{\"8080\":\"http\"}}",)"
      R"("prometheus.io/port":"9090","prometheus.io/scrape":"true")",
      hash(variant));
  std::string out = R"({"kind":"Pod","apiVersion":"v1",)";
  out += metadata(fmt::format("{}-{:08x}", name, hash(variant)), true, labels, annotations);
  out += fmt::format(
      R"(,"generateName":"{0}-{1:08x}-","ownerReferences":[{{"apiVersion":"apps/v1",)"
      R"("kind":"ReplicaSet","name":"{0}-{1:08x}","uid":"0c9ee4a2-3b1f-4a52-9d3e-{1:012x}",)"
      R"("controller":true,"blockOwnerDeletion":true}}],"managedFields":[)"
      R"({{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",)"
      R"("time":"2026-11-20T10:54:22Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{)"
      R"("f:annotations":{{".":{{}},"f:checksum/config":{{}},"f:prometheus.io/port":{{}},)"
      R"("f:prometheus.io/scrape":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app":{{}},)"
      R"("f:app.kubernetes.io/name":{{}},"f:app.kubernetes.io/part-of":{{}},)"
      R"("f:pod-template-hash":{{}},"f:tier":{{}},"f:version":{{}}}},"f:ownerReferences":{{".":{{}},)"
      R"("k:{{\"uid\":\"0c9ee4a2-3b1f-4a52-9d3e-{1:012x}\"}}":{{}}}}}},"f:spec":{{)"
      R"("f:containers":{{{2}}},"f:dnsPolicy":{{}},"f:enableServiceLinks":{{}},)"
      R"("f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{".":{{}},)"
      R"("f:fsGroup":{{}},"f:runAsNonRoot":{{}},"f:runAsUser":{{}}}},"f:serviceAccount":{{}},)"
      R"("f:serviceAccountName":{{}},"f:terminationGracePeriodSeconds":{{}},"f:volumes":{{".":{{}},)"
      R"("k:{{\"name\":\"config\"}}":{{".":{{}},"f:configMap":{{".":{{}},"f:defaultMode":{{}},)"
      R"("f:name":{{}}}},"f:name":{{}}}},"k:{{\"name\":\"tmp\"}}":{{".":{{}},"f:emptyDir":{{}},)"
      R"("f:name":{{}}}}}}}}}}}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1",)"
      R"("time":"2026-11-20T10:54:31Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{)"
      R"("f:conditions":{{"k:{{\"type\":\"ContainersReady\"}}":{{".":{{}},"f:lastProbeTime":{{}},)"
      R"("f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}},)"
      R"("k:{{\"type\":\"Initialized\"}}":{{".":{{}},"f:lastProbeTime":{{}},)"
      R"("f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}},)"
      R"("k:{{\"type\":\"Ready\"}}":{{".":{{}},"f:lastProbeTime":{{}},)"
      R"("f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}}},"f:containerStatuses":{{}},)"
      R"("f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},)"
      R"("k:{{\"ip\":\"10.8.{3}.7\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},)"
      R"("subresource":"status"}}]}},)",
      name, hash(variant), join(fields), variant % 256);
  out += fmt::format(
      R"("spec":{{"volumes":[{{"name":"config","configMap":{{"name":"{0}-config",)"
      R"("defaultMode":420}}}},{{"name":"tmp","emptyDir":{{}}}},{{"name":"kube-api-access-x7k2p",)"
      R"("projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,)"
      R"("path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt",)"
      R"("path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{1}],)"
      R"("restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
      R"("serviceAccountName":"{0}","serviceAccount":"{0}","nodeName":"node-{2}",)"
      R"("securityContext":{{"runAsUser":10001,"runAsNonRoot":true,"fsGroup":10001}},)"
      R"("schedulerName":"default-scheduler","tolerations":[)"
      R"({{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)"
      R"("tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists",)"
      R"("effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,)"
      R"("preemptionPolicy":"PreemptLowerPriority"}},)",
      name, join(specs), variant % 64);
  out += fmt::format(
      R"("status":{{"phase":"Running","conditions":[{0}],"hostIP":"10.0.0.{1}",)"
      R"("hostIPs":[{{"ip":"10.0.0.{1}"}}],"podIP":"10.8.{2}.7","podIPs":[{{"ip":"10.8.{2}.7"}}],)"
      R"("startTime":"2026-11-20T10:54:22Z","containerStatuses":[{3}],"qosClass":"Burstable"}}}})",
      join({condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"),
            condition("ContainersReady"), condition("PodScheduled")}),
      variant % 64, variant % 256, join(statuses));
  return out;
}

/// The result of a bare `kubectl run`, about 1 KB.
std::string small_pod(std::size_t variant) {
  const std::string name = app(variant);
  std::string out = R"({"kind":"Pod","apiVersion":"v1",)";
  out += metadata(name, true, fmt::format(R"("app":"{}")", name), "");
  out += fmt::format(
      R"(,"managedFields":[{{"manager":"kubectl","operation":"Update","apiVersion":"v1",)"
      R"("time":"2026-11-20T10:54:22Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{)"
      R"("f:labels":{{".":{{}},"f:app":{{}}}}}},"f:spec":{{"f:containers":{{)"
      R"("k:{{\"name\":\"{0}\"}}":{{".":{{}},"f:image":{{}},"f:name":{{}}}}}}}}}}}}]}},)"
      R"("spec":{{"containers":[{{"name":"{0}","image":"{0}:{1}","resources":{{}},)"
      R"("imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","nodeName":"node-{1}"}},)"
      R"("status":{{"phase":"Running","conditions":[{2}],"hostIP":"10.0.0.{1}",)"
      R"("podIP":"10.8.{1}.7","startTime":"2026-11-20T10:54:22Z"}}}})",
      name, variant % 64, condition("Ready"));
  return out;
}

std::string pod(std::size_t variant, std::size_t bytes) {
  if (bytes < 3000) return small_pod(variant);
  // A container takes about 2.5 KB in all; environment variables fill the rest.
  const std::size_t containers = std::clamp<std::size_t>(bytes / 5000, 1, 16);
  std::string out = full_pod(variant, containers, 0);
  for (std::size_t env = 1; out.size() < bytes; ++env) out = full_pod(variant, containers, env);
  return out;
}

// --------------------------------------------------------------------------------------- others

std::string node(std::size_t variant, std::size_t) {
  std::vector<std::string> images;
  for (std::size_t i = 0; i < 40; ++i) {
    images.push_back(fmt::format(R"({{"names":["registry.example.com/shop/{0}@sha256:{1:064x}",)"
                                 R"("registry.example.com/shop/{0}:v3.{2}"],"sizeBytes":{3}}})",
                                 app(i), hash(i + variant), i, 10'000'000 + hash(i) % 400'000'000));
  }
  std::string out = R"({"kind":"Node","apiVersion":"v1",)";
  out += metadata("node", false,
                  fmt::format(R"("beta.kubernetes.io/arch":"amd64","kubernetes.io/hostname":)"
                              R"("node-{0}","topology.kubernetes.io/zone":"zone-{1}",)"
                              R"("node.kubernetes.io/instance-type":"m{1}.large")",
                              variant, variant % 3),
                  R"("volumes.kubernetes.io/controller-managed-attach-detach":"true")");
  out += fmt::format(R"(}},"spec":{{"podCIDR":"10.8.{0}.0/24","podCIDRs":["10.8.{0}.0/24"],)"
                     R"("providerID":"example://node-{0}"}},"status":{{"capacity":{{"cpu":"32",)"
                     R"("ephemeral-storage":"203056560Ki","memory":"131748780Ki","pods":"110"}},)"
                     R"("allocatable":{{"cpu":"31850m","ephemeral-storage":"187000000Ki",)"
                     R"("memory":"128000000Ki","pods":"110"}},"conditions":[{1}],)"
                     R"("addresses":[{{"type":"InternalIP","address":"10.0.0.{0}"}},)"
                     R"({{"type":"Hostname","address":"node-{0}"}}],"daemonEndpoints":{{)"
                     R"("kubeletEndpoint":{{"Port":10250}}}},"nodeInfo":{{"machineID":"{2:032x}",)"
                     R"("systemUUID":"{2:032x}","bootID":"0c9ee4a2-3b1f-4a52-9d3e-{2:012x}",)"
                     R"("kernelVersion":"6.1.0-35-amd64","osImage":"Debian GNU/Linux 12",)"
                     R"("containerRuntimeVersion":"containerd://2.1.1","kubeletVersion":"v1.36.0",)"
                     R"("kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}},)"
                     R"("images":[{3}]}}}})",
                     variant % 256,
                     join({condition("MemoryPressure"), condition("DiskPressure"),
                           condition("PIDPressure"), condition("Ready")}),
                     hash(variant), join(images));
  return out;
}

std::string endpoint_slice(std::size_t variant, std::size_t) {
  std::vector<std::string> endpoints;
  for (std::size_t i = 0; i < 20; ++i) {
    endpoints.push_back(
        fmt::format(R"({{"addresses":["10.8.{0}.{1}"],"conditions":{{"ready":true,"serving":true,)"
                    R"("terminating":false}},"targetRef":{{"kind":"Pod","namespace":"{2}",)"
                    R"("name":"{3}-{4:08x}-{1:05}","uid":"5a283ee6-7a93-48ed-b397-{4:012x}"}},)"
                    R"("nodeName":"node-{1}","zone":"zone-{5}"}})",
                    variant % 256, i, marker::kNamespace, app(variant), hash(i), i % 3));
  }
  std::string out = R"({"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",)";
  out += metadata(
      app(variant), true,
      fmt::format(R"("endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io",)"
                  R"("kubernetes.io/service-name":"{}")",
                  app(variant)),
      "");
  out += fmt::format(
      R"(,"generateName":"{}-"}},"addressType":"IPv4","endpoints":[{}],"ports":[{{"name":"http",)"
      R"("protocol":"TCP","port":8080}},{{"name":"metrics","protocol":"TCP","port":9090}}]}})",
      app(variant), join(endpoints));
  return out;
}

std::string config_map(std::size_t variant, std::size_t bytes) {
  std::string text;
  for (std::size_t line = 0; text.size() + 500 < bytes; ++line)
    text += fmt::format("setting-{}: value of {}\\n", line, hash(line + variant));
  std::string out = R"({"kind":"ConfigMap","apiVersion":"v1",)";
  out += metadata(app(variant), true, fmt::format(R"("app":"{}")", app(variant)), "");
  return out + fmt::format(R"(}},"data":{{"config.yaml":"{}","log-level":"info"}}}})", text);
}

std::string cron_tab(std::size_t variant, std::size_t) {
  std::string out = R"({"apiVersion":"stable.example.com/v1","kind":"CronTab",)";
  out += metadata(app(variant), true, fmt::format(R"("app":"{}")", app(variant)), "");
  return out +
         fmt::format(R"(}},"spec":{{"cronSpec":"*/{} * * * *","image":"cron:v{}","replicas":{},)"
                     R"("policy":{{"onFailure":"retry","maxAttempts":3,"backoffSeconds":1.5}},)"
                     R"("owners":["team-{}","team-shared"]}},"status":{{"lastRun":)"
                     R"("2026-11-20T10:54:22Z","succeeded":true}}}})",
                     variant % 59 + 1, variant, variant % 5, app(variant));
}

}  // namespace

const std::vector<ObjectType>& object_types() {
  static const std::vector<ObjectType> kTypes = {
      {"v1", "Pod", "pods", true, pod},
      {"v1", "Node", "nodes", false, node},
      {"discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true, endpoint_slice},
      {"v1", "ConfigMap", "configmaps", true, config_map},
      {"stable.example.com/v1", "CronTab", "crontabs", true, cron_tab},
  };
  return kTypes;
}

const ObjectType* object_type(std::string_view plural) {
  const auto& types = object_types();
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const ObjectType& type) { return type.plural == plural; });
  return found == types.end() ? nullptr : &*found;
}

std::string object_json(const ObjectType& type, std::size_t number, std::size_t bytes) {
  const Stamp stamp(type.json(number % kVariants, bytes));
  std::string out;
  stamp.append(out, {.number = number, .version = number + 1000, .ns = number % 100});
  return out;
}

}  // namespace lookout::bench
