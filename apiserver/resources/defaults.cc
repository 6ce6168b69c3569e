#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/conversion.h"
#include "apiserver/resources/pod_defaults.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;

json::Value array() { return json::Value(rapidjson::kArrayType); }

void set_if_absent(json::Value& object_, std::string_view name, bool value, Allocator& allocator) {
  json::set_default(object_, name, json::Value(value), allocator);
}

/// spec.template of a workload.
void default_template(json::Value& spec, Allocator& allocator) {
  default_pod_spec(json::child(json::child(spec, "template", allocator), "spec", allocator),
                   allocator);
}

/// The spec of a workload, with the defaults of its template; null if there is none.
json::Value* workload_spec(json::Value& workload, Allocator& allocator) {
  json::Value* spec = json::find(workload, "spec");
  if (spec == nullptr || !spec->IsObject()) return nullptr;
  default_template(*spec, allocator);
  return spec;
}

/// The labels of an object default to those of its template.
void default_labels(json::Value& object_, const json::Value& spec, Allocator& allocator) {
  const json::Value* pod = json::find(spec, "template");
  const json::Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const json::Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels == nullptr) return;
  json::Value& own = json::child(object_, "metadata", allocator);
  const json::Value* present = json::find(own, "labels");
  if (present == nullptr || present->IsNull())
    json::set(own, "labels", json::deep_copy(*labels, allocator), allocator);
}

/// The default port of the service in a webhook's clientConfig.
void default_service_port(json::Value& webhook, Allocator& allocator) {
  constexpr int kPort = 443;
  json::Value* client = json::find(webhook, "clientConfig");
  json::Value* service = client == nullptr ? nullptr : json::find(*client, "service");
  if (service != nullptr && service->IsObject())
    json::set_default(*service, "port", json::Value(kPort), allocator);
}

/// The rules of a webhook or a policy.
void default_match(json::Value& match, const char* rules, Allocator& allocator) {
  json::set_default(match, "matchPolicy", "Equivalent", allocator);
  json::set_default(match, "namespaceSelector", json::object(), allocator);
  json::set_default(match, "objectSelector", json::object(), allocator);
  json::for_each(match, rules, [&](json::Value& rule) {
    if (rule.IsObject()) json::set_default(rule, "scope", "*", allocator);
  });
}

/// `name`: the member of the spec with the match resources.
void default_policy_match(json::Value& object, const char* name, Allocator& allocator) {
  json::Value* spec = json::find(object, "spec");
  json::Value* match = spec == nullptr ? nullptr : json::find(*spec, name);
  if (match == nullptr || !match->IsObject()) return;
  default_match(*match, "resourceRules", allocator);
  json::for_each(*match, "excludeResourceRules", [&](json::Value& rule) {
    if (rule.IsObject()) json::set_default(rule, "scope", "*", allocator);
  });
}

/// The defaults of an autoscaler's scaling rules.
void default_behavior(json::Value& behavior, Allocator& allocator) {
  constexpr int kPeriod = 15;
  for (const bool up : {true, false}) {
    json::Value& scaling = json::child(behavior, up ? "scaleUp" : "scaleDown", allocator);
    if (up) json::set_default(scaling, "stabilizationWindowSeconds", json::Value(0), allocator);
    json::set_default(scaling, "selectPolicy", "Max", allocator);
    const json::Value* present = json::find(scaling, "policies");
    if (present != nullptr && present->IsArray()) continue;
    json::Value policies = array();
    const auto add = [&](const char* type, int value) {
      json::Value policy = json::object();
      json::set(policy, "type", type, allocator);
      json::set(policy, "value", json::Value(value), allocator);
      json::set(policy, "periodSeconds", json::Value(kPeriod), allocator);
      policies.PushBack(policy, allocator);
    };
    if (up) add("Pods", 4);
    add("Percent", 100);
    json::set(scaling, "policies", std::move(policies), allocator);
  }
}

/// A request is for one device by default.
void default_device_requests(json::Value& spec, Allocator& allocator) {
  const auto one = [&](json::Value& request) {
    if (!request.IsObject()) return;
    json::set_default(request, "allocationMode", "ExactCount", allocator);
    if (json::text(request, "allocationMode") == "ExactCount" &&
        json::integer(request, "count", 0) == 0)
      json::set(request, "count", json::Value(1), allocator);
  };
  json::Value* devices = json::find(spec, "devices");
  if (devices == nullptr || !devices->IsObject()) return;
  json::for_each(*devices, "requests", [&](json::Value& request) {
    if (json::Value* exactly = json::find(request, "exactly")) one(*exactly);
    json::for_each(request, "firstAvailable", one);
  });
}

}  // namespace

void default_pod_template(json::Value& object_, Allocator& allocator) {
  default_template(object_, allocator);
}

void default_deployment(json::Value& deployment, Allocator& allocator) {
  json::Value* spec = workload_spec(deployment, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", json::Value(1), allocator);
  json::Value& strategy = json::child(*spec, "strategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    json::Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", json::Value("25%"), allocator);
    json::set_default(rolling, "maxSurge", json::Value("25%"), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", json::Value(10), allocator);
  json::set_default(*spec, "progressDeadlineSeconds", json::Value(600), allocator);
}

void default_replica_set(json::Value& set, Allocator& allocator) {
  json::Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", json::Value(1), allocator);
}

void default_replication_controller(json::Value& controller, Allocator& allocator) {
  json::Value* spec = json::find(controller, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  // The template may be missing; validation rejects this.
  if (json::find(*spec, "template") != nullptr) default_template(*spec, allocator);
  json::set_default(*spec, "replicas", json::Value(1), allocator);
  default_labels(controller, *spec, allocator);
  const json::Value* pod = json::find(*spec, "template");
  const json::Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const json::Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels != nullptr)
    json::set_default(*spec, "selector", json::deep_copy(*labels, allocator), allocator);
}

void default_stateful_set(json::Value& set, Allocator& allocator) {
  json::Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", json::Value(1), allocator);
  json::set_default(*spec, "podManagementPolicy", "OrderedReady", allocator);
  json::Value& strategy = json::child(*spec, "updateStrategy", allocator);
  if (json::text(strategy, "type").empty()) {
    json::set(strategy, "type", "RollingUpdate", allocator);
    json::child(strategy, "rollingUpdate", allocator);
  }
  // A strategy that sets only the type is unchanged.
  if (json::Value* rolling = json::find(strategy, "rollingUpdate"); rolling != nullptr) {
    if (json::text(strategy, "type") == "RollingUpdate" && rolling->IsObject())
      json::set_default(*rolling, "partition", json::Value(0), allocator);
    // The feature gate of maxUnavailable is disabled.
    json::erase(*rolling, "maxUnavailable");
  }
  json::Value& retention = json::child(*spec, "persistentVolumeClaimRetentionPolicy", allocator);
  json::set_default(retention, "whenDeleted", "Retain", allocator);
  json::set_default(retention, "whenScaled", "Retain", allocator);
  json::set_default(*spec, "revisionHistoryLimit", json::Value(10), allocator);
  json::for_each(*spec, "volumeClaimTemplates", [&](json::Value& claim) {
    if (!claim.IsObject()) return;
    json::set(claim, "kind", "PersistentVolumeClaim", allocator);
    json::set(claim, "apiVersion", "v1", allocator);
    json::set_default(json::child(claim, "spec", allocator), "volumeMode", "Filesystem", allocator);
    json::set_default(json::child(claim, "status", allocator), "phase", "Pending", allocator);
  });
}

void default_daemon_set(json::Value& set, Allocator& allocator) {
  json::Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::Value& strategy = json::child(*spec, "updateStrategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    json::Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", json::Value(1), allocator);
    json::set_default(rolling, "maxSurge", json::Value(0), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", json::Value(10), allocator);
  // The default is set before field ownership is computed, so the client owns the annotation.
  json::Value& metadata = json::child(set, "metadata", allocator);
  json::set_default(json::child(metadata, "annotations", allocator), kTemplateGeneration, "0",
                    allocator);
}

void default_job(json::Value& job, Allocator& allocator) {
  json::Value* spec = workload_spec(job, allocator);
  if (spec == nullptr) return;
  const bool sized =
      json::find(*spec, "completions") != nullptr || json::find(*spec, "parallelism") != nullptr;
  if (!sized) json::set(*spec, "completions", json::Value(1), allocator);
  json::set_default(*spec, "parallelism", json::Value(1), allocator);
  // With a limit for each index, the job itself has no limit.
  constexpr int kNoLimit = 2147483647;
  const bool limits_indexes = json::find(*spec, "backoffLimitPerIndex") != nullptr;
  json::set_default(*spec, "backoffLimit", json::Value(limits_indexes ? kNoLimit : 6), allocator);
  json::set_default(*spec, "completionMode", "NonIndexed", allocator);
  json::set_default(*spec, "suspend", json::Value(false), allocator);
  json::set_default(*spec, "manualSelector", json::Value(false), allocator);
  if (json::Value* failure = json::find(*spec, "podFailurePolicy"); failure != nullptr) {
    json::for_each(*failure, "rules", [&](json::Value& rule) {
      json::for_each(rule, "onPodConditions", [&](json::Value& condition) {
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

void default_cron_job(json::Value& cron_job, Allocator& allocator) {
  json::Value* spec = json::find(cron_job, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "concurrencyPolicy", "Allow", allocator);
  json::set_default(*spec, "suspend", json::Value(false), allocator);
  json::set_default(*spec, "successfulJobsHistoryLimit", json::Value(3), allocator);
  json::set_default(*spec, "failedJobsHistoryLimit", json::Value(1), allocator);
  default_template(json::child(json::child(*spec, "jobTemplate", allocator), "spec", allocator),
                   allocator);
}

bool is_externally_accessible(const json::Value& spec) {
  const std::string_view type = json::text(spec, "type");
  const json::Value* addresses = json::find(spec, "externalIPs");
  return type == "NodePort" || type == "LoadBalancer" ||
         (type == "ClusterIP" && addresses != nullptr && addresses->IsArray() &&
          !addresses->Empty());
}

void default_service(json::Value& service, Allocator& allocator) {
  json::Value* spec = json::find(service, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "sessionAffinity", "None", allocator);
  if (json::text(*spec, "sessionAffinity") == "None") json::erase(*spec, "sessionAffinityConfig");
  if (json::text(*spec, "sessionAffinity") == "ClientIP") {
    constexpr int kThreeHours = 10800;
    json::Value& config = json::child(*spec, "sessionAffinityConfig", allocator);
    json::set_default(json::child(config, "clientIP", allocator), "timeoutSeconds",
                      json::Value(kThreeHours), allocator);
  }
  json::set_default(*spec, "type", "ClusterIP", allocator);
  const std::string type(json::text(*spec, "type"));
  if (is_externally_accessible(*spec))
    json::set_default(*spec, "externalTrafficPolicy", "Cluster", allocator);
  if (type == "LoadBalancer")
    set_if_absent(*spec, "allocateLoadBalancerNodePorts", true, allocator);
  if (type != "ExternalName")
    json::set_default(*spec, "internalTrafficPolicy", "Cluster", allocator);
  json::for_each(*spec, "ports", [&](json::Value& port) {
    if (!port.IsObject()) return;
    json::set_default(port, "protocol", "TCP", allocator);
    if (const json::Value* number = json::find(port, "port"); number != nullptr && number->IsInt())
      json::set_default(port, "targetPort", json::Value(number->GetInt()), allocator);
    if (const json::Value* target = json::find(port, "targetPort");
        target != nullptr && ((target->IsInt() && target->GetInt() == 0) ||
                              (target->IsString() && target->GetStringLength() == 0))) {
      if (const json::Value* number = json::find(port, "port");
          number != nullptr && number->IsInt())
        json::set(port, "targetPort", json::Value(number->GetInt()), allocator);
    }
  });
}

/// The default ipMode of load balancer addresses is VIP.
void default_service_status(json::Value& service, Allocator& allocator) {
  json::Value* spec = json::find(service, "spec");
  json::Value* status = json::find(service, "status");
  if (spec == nullptr || json::text(*spec, "type") != "LoadBalancer" || status == nullptr ||
      !status->IsObject())
    return;
  json::Value* balancer = json::find(*status, "loadBalancer");
  if (balancer == nullptr || !balancer->IsObject()) return;
  json::for_each(*balancer, "ingress", [&](json::Value& one) {
    if (one.IsObject() && !json::text(one, "ip").empty())
      json::set_default(one, "ipMode", "VIP", allocator);
  });
}

void default_namespace_status(json::Value& ns, Allocator& allocator) {
  json::Value& status = json::child(ns, "status", allocator);
  if (json::text(status, "phase").empty()) json::set(status, "phase", "Active", allocator);
}

/// For volumes and claims.
void default_volume_status(json::Value& volume, Allocator& allocator) {
  json::Value& status = json::child(volume, "status", allocator);
  if (json::text(status, "phase").empty()) json::set(status, "phase", "Pending", allocator);
}

void default_namespace(json::Value& ns, Allocator& allocator) {
  json::Value& metadata = json::child(ns, "metadata", allocator);
  const std::string name(json::text(metadata, "name"));
  if (name.empty()) return;
  json::set(json::child(metadata, "labels", allocator), "kubernetes.io/metadata.name", name,
            allocator);
}

void default_secret(json::Value& secret, Allocator& allocator) {
  json::set_default(secret, "type", "Opaque", allocator);
  // stringData is write-only.
  json::Value* plain = json::find(secret, "stringData");
  if (plain == nullptr) return;
  if (plain->IsObject() && !plain->ObjectEmpty()) {
    json::Value texts = std::move(*plain);
    json::Value& data = json::child(secret, "data", allocator);
    for (const auto& [name, value] : texts.GetObject()) {
      if (value.IsString())
        json::set(data, json::text_of(name), encode_base64(json::text_of(value)), allocator);
    }
  }
  json::erase(secret, "stringData");
}

void default_autoscaler(json::Value& autoscaler, Allocator& allocator) {
  json::Value* spec = json::find(autoscaler, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "minReplicas", json::Value(1), allocator);
  if (json::Value* behavior = json::find(*spec, "behavior");
      behavior != nullptr && behavior->IsObject())
    default_behavior(*behavior, allocator);
  // The default metric is the CPU utilization.
  constexpr int kPercent = 80;
  if (json::text(autoscaler, "apiVersion") == "autoscaling/v1") {
    if (!has_annotated_metrics(autoscaler, allocator))
      json::set_default(*spec, "targetCPUUtilizationPercentage", json::Value(kPercent), allocator);
    json::set_default(json::child(autoscaler, "status", allocator), "currentReplicas",
                      json::Value(0), allocator);
    return;
  }
  drop_autoscaler_annotations(autoscaler);
  const json::Value* metrics = json::find(*spec, "metrics");
  if (metrics != nullptr && metrics->IsArray() && !metrics->Empty()) return;
  json::Value metric = json::object();
  json::set(metric, "type", "Resource", allocator);
  json::Value& resource = json::child(metric, "resource", allocator);
  json::set(resource, "name", "cpu", allocator);
  json::Value& target = json::child(resource, "target", allocator);
  json::set(target, "type", "Utilization", allocator);
  json::set(target, "averageUtilization", json::Value(kPercent), allocator);
  json::Value list = array();
  list.PushBack(metric, allocator);
  json::set(*spec, "metrics", std::move(list), allocator);
}

void default_resource_claim(json::Value& claim, Allocator& allocator) {
  if (json::Value* spec = json::find(claim, "spec"); spec != nullptr && spec->IsObject())
    default_device_requests(*spec, allocator);
}

void default_resource_claim_template(json::Value& of_claims, Allocator& allocator) {
  if (json::Value* spec = json::find(of_claims, "spec"); spec != nullptr && spec->IsObject())
    default_resource_claim(*spec, allocator);
}

void default_api_service(json::Value& service, Allocator& allocator) {
  json::Value* spec = json::find(service, "spec");
  json::Value* reference = spec == nullptr ? nullptr : json::find(*spec, "service");
  if (reference != nullptr && reference->IsObject())
    json::set_default(*reference, "port", json::Value(443), allocator);
}

void default_flow_schema(json::Value& schema, Allocator& allocator) {
  constexpr int kPrecedence = 1000;
  json::Value& spec = json::child(schema, "spec", allocator);
  if (json::integer(spec, "matchingPrecedence", 0) == 0)
    json::set(spec, "matchingPrecedence", json::Value(kPrecedence), allocator);
}

void default_priority_level(json::Value& level, Allocator& allocator) {
  json::Value& spec = json::child(level, "spec", allocator);
  const auto member = [](json::Value& of, const char* name) {
    json::Value* found = json::find(of, name);
    return found != nullptr && found->IsObject() ? found : nullptr;
  };
  if (json::Value* exempt = member(spec, "exempt")) {
    for (const char* field : {"nominalConcurrencyShares", "lendablePercent"})
      json::set_default(*exempt, field, json::Value(0), allocator);
  }
  json::Value* limited = member(spec, "limited");
  if (limited == nullptr) return;
  json::set_default(*limited, "nominalConcurrencyShares", json::Value(30), allocator);
  json::set_default(*limited, "lendablePercent", json::Value(0), allocator);
  json::Value* response = member(*limited, "limitResponse");
  json::Value* queuing = response == nullptr ? nullptr : member(*response, "queuing");
  if (queuing == nullptr) return;
  const auto number = [&](const char* field, int value) {
    if (json::integer(*queuing, field, 0) == 0)
      json::set(*queuing, field, json::Value(value), allocator);
  };
  number("queues", 64);
  number("handSize", 8);
  number("queueLengthLimit", 50);
}

void default_node_status(json::Value& node, Allocator& allocator) {
  json::Value* status = json::find(node, "status");
  const json::Value* capacity = status == nullptr ? nullptr : json::find(*status, "capacity");
  if (capacity == nullptr || !capacity->IsObject()) return;
  json::Value all = json::deep_copy(*capacity, allocator);
  const json::Value* allocatable = json::find(*status, "allocatable");
  if (allocatable == nullptr || !allocatable->IsObject() || allocatable->ObjectEmpty())
    json::set(*status, "allocatable", std::move(all), allocator);
}

void default_node(json::Value& node, Allocator& allocator) {
  if (json::Value* spec = json::find(node, "spec"); spec != nullptr && spec->IsObject()) {
    // podCIDR equals the first element of podCIDRs: sets the missing one.
    const std::string range(json::text(*spec, "podCIDR"));
    json::Value* ranges = json::find(*spec, "podCIDRs");
    const bool several = ranges != nullptr && ranges->IsArray() && !ranges->Empty();
    if (!range.empty() && (!several || ranges->Size() == 1)) {
      json::Value one = array();
      one.PushBack(json::copy_text(range, allocator), allocator);
      json::set(*spec, "podCIDRs", std::move(one), allocator);
    } else if (range.empty() && several && (*ranges)[0].IsString()) {
      json::set(*spec, "podCIDR", std::string(json::text_of((*ranges)[0])), allocator);
    }
  }
  default_node_status(node, allocator);
}

void default_endpoints(json::Value& endpoints, Allocator& allocator) {
  json::for_each(endpoints, "subsets", [&](json::Value& subset) {
    json::for_each(subset, "ports", [&](json::Value& port) {
      if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
    });
  });
}

void default_endpoint_slice(json::Value& slice, Allocator& allocator) {
  json::for_each(slice, "ports", [&](json::Value& port) {
    if (!port.IsObject()) return;
    if (json::find(port, "name") == nullptr) json::set(port, "name", "", allocator);
    json::set_default(port, "protocol", "TCP", allocator);
  });
}

void default_ingress_class(json::Value& ingress_class, Allocator& allocator) {
  json::Value* spec = json::find(ingress_class, "spec");
  json::Value* parameters = spec == nullptr ? nullptr : json::find(*spec, "parameters");
  if (parameters == nullptr || !parameters->IsObject()) return;
  const json::Value* scope = json::find(*parameters, "scope");
  if (scope == nullptr || scope->IsNull())  // "" is rejected
    json::set(*parameters, "scope", json::Value("Cluster"), allocator);
}

void default_network_policy(json::Value& policy, Allocator& allocator) {
  json::Value* spec = json::find(policy, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  for (const char* direction : {"ingress", "egress"}) {
    json::for_each(*spec, direction, [&](json::Value& rule) {
      json::for_each(rule, "ports", [&](json::Value& port) {
        if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
      });
    });
  }
  const json::Value* types = json::find(*spec, "policyTypes");
  if (types != nullptr && types->IsArray() && !types->Empty()) return;
  json::Value both = array();
  both.PushBack(json::Value("Ingress"), allocator);
  const json::Value* egress = json::find(*spec, "egress");
  if (egress != nullptr && egress->IsArray() && !egress->Empty())
    both.PushBack(json::Value("Egress"), allocator);
  json::set(*spec, "policyTypes", std::move(both), allocator);
}

void default_limit_range(json::Value& range, Allocator& allocator) {
  json::Value* spec = json::find(range, "spec");
  if (spec == nullptr) return;
  json::for_each(*spec, "limits", [&](json::Value& limit) {
    if (!limit.IsObject() || json::text(limit, "type") != "Container") return;
    const auto fill = [&](const char* from, const char* to) {
      const json::Value* known = json::find(limit, from);
      if (known == nullptr || !known->IsObject() || known->ObjectEmpty()) return;
      json::Value copy = json::deep_copy(*known, allocator);
      json::Value& target = json::child(limit, to, allocator);
      for (auto& member : copy.GetObject())
        json::set_default(target, json::text_of(member.name),
                          json::deep_copy(member.value, allocator), allocator);
    };
    fill("max", "default");
    fill("default", "defaultRequest");
    fill("min", "defaultRequest");
  });
}

void default_priority_class(json::Value& priority, Allocator& allocator) {
  json::set_default(priority, "preemptionPolicy", "PreemptLowerPriority", allocator);
}

void default_storage_class(json::Value& storage_class, Allocator& allocator) {
  json::set_default(storage_class, "reclaimPolicy", "Delete", allocator);
  json::set_default(storage_class, "volumeBindingMode", "Immediate", allocator);
}

void default_csi_driver(json::Value& driver, Allocator& allocator) {
  json::Value* spec = json::find(driver, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  set_if_absent(*spec, "attachRequired", true, allocator);
  for (const char* field :
       {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"})
    set_if_absent(*spec, field, false, allocator);
  json::set_default(*spec, "fsGroupPolicy", "ReadWriteOnceWithFSType", allocator);
  const json::Value* modes = json::find(*spec, "volumeLifecycleModes");
  if (modes == nullptr || !modes->IsArray() || modes->Empty()) {
    json::Value persistent = array();
    persistent.PushBack(json::Value("Persistent"), allocator);
    json::set(*spec, "volumeLifecycleModes", std::move(persistent), allocator);
  }
}

void default_role_binding(json::Value& binding, Allocator& allocator) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  if (json::Value* role = json::find(binding, "roleRef"); role != nullptr && role->IsObject())
    json::set_default(*role, "apiGroup", kGroup, allocator);
  json::for_each(binding, "subjects", [&](json::Value& subject) {
    const std::string_view kind = json::text(subject, "kind");
    if (kind == "User" || kind == "Group")
      json::set_default(subject, "apiGroup", kGroup, allocator);
  });
}

void default_webhooks(json::Value& configuration, Allocator& allocator) {
  json::for_each(configuration, "webhooks", [&](json::Value& hook) {
    if (!hook.IsObject()) return;
    constexpr int kTimeout = 10;
    json::set_default(hook, "failurePolicy", "Fail", allocator);
    json::set_default(hook, "timeoutSeconds", json::Value(kTimeout), allocator);
    default_match(hook, "rules", allocator);
    default_service_port(hook, allocator);
  });
}

void default_admission_policy(json::Value& policy, Allocator& allocator) {
  if (json::Value* spec = json::find(policy, "spec"); spec != nullptr && spec->IsObject())
    json::set_default(*spec, "failurePolicy", "Fail", allocator);
  default_policy_match(policy, "matchConstraints", allocator);
}

void default_admission_policy_binding(json::Value& binding, Allocator& allocator) {
  default_policy_match(binding, "matchResources", allocator);
}

void default_mutating_webhooks(json::Value& configuration, Allocator& allocator) {
  default_webhooks(configuration, allocator);
  json::for_each(configuration, "webhooks", [&](json::Value& hook) {
    if (hook.IsObject()) json::set_default(hook, "reinvocationPolicy", "Never", allocator);
  });
}

void default_persistent_volume(json::Value& volume, Allocator& allocator) {
  json::Value* spec = json::find(volume, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "persistentVolumeReclaimPolicy", "Retain", allocator);
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
  default_volume_source(*spec, allocator);
}

void default_persistent_volume_claim(json::Value& claim, Allocator& allocator) {
  json::Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
}

void default_custom_resource_definition(json::Value& definition, Allocator& allocator) {
  json::Value* spec = json::find(definition, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::Value& names = json::child(*spec, "names", allocator);
  std::string lower(json::text(names, "kind"));
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!lower.empty()) {
    json::set_default(names, "singular", lower, allocator);
    json::set_default(names, "listKind", std::string(json::text(names, "kind")) + "List",
                      allocator);
  }
  json::Value& conversion = json::child(*spec, "conversion", allocator);
  json::set_default(conversion, "strategy", "None", allocator);
  if (json::Value* webhook = json::find(conversion, "webhook"))
    default_service_port(*webhook, allocator);
}

}  // namespace lookout::apiserver::resources
