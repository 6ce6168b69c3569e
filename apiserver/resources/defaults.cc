#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/quota/resource_list.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;
using json::Value;

Value array() { return Value(rapidjson::kArrayType); }

void set_if_absent(Value& object_, std::string_view name, bool value, Allocator& allocator) {
  json::set_default(object_, name, Value(value), allocator);
}

/// "latest", or no tag at all, is pulled every time.
std::string_view pull_policy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return tagged && image.substr(colon + 1) != "latest" ? "IfNotPresent" : "Always";
}

void default_probe(Value& container, std::string_view name, Allocator& allocator) {
  Value* probe = json::find(container, name);
  if (probe == nullptr || !probe->IsObject()) return;
  const auto number = [&](std::string_view field, int value) {
    if (json::integer(*probe, field, 0) == 0) json::set(*probe, field, Value(value), allocator);
  };
  number("timeoutSeconds", 1);
  number("periodSeconds", 10);
  number("successThreshold", 1);
  number("failureThreshold", 3);
  if (Value* grpc = json::find(*probe, "grpc"); grpc != nullptr && grpc->IsObject())
    json::set_default(*grpc, "service", "", allocator);
  if (Value* get = json::find(*probe, "httpGet"); get != nullptr && get->IsObject()) {
    json::set_default(*get, "path", "/", allocator);
    json::set_default(*get, "scheme", "HTTP", allocator);
  }
}

/// The API version of a fieldRef.
void default_field_version(Value& source, Allocator& allocator) {
  if (Value* field = json::find(source, "fieldRef"); field != nullptr && field->IsObject())
    json::set_default(*field, "apiVersion", "v1", allocator);
}

void default_hook(Value& container, std::string_view name, Allocator& allocator) {
  Value* lifecycle = json::find(container, "lifecycle");
  Value* hook = lifecycle == nullptr ? nullptr : json::find(*lifecycle, name);
  Value* get = hook == nullptr ? nullptr : json::find(*hook, "httpGet");
  if (get == nullptr || !get->IsObject()) return;
  json::set_default(*get, "path", "/", allocator);
  json::set_default(*get, "scheme", "HTTP", allocator);
}

/// The source of a volume, in a pod or a persistent volume.
void default_volume_source(Value& holder, Allocator& allocator) {
  struct Default {
    const char* source;
    const char* field;
    const char* value;
  };
  constexpr std::array<Default, 9> kDefaults = {{
      {"rbd", "pool", "rbd"},
      {"rbd", "user", "admin"},
      {"rbd", "keyring", "/etc/ceph/keyring"},
      {"iscsi", "iscsiInterface", "default"},
      {"azureDisk", "cachingMode", "ReadWrite"},
      {"azureDisk", "fsType", "ext4"},
      {"azureDisk", "kind", "Shared"},
      {"scaleIO", "storageMode", "ThinProvisioned"},
      {"scaleIO", "fsType", "xfs"},
  }};
  for (const auto& [source, field, value] : kDefaults) {
    Value* found = json::find(holder, source);
    if (found != nullptr && found->IsObject()) json::set_default(*found, field, value, allocator);
  }
  if (Value* disk = json::find(holder, "azureDisk"); disk != nullptr && disk->IsObject())
    json::set_default(*disk, "readOnly", Value(false), allocator);
  if (Value* path = json::find(holder, "hostPath"); path != nullptr && path->IsObject())
    json::set_default(*path, "type", Value(""), allocator);
}

void default_volume(Value& volume, Allocator& allocator) {
  if (!volume.IsObject()) return;
  if (volume.MemberCount() == (json::find(volume, "name") == nullptr ? 0u : 1u))
    json::set(volume, "emptyDir", json::object(), allocator);
  constexpr int kMode = 0644;
  constexpr int kTokenSeconds = 3600;
  for (const char* source : {"secret", "configMap", "downwardAPI", "projected"}) {
    Value* found = json::find(volume, source);
    if (found == nullptr || !found->IsObject()) continue;
    json::set_default(*found, "defaultMode", Value(kMode), allocator);
    const auto items = [&](Value& item) { default_field_version(item, allocator); };
    json::for_each(*found, "items", items);
    json::for_each(*found, "sources", [&](Value& part) {
      if (Value* token = json::find(part, "serviceAccountToken");
          token != nullptr && token->IsObject())
        json::set_default(*token, "expirationSeconds", Value(kTokenSeconds), allocator);
      if (Value* downward = json::find(part, "downwardAPI"))
        json::for_each(*downward, "items", items);
    });
  }
  if (Value* image = json::find(volume, "image"); image != nullptr && image->IsObject())
    json::set_default(*image, "pullPolicy", pull_policy(json::text(*image, "reference")),
                      allocator);
  default_volume_source(volume, allocator);
  Value* ephemeral = json::find(volume, "ephemeral");
  Value* claim = ephemeral == nullptr ? nullptr : json::find(*ephemeral, "volumeClaimTemplate");
  Value* claim_spec = claim == nullptr ? nullptr : json::find(*claim, "spec");
  if (claim_spec != nullptr && claim_spec->IsObject())
    json::set_default(*claim_spec, "volumeMode", "Filesystem", allocator);
}

void default_container(Value& container, Allocator& allocator) {
  if (!container.IsObject()) return;
  json::for_each(container, "env", [&](Value& variable) {
    if (Value* source = json::find(variable, "valueFrom"))
      default_field_version(*source, allocator);
  });
  for (const char* hook : {"postStart", "preStop"}) default_hook(container, hook, allocator);
  json::set_default(container, "imagePullPolicy", pull_policy(json::text(container, "image")),
                    allocator);
  json::set_default(container, "terminationMessagePath", "/dev/termination-log", allocator);
  json::set_default(container, "terminationMessagePolicy", "File", allocator);
  json::set_default(container, "resources", json::object(), allocator);
  json::for_each(container, "ports", [&](Value& port) {
    if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
  });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    default_probe(container, probe, allocator);
}

void default_pod_spec(Value& spec, Allocator& allocator) {
  if (!spec.IsObject()) return;
  json::set_default(spec, "restartPolicy", "Always", allocator);
  json::set_default(spec, "terminationGracePeriodSeconds", Value(30), allocator);
  json::set_default(spec, "dnsPolicy", "ClusterFirst", allocator);
  json::set_default(spec, "securityContext", json::object(), allocator);
  json::set_default(spec, "schedulerName", "default-scheduler", allocator);
  const auto visit = [&](Value& container) { default_container(container, allocator); };
  json::for_each(spec, "containers", visit);
  json::for_each(spec, "initContainers", visit);
  json::for_each(spec, "ephemeralContainers", visit);
  json::for_each(spec, "volumes", [&](Value& volume) { default_volume(volume, allocator); });
  // An older name for the same.
  std::string account(json::text(spec, "serviceAccountName"));
  if (account.empty()) account = json::text(spec, "serviceAccount");
  if (!account.empty()) {
    json::set(spec, "serviceAccountName", account, allocator);
    json::set(spec, "serviceAccount", account, allocator);
  }
  if (const Value* host = json::find(spec, "hostNetwork"); host != nullptr && host->IsTrue()) {
    json::for_each(spec, "containers", [&](Value& container) {
      json::for_each(container, "ports", [&](Value& port) {
        if (const Value* number = json::find(port, "containerPort");
            number != nullptr && number->IsInt())
          json::set_default(port, "hostPort", Value(number->GetInt()), allocator);
      });
    });
  }
}

/// The requests of a container default to its limits.
void default_requests(Value& container, Allocator& allocator) {
  Value* resources = json::find(container, "resources");
  Value* limits = resources == nullptr ? nullptr : json::find(*resources, "limits");
  if (limits == nullptr || !limits->IsObject() || limits->ObjectEmpty()) return;
  Value& requests = json::child(*resources, "requests", allocator);
  for (auto& limit : json::find(*resources, "limits")->GetObject())
    json::set_default(requests, json::text_of(limit.name), json::deep_copy(limit.value, allocator),
                      allocator);
}

/// spec.template of a workload.
void default_template(Value& spec, Allocator& allocator) {
  default_pod_spec(json::child(json::child(spec, "template", allocator), "spec", allocator),
                   allocator);
}

/// The spec of a workload, its template filled in; null if there is none.
Value* workload_spec(Value& workload, Allocator& allocator) {
  Value* spec = json::find(workload, "spec");
  if (spec == nullptr || !spec->IsObject()) return nullptr;
  default_template(*spec, allocator);
  return spec;
}

/// Labels of the object itself, from its template.
void default_labels(Value& object_, const Value& spec, Allocator& allocator) {
  const Value* pod = json::find(spec, "template");
  const Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels == nullptr) return;
  Value& own = json::child(object_, "metadata", allocator);
  const Value* present = json::find(own, "labels");
  if (present == nullptr || present->IsNull())
    json::set(own, "labels", json::deep_copy(*labels, allocator), allocator);
}

/// The port of the service in a webhook's clientConfig.
void default_service_port(Value& webhook, Allocator& allocator) {
  constexpr int kPort = 443;
  Value* client = json::find(webhook, "clientConfig");
  Value* service = client == nullptr ? nullptr : json::find(*client, "service");
  if (service != nullptr && service->IsObject())
    json::set_default(*service, "port", Value(kPort), allocator);
}

/// What a webhook or a policy is asked about.
void default_match(Value& match, const char* rules, Allocator& allocator) {
  json::set_default(match, "matchPolicy", "Equivalent", allocator);
  json::set_default(match, "namespaceSelector", json::object(), allocator);
  json::set_default(match, "objectSelector", json::object(), allocator);
  json::for_each(match, rules, [&](Value& rule) {
    if (rule.IsObject()) json::set_default(rule, "scope", "*", allocator);
  });
}

/// `name`: the member of the spec that says what is matched.
void default_policy_match(Value& object, const char* name, Allocator& allocator) {
  Value* spec = json::find(object, "spec");
  Value* match = spec == nullptr ? nullptr : json::find(*spec, name);
  if (match == nullptr || !match->IsObject()) return;
  default_match(*match, "resourceRules", allocator);
  json::for_each(*match, "excludeResourceRules", [&](Value& rule) {
    if (rule.IsObject()) json::set_default(rule, "scope", "*", allocator);
  });
}

/// The scaling rules of an autoscaler, where they are set.
void default_behavior(Value& behavior, Allocator& allocator) {
  constexpr int kPeriod = 15;
  for (const bool up : {true, false}) {
    Value& scaling = json::child(behavior, up ? "scaleUp" : "scaleDown", allocator);
    if (up) json::set_default(scaling, "stabilizationWindowSeconds", Value(0), allocator);
    json::set_default(scaling, "selectPolicy", "Max", allocator);
    const Value* present = json::find(scaling, "policies");
    if (present != nullptr && present->IsArray()) continue;
    Value policies = array();
    const auto add = [&](const char* type, int value) {
      Value policy = json::object();
      json::set(policy, "type", type, allocator);
      json::set(policy, "value", Value(value), allocator);
      json::set(policy, "periodSeconds", Value(kPeriod), allocator);
      policies.PushBack(policy, allocator);
    };
    if (up) add("Pods", 4);
    add("Percent", 100);
    json::set(scaling, "policies", std::move(policies), allocator);
  }
}

/// A request is for one device by default.
void default_device_requests(Value& spec, Allocator& allocator) {
  const auto one = [&](Value& request) {
    if (!request.IsObject()) return;
    json::set_default(request, "allocationMode", "ExactCount", allocator);
    if (json::text(request, "allocationMode") == "ExactCount" &&
        json::integer(request, "count", 0) == 0)
      json::set(request, "count", Value(1), allocator);
  };
  Value* devices = json::find(spec, "devices");
  if (devices == nullptr || !devices->IsObject()) return;
  json::for_each(*devices, "requests", [&](Value& request) {
    if (Value* exactly = json::find(request, "exactly")) one(*exactly);
    json::for_each(request, "firstAvailable", one);
  });
}

}  // namespace

/// The resources of the pod as a whole, if it has any: missing requests are those of its containers,
/// or else its limits.
void default_pod_resources(Value& spec, Allocator& allocator) {
  Value* resources = json::find(spec, "resources");
  if (resources == nullptr || !resources->IsObject()) return;
  const auto is_huge = [](std::string_view name) { return name.starts_with("hugepages-"); };
  const auto has_any = [&](const char* part) {
    const Value* amounts = json::find(*resources, part);
    return amounts != nullptr && amounts->IsObject() && !amounts->ObjectEmpty();
  };
  if (!has_any("limits") && !has_any("requests")) return;
  const api::Object containers = api::Object::from(spec);
  const auto set_missing = [&](const char* part, const std::string& name, std::string_view amount) {
    json::set_default(json::child(*resources, part, allocator), name, amount, allocator);
  };
  for (const auto& [name, amount] : quota::resources_of_containers(containers.body(), "limits")) {
    const bool is_asked_for = containers["resources"]["requests"][name].exists();
    if (is_huge(name) && !is_asked_for) set_missing("limits", name, amount.to_string());
  }
  if (!has_any("limits")) return;
  for (const auto& [name, amount] : quota::resources_of_containers(containers.body(), "requests")) {
    if (name == "cpu" || name == "memory") set_missing("requests", name, amount.to_string());
  }
  // (A new member moves the others.)
  const Value limits = json::deep_copy(*json::find(*resources, "limits"), allocator);
  for (const auto& limit : limits.GetObject()) {
    const std::string name(json::text_of(limit.name));
    if ((name == "cpu" || name == "memory" || is_huge(name)) && limit.value.IsString())
      set_missing("requests", name, json::text_of(limit.value));
  }
}

void default_pod(Value& pod, Allocator& allocator) {
  Value* spec = json::find(pod, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  default_pod_spec(*spec, allocator);
  json::set_default(*spec, "enableServiceLinks", Value(true), allocator);
  // Only pods themselves are mended; templates may say so.
  if (json::integer(*spec, "terminationGracePeriodSeconds", 0) < 0)
    json::set(*spec, "terminationGracePeriodSeconds", Value(1), allocator);
  const auto visit = [&](Value& container) { default_requests(container, allocator); };
  json::for_each(*spec, "containers", visit);
  json::for_each(*spec, "initContainers", visit);
  default_pod_resources(*spec, allocator);
}

void default_pod_template(Value& object_, Allocator& allocator) {
  default_template(object_, allocator);
}

void default_deployment(Value& deployment, Allocator& allocator) {
  Value* spec = workload_spec(deployment, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  Value& strategy = json::child(*spec, "strategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", Value("25%"), allocator);
    json::set_default(rolling, "maxSurge", Value("25%"), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
  json::set_default(*spec, "progressDeadlineSeconds", Value(600), allocator);
}

void default_replica_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
}

void default_replication_controller(Value& controller, Allocator& allocator) {
  Value* spec = json::find(controller, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  // (Its template may be missing, which is refused later.)
  if (json::find(*spec, "template") != nullptr) default_template(*spec, allocator);
  json::set_default(*spec, "replicas", Value(1), allocator);
  default_labels(controller, *spec, allocator);
  const Value* pod = json::find(*spec, "template");
  const Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels != nullptr)
    json::set_default(*spec, "selector", json::deep_copy(*labels, allocator), allocator);
}

void default_stateful_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  json::set_default(*spec, "podManagementPolicy", "OrderedReady", allocator);
  Value& strategy = json::child(*spec, "updateStrategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate")
    json::set_default(json::child(strategy, "rollingUpdate", allocator), "partition", Value(0),
                      allocator);
  // (Behind a feature gate that is off.)
  if (Value* rolling = json::find(strategy, "rollingUpdate"); rolling != nullptr)
    json::erase(*rolling, "maxUnavailable");
  Value& retention = json::child(*spec, "persistentVolumeClaimRetentionPolicy", allocator);
  json::set_default(retention, "whenDeleted", "Retain", allocator);
  json::set_default(retention, "whenScaled", "Retain", allocator);
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
  json::for_each(*spec, "volumeClaimTemplates", [&](Value& claim) {
    if (!claim.IsObject()) return;
    json::set(claim, "kind", "PersistentVolumeClaim", allocator);
    json::set(claim, "apiVersion", "v1", allocator);
    json::set_default(json::child(claim, "spec", allocator), "volumeMode", "Filesystem", allocator);
    json::set_default(json::child(claim, "status", allocator), "phase", "Pending", allocator);
  });
}

void default_daemon_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  Value& strategy = json::child(*spec, "updateStrategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", Value(1), allocator);
    json::set_default(rolling, "maxSurge", Value(0), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
  // The default is set before field ownership is computed, so the client owns the annotation.
  Value& metadata = json::child(set, "metadata", allocator);
  json::set_default(json::child(metadata, "annotations", allocator), kTemplateGeneration, "0",
                    allocator);
}

void default_job(Value& job, Allocator& allocator) {
  Value* spec = workload_spec(job, allocator);
  if (spec == nullptr) return;
  const bool sized =
      json::find(*spec, "completions") != nullptr || json::find(*spec, "parallelism") != nullptr;
  if (!sized) json::set(*spec, "completions", Value(1), allocator);
  json::set_default(*spec, "parallelism", Value(1), allocator);
  // (A limit for each index is the limit.)
  constexpr int kNoLimit = 2147483647;
  const bool limits_indexes = json::find(*spec, "backoffLimitPerIndex") != nullptr;
  json::set_default(*spec, "backoffLimit", Value(limits_indexes ? kNoLimit : 6), allocator);
  json::set_default(*spec, "completionMode", "NonIndexed", allocator);
  json::set_default(*spec, "suspend", Value(false), allocator);
  json::set_default(*spec, "manualSelector", Value(false), allocator);
  if (Value* failure = json::find(*spec, "podFailurePolicy"); failure != nullptr) {
    json::for_each(*failure, "rules", [&](Value& rule) {
      json::for_each(rule, "onPodConditions", [&](Value& condition) {
        if (condition.IsObject()) json::set_default(condition, "status", "True", allocator);
      });
    });
  }
  json::set_default(
      *spec, "podReplacementPolicy",
      json::find(*spec, "podFailurePolicy") == nullptr ? "TerminatingOrFailed" : "Failed",
      allocator);
  default_labels(job, *spec, allocator);
}

void default_cron_job(Value& cron_job, Allocator& allocator) {
  Value* spec = json::find(cron_job, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "concurrencyPolicy", "Allow", allocator);
  json::set_default(*spec, "suspend", Value(false), allocator);
  json::set_default(*spec, "successfulJobsHistoryLimit", Value(3), allocator);
  json::set_default(*spec, "failedJobsHistoryLimit", Value(1), allocator);
  default_template(json::child(json::child(*spec, "jobTemplate", allocator), "spec", allocator),
                   allocator);
}

bool is_externally_accessible(const Value& spec) {
  const std::string_view type = json::text(spec, "type");
  const Value* addresses = json::find(spec, "externalIPs");
  return type == "NodePort" || type == "LoadBalancer" ||
         (type == "ClusterIP" && addresses != nullptr && addresses->IsArray() &&
          !addresses->Empty());
}

void default_service(Value& service, Allocator& allocator) {
  Value* spec = json::find(service, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "sessionAffinity", "None", allocator);
  if (json::text(*spec, "sessionAffinity") == "None") json::erase(*spec, "sessionAffinityConfig");
  if (json::text(*spec, "sessionAffinity") == "ClientIP") {
    constexpr int kThreeHours = 10800;
    Value& config = json::child(*spec, "sessionAffinityConfig", allocator);
    json::set_default(json::child(config, "clientIP", allocator), "timeoutSeconds",
                      Value(kThreeHours), allocator);
  }
  json::set_default(*spec, "type", "ClusterIP", allocator);
  const std::string type(json::text(*spec, "type"));
  if (is_externally_accessible(*spec))
    json::set_default(*spec, "externalTrafficPolicy", "Cluster", allocator);
  if (type == "LoadBalancer")
    set_if_absent(*spec, "allocateLoadBalancerNodePorts", true, allocator);
  if (type != "ExternalName")
    json::set_default(*spec, "internalTrafficPolicy", "Cluster", allocator);
  json::for_each(*spec, "ports", [&](Value& port) {
    if (!port.IsObject()) return;
    json::set_default(port, "protocol", "TCP", allocator);
    if (const Value* number = json::find(port, "port"); number != nullptr && number->IsInt())
      json::set_default(port, "targetPort", Value(number->GetInt()), allocator);
    if (const Value* target = json::find(port, "targetPort");
        target != nullptr && ((target->IsInt() && target->GetInt() == 0) ||
                              (target->IsString() && target->GetStringLength() == 0))) {
      if (const Value* number = json::find(port, "port"); number != nullptr && number->IsInt())
        json::set(port, "targetPort", Value(number->GetInt()), allocator);
    }
  });
}

/// An address of a load balancer is that of packets, unless it is said to be a proxy's.
void default_service_status(Value& service, Allocator& allocator) {
  Value* spec = json::find(service, "spec");
  Value* status = json::find(service, "status");
  if (spec == nullptr || json::text(*spec, "type") != "LoadBalancer" || status == nullptr ||
      !status->IsObject())
    return;
  Value* balancer = json::find(*status, "loadBalancer");
  if (balancer == nullptr || !balancer->IsObject()) return;
  json::for_each(*balancer, "ingress", [&](Value& one) {
    if (one.IsObject() && !json::text(one, "ip").empty())
      json::set_default(one, "ipMode", "VIP", allocator);
  });
}

void default_namespace_status(Value& ns, Allocator& allocator) {
  Value& status = json::child(ns, "status", allocator);
  if (json::text(status, "phase").empty()) json::set(status, "phase", "Active", allocator);
}

/// Of a volume, or a claim.
void default_volume_status(Value& volume, Allocator& allocator) {
  Value& status = json::child(volume, "status", allocator);
  if (json::text(status, "phase").empty()) json::set(status, "phase", "Pending", allocator);
}

void default_namespace(Value& ns, Allocator& allocator) {
  Value& metadata = json::child(ns, "metadata", allocator);
  const std::string name(json::text(metadata, "name"));
  if (name.empty()) return;
  json::set(json::child(metadata, "labels", allocator), "kubernetes.io/metadata.name", name,
            allocator);
}

void default_secret(Value& secret, Allocator& allocator) {
  json::set_default(secret, "type", "Opaque", allocator);
  // stringData is for writing only.
  Value* plain = json::find(secret, "stringData");
  if (plain == nullptr) return;
  if (plain->IsObject() && !plain->ObjectEmpty()) {
    Value texts = std::move(*plain);
    Value& data = json::child(secret, "data", allocator);
    for (const auto& [name, value] : texts.GetObject()) {
      if (value.IsString())
        json::set(data, json::text_of(name), encode_base64(json::text_of(value)), allocator);
    }
  }
  json::erase(secret, "stringData");
}

void default_autoscaler(Value& autoscaler, Allocator& allocator) {
  Value* spec = json::find(autoscaler, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "minReplicas", Value(1), allocator);
  if (Value* behavior = json::find(*spec, "behavior"); behavior != nullptr && behavior->IsObject())
    default_behavior(*behavior, allocator);
  // Without a measure it is the CPU.
  constexpr int kPercent = 80;
  if (json::text(autoscaler, "apiVersion") == "autoscaling/v1") {
    json::set_default(*spec, "targetCPUUtilizationPercentage", Value(kPercent), allocator);
    json::set_default(json::child(autoscaler, "status", allocator), "currentReplicas", Value(0),
                      allocator);
    return;
  }
  const Value* metrics = json::find(*spec, "metrics");
  if (metrics != nullptr && metrics->IsArray() && !metrics->Empty()) return;
  Value metric = json::object();
  json::set(metric, "type", "Resource", allocator);
  Value& resource = json::child(metric, "resource", allocator);
  json::set(resource, "name", "cpu", allocator);
  Value& target = json::child(resource, "target", allocator);
  json::set(target, "type", "Utilization", allocator);
  json::set(target, "averageUtilization", Value(kPercent), allocator);
  Value list = array();
  list.PushBack(metric, allocator);
  json::set(*spec, "metrics", std::move(list), allocator);
}

void default_resource_claim(Value& claim, Allocator& allocator) {
  if (Value* spec = json::find(claim, "spec"); spec != nullptr && spec->IsObject())
    default_device_requests(*spec, allocator);
}

void default_resource_claim_template(Value& of_claims, Allocator& allocator) {
  if (Value* spec = json::find(of_claims, "spec"); spec != nullptr && spec->IsObject())
    default_resource_claim(*spec, allocator);
}

void default_api_service(Value& service, Allocator& allocator) {
  Value* spec = json::find(service, "spec");
  Value* reference = spec == nullptr ? nullptr : json::find(*spec, "service");
  if (reference != nullptr && reference->IsObject())
    json::set_default(*reference, "port", Value(443), allocator);
}

void default_flow_schema(Value& schema, Allocator& allocator) {
  constexpr int kPrecedence = 1000;
  Value& spec = json::child(schema, "spec", allocator);
  if (json::integer(spec, "matchingPrecedence", 0) == 0)
    json::set(spec, "matchingPrecedence", Value(kPrecedence), allocator);
}

void default_priority_level(Value& level, Allocator& allocator) {
  Value& spec = json::child(level, "spec", allocator);
  const auto member = [](Value& of, const char* name) {
    Value* found = json::find(of, name);
    return found != nullptr && found->IsObject() ? found : nullptr;
  };
  if (Value* exempt = member(spec, "exempt")) {
    for (const char* field : {"nominalConcurrencyShares", "lendablePercent"})
      json::set_default(*exempt, field, Value(0), allocator);
  }
  Value* limited = member(spec, "limited");
  if (limited == nullptr) return;
  json::set_default(*limited, "nominalConcurrencyShares", Value(30), allocator);
  json::set_default(*limited, "lendablePercent", Value(0), allocator);
  Value* response = member(*limited, "limitResponse");
  Value* queuing = response == nullptr ? nullptr : member(*response, "queuing");
  if (queuing == nullptr) return;
  const auto number = [&](const char* field, int value) {
    if (json::integer(*queuing, field, 0) == 0) json::set(*queuing, field, Value(value), allocator);
  };
  number("queues", 64);
  number("handSize", 8);
  number("queueLengthLimit", 50);
}

void default_node_status(Value& node, Allocator& allocator) {
  Value* status = json::find(node, "status");
  const Value* capacity = status == nullptr ? nullptr : json::find(*status, "capacity");
  if (capacity == nullptr || !capacity->IsObject()) return;
  Value all = json::deep_copy(*capacity, allocator);
  const Value* allocatable = json::find(*status, "allocatable");
  if (allocatable == nullptr || !allocatable->IsObject() || allocatable->ObjectEmpty())
    json::set(*status, "allocatable", std::move(all), allocator);
}

void default_node(Value& node, Allocator& allocator) {
  if (Value* spec = json::find(node, "spec"); spec != nullptr && spec->IsObject()) {
    // One address range, and all of them: the first is the one.
    const std::string range(json::text(*spec, "podCIDR"));
    Value* ranges = json::find(*spec, "podCIDRs");
    const bool several = ranges != nullptr && ranges->IsArray() && !ranges->Empty();
    if (!range.empty() && (!several || ranges->Size() == 1)) {
      Value one = array();
      one.PushBack(json::copy_text(range, allocator), allocator);
      json::set(*spec, "podCIDRs", std::move(one), allocator);
    } else if (range.empty() && several && (*ranges)[0].IsString()) {
      json::set(*spec, "podCIDR", std::string(json::text_of((*ranges)[0])), allocator);
    }
  }
  default_node_status(node, allocator);
}

void default_endpoints(Value& endpoints, Allocator& allocator) {
  json::for_each(endpoints, "subsets", [&](Value& subset) {
    json::for_each(subset, "ports", [&](Value& port) {
      if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
    });
  });
}

void default_endpoint_slice(Value& slice, Allocator& allocator) {
  json::for_each(slice, "ports", [&](Value& port) {
    if (!port.IsObject()) return;
    if (json::find(port, "name") == nullptr) json::set(port, "name", "", allocator);
    json::set_default(port, "protocol", "TCP", allocator);
  });
}

void default_ingress_class(Value& ingress_class, Allocator& allocator) {
  Value* spec = json::find(ingress_class, "spec");
  Value* parameters = spec == nullptr ? nullptr : json::find(*spec, "parameters");
  if (parameters == nullptr || !parameters->IsObject()) return;
  const Value* scope = json::find(*parameters, "scope");
  if (scope == nullptr || scope->IsNull())  // "" is refused
    json::set(*parameters, "scope", Value("Cluster"), allocator);
}

void default_network_policy(Value& policy, Allocator& allocator) {
  Value* spec = json::find(policy, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  for (const char* direction : {"ingress", "egress"}) {
    json::for_each(*spec, direction, [&](Value& rule) {
      json::for_each(rule, "ports", [&](Value& port) {
        if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
      });
    });
  }
  const Value* types = json::find(*spec, "policyTypes");
  if (types != nullptr && types->IsArray() && !types->Empty()) return;
  Value both = array();
  both.PushBack(Value("Ingress"), allocator);
  const Value* egress = json::find(*spec, "egress");
  if (egress != nullptr && egress->IsArray() && !egress->Empty())
    both.PushBack(Value("Egress"), allocator);
  json::set(*spec, "policyTypes", std::move(both), allocator);
}

void default_limit_range(Value& range, Allocator& allocator) {
  Value* spec = json::find(range, "spec");
  if (spec == nullptr) return;
  json::for_each(*spec, "limits", [&](Value& limit) {
    if (!limit.IsObject() || json::text(limit, "type") != "Container") return;
    const auto fill = [&](const char* from, const char* to) {
      const Value* known = json::find(limit, from);
      if (known == nullptr || !known->IsObject() || known->ObjectEmpty()) return;
      Value copy = json::deep_copy(*known, allocator);
      Value& target = json::child(limit, to, allocator);
      for (auto& member : copy.GetObject())
        json::set_default(target, json::text_of(member.name),
                          json::deep_copy(member.value, allocator), allocator);
    };
    fill("max", "default");
    fill("default", "defaultRequest");
    fill("min", "defaultRequest");
  });
}

void default_priority_class(Value& priority, Allocator& allocator) {
  json::set_default(priority, "preemptionPolicy", "PreemptLowerPriority", allocator);
}

void default_storage_class(Value& storage_class, Allocator& allocator) {
  json::set_default(storage_class, "reclaimPolicy", "Delete", allocator);
  json::set_default(storage_class, "volumeBindingMode", "Immediate", allocator);
}

void default_csi_driver(Value& driver, Allocator& allocator) {
  Value* spec = json::find(driver, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  set_if_absent(*spec, "attachRequired", true, allocator);
  for (const char* field :
       {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"})
    set_if_absent(*spec, field, false, allocator);
  json::set_default(*spec, "fsGroupPolicy", "ReadWriteOnceWithFSType", allocator);
  const Value* modes = json::find(*spec, "volumeLifecycleModes");
  if (modes == nullptr || !modes->IsArray() || modes->Empty()) {
    Value persistent = array();
    persistent.PushBack(Value("Persistent"), allocator);
    json::set(*spec, "volumeLifecycleModes", std::move(persistent), allocator);
  }
}

void default_role_binding(Value& binding, Allocator& allocator) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  if (Value* role = json::find(binding, "roleRef"); role != nullptr && role->IsObject())
    json::set_default(*role, "apiGroup", kGroup, allocator);
  json::for_each(binding, "subjects", [&](Value& subject) {
    const std::string_view kind = json::text(subject, "kind");
    if (kind == "User" || kind == "Group")
      json::set_default(subject, "apiGroup", kGroup, allocator);
  });
}

void default_webhooks(Value& configuration, Allocator& allocator) {
  json::for_each(configuration, "webhooks", [&](Value& hook) {
    if (!hook.IsObject()) return;
    constexpr int kTimeout = 10;
    json::set_default(hook, "failurePolicy", "Fail", allocator);
    json::set_default(hook, "timeoutSeconds", Value(kTimeout), allocator);
    default_match(hook, "rules", allocator);
    default_service_port(hook, allocator);
  });
}

void default_admission_policy(Value& policy, Allocator& allocator) {
  if (Value* spec = json::find(policy, "spec"); spec != nullptr && spec->IsObject())
    json::set_default(*spec, "failurePolicy", "Fail", allocator);
  default_policy_match(policy, "matchConstraints", allocator);
}

void default_admission_policy_binding(Value& binding, Allocator& allocator) {
  default_policy_match(binding, "matchResources", allocator);
}

void default_mutating_webhooks(Value& configuration, Allocator& allocator) {
  default_webhooks(configuration, allocator);
  json::for_each(configuration, "webhooks", [&](Value& hook) {
    if (hook.IsObject()) json::set_default(hook, "reinvocationPolicy", "Never", allocator);
  });
}

void default_persistent_volume(Value& volume, Allocator& allocator) {
  Value* spec = json::find(volume, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "persistentVolumeReclaimPolicy", "Retain", allocator);
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
  default_volume_source(*spec, allocator);
}

void default_persistent_volume_claim(Value& claim, Allocator& allocator) {
  Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
}

void default_custom_resource_definition(Value& definition, Allocator& allocator) {
  Value* spec = json::find(definition, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  Value& names = json::child(*spec, "names", allocator);
  std::string lower(json::text(names, "kind"));
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!lower.empty()) {
    json::set_default(names, "singular", lower, allocator);
    json::set_default(names, "listKind", std::string(json::text(names, "kind")) + "List",
                      allocator);
  }
  Value& conversion = json::child(*spec, "conversion", allocator);
  json::set_default(conversion, "strategy", "None", allocator);
  if (Value* webhook = json::find(conversion, "webhook")) default_service_port(*webhook, allocator);
}

}  // namespace lookout::apiserver::resources
