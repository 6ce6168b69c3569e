// Changes that the server makes to a pod before it stores it: those of kube-apiserver's default
// admission plugins and of its pod strategy (k8s.io/kubernetes/pkg/registry/core/pod).
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/conditions.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;

constexpr int kNodeCritical = 2000001000;
constexpr int kClusterCritical = 2000000000;

void tolerate(json::Value& spec, std::string_view taint, Allocator& allocator) {
  constexpr int kSeconds = 300;
  const json::Value* present = json::find(spec, "tolerations");
  if (present == nullptr || !present->IsArray())
    json::set(spec, "tolerations", json::Value(rapidjson::kArrayType), allocator);
  json::Value& tolerations = *json::find(spec, "tolerations");
  for (const json::Value& toleration : tolerations.GetArray()) {
    const std::string_view key = json::text(toleration, "key");
    const std::string_view effect = json::text(toleration, "effect");
    if ((key == taint || key.empty()) && (effect == "NoExecute" || effect.empty())) return;
  }
  json::Value toleration(rapidjson::kObjectType);
  json::set(toleration, "key", taint, allocator);
  json::set(toleration, "operator", "Exists", allocator);
  json::set(toleration, "effect", "NoExecute", allocator);
  json::set(toleration, "tolerationSeconds", json::Value(kSeconds), allocator);
  tolerations.PushBack(toleration, allocator);
}

/// The amount of a resource; null if it is absent or zero.
const json::Value* amount_of(const json::Value& container, const char* kind, const char* resource) {
  const json::Value* resources = json::find(container, "resources");
  const json::Value* amounts = resources == nullptr ? nullptr : json::find(*resources, kind);
  const json::Value* amount = amounts == nullptr ? nullptr : json::find(*amounts, resource);
  return amount == nullptr || !amount->IsString() || json::text_of(*amount) == "0" ? nullptr
                                                                                   : amount;
}

/// Only CPU and memory determine the QoS class.
bool has_resources(const json::Value& container) {
  for (const char* kind : {"requests", "limits"}) {
    for (const char* resource : {"cpu", "memory"}) {
      if (amount_of(container, kind, resource) != nullptr) return true;
    }
  }
  return false;
}

/// Whether a container has limits for CPU and memory, equal to its requests.
bool is_guaranteed(const json::Value& container) {
  for (const char* resource : {"cpu", "memory"}) {
    const json::Value* limit = amount_of(container, "limits", resource);
    if (limit == nullptr) return false;
    const json::Value* request = amount_of(container, "requests", resource);
    if (request == nullptr || *request == *limit) continue;
    // Equal amounts may have different units.
    if (api::Quantity::parse(json::text_of(*request)) !=
        api::Quantity::parse(json::text_of(*limit)))
      return false;
  }
  return true;
}

/// Calls `visit(container)` for all containers.
template <class Visit>
void each_container(json::Value& spec, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
    json::for_each(spec, list, visit);
}

/// Sets the condition PodScheduled to False if the pod has scheduling gates.
void say_that_it_waits(const json::Value& spec, json::Value& status, Allocator& allocator) {
  const json::Value* gates = json::find(spec, "schedulingGates");
  if (gates == nullptr || !gates->IsArray() || gates->Empty()) return;
  set_condition(status,
                {"PodScheduled", false, "SchedulingGated",
                 "Scheduling is blocked due to non-empty scheduling gates"},
                allocator);
}

/// Adds a requirement to the label selector of `term` for each key in its list `keys`, with the value
/// of the pod's label.
void select_own_labels(json::Value& term, const char* keys, std::string_view relation,
                       const json::Value& labels, Allocator& allocator) {
  json::Value* selector = json::find(term, "labelSelector");
  if (selector == nullptr || !selector->IsObject()) return;
  json::for_each(term, keys, [&](const json::Value& key) {
    const json::Value* own = key.IsString() ? json::find(labels, json::text_of(key)) : nullptr;
    if (own == nullptr || !own->IsString()) return;
    json::set_default(*selector, "matchExpressions", json::Value(rapidjson::kArrayType), allocator);
    json::Value values(rapidjson::kArrayType);
    values.PushBack(json::deep_copy(*own, allocator), allocator);
    json::Value requirement(rapidjson::kObjectType);
    json::set(requirement, "key", json::deep_copy(key, allocator), allocator);
    json::set(requirement, "operator", relation, allocator);
    json::set(requirement, "values", std::move(values), allocator);
    json::find(*selector, "matchExpressions")->PushBack(requirement, allocator);
  });
}

/// Merges matchLabelKeys and mismatchLabelKeys into the selectors next to them.
void apply_label_keys(json::Value& spec, const json::Value& labels, Allocator& allocator) {
  const auto apply = [&](json::Value& term) {
    select_own_labels(term, "matchLabelKeys", "In", labels, allocator);
    select_own_labels(term, "mismatchLabelKeys", "NotIn", labels, allocator);
  };
  if (json::Value* affinity = json::find(spec, "affinity")) {
    for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
      json::Value* terms = json::find(*affinity, kind);
      if (terms == nullptr) continue;
      json::for_each(*terms, "preferredDuringSchedulingIgnoredDuringExecution",
                     [&](json::Value& term) {
                       if (json::Value* inner = json::find(term, "podAffinityTerm")) apply(*inner);
                     });
      json::for_each(*terms, "requiredDuringSchedulingIgnoredDuringExecution", apply);
    }
  }
  json::for_each(spec, "topologySpreadConstraints", apply);
}

/// Converts AppArmor annotations to fields of containers without such a field.
void apply_annotated_profiles(const json::Value& annotations, json::Value& spec,
                              Allocator& allocator) {
  const json::Value* os = json::find(spec, "os");
  if (os != nullptr && json::text(*os, "name") == "windows") return;
  const json::Value* context = json::find(spec, "securityContext");
  const json::Value* of_pod =
      context == nullptr ? nullptr : json::find(*context, "appArmorProfile");
  each_container(spec, [&](json::Value& container) {
    const std::string key = std::string(kAppArmorAnnotation).append(json::text(container, "name"));
    const json::Value* annotation = json::find(annotations, key);
    if (annotation == nullptr || !annotation->IsString()) return;
    const json::Value* own = json::find(container, "securityContext");
    if (own != nullptr && json::find(*own, "appArmorProfile") != nullptr) return;
    const auto [type, path] = profile_of_annotation(json::text_of(*annotation));
    if (type.empty()) return;
    json::Value profile(rapidjson::kObjectType);
    json::set(profile, "type", type, allocator);
    if (!path.empty()) json::set(profile, "localhostProfile", path, allocator);
    if (of_pod != nullptr && *of_pod == profile) return;
    json::set(json::child(container, "securityContext", allocator), "appArmorProfile",
              std::move(profile), allocator);
  });
}

}  // namespace

std::string_view quality_of_service(const json::Value& spec) {
  // Pod-level resources override those of the containers.
  if (has_resources(spec)) return is_guaranteed(spec) ? "Guaranteed" : "Burstable";
  bool guaranteed = true;
  bool best_effort = true;
  for (const char* list : {"containers", "initContainers"}) {
    json::for_each(spec, list, [&](const json::Value& container) {
      if (has_resources(container)) best_effort = false;
      if (!is_guaranteed(container)) guaranteed = false;
    });
  }
  return best_effort ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

void tolerate_lost_nodes(json::Value& spec, Allocator& allocator) {
  tolerate(spec, "node.kubernetes.io/not-ready", allocator);
  tolerate(spec, "node.kubernetes.io/unreachable", allocator);
}

void prepare_pod(json::Value& pod, Allocator& allocator) {
  json::Value& status = json::child(pod, "status", allocator);
  json::set(status, "phase", "Pending", allocator);
  json::Value* spec = json::find(pod, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set(status, "qosClass", quality_of_service(*spec), allocator);
  say_that_it_waits(*spec, status, allocator);
  const json::Value* metadata = json::find(pod, "metadata");
  const json::Value none(rapidjson::kObjectType);
  const auto of_metadata = [&](const char* part) -> const json::Value& {
    const json::Value* found = metadata == nullptr ? nullptr : json::find(*metadata, part);
    return found == nullptr ? none : *found;
  };
  apply_label_keys(*spec, of_metadata("labels"), allocator);
  apply_annotated_profiles(of_metadata("annotations"), *spec, allocator);
  // The effect of kube-apiserver's default admission plugins: DefaultTolerationSeconds, and
  // Priority (unless priority_admission.h has applied it).
  tolerate_lost_nodes(*spec, allocator);
  const std::string_view priority = json::text(*spec, "priorityClassName");
  const int value = priority == "system-node-critical"      ? kNodeCritical
                    : priority == "system-cluster-critical" ? kClusterCritical
                                                            : 0;
  json::set_default(*spec, "priority", json::Value(value), allocator);
  json::set_default(*spec, "preemptionPolicy", "PreemptLowerPriority", allocator);
}

/// Restores the plugins' defaults if a change omits them.
void prepare_pod_update(json::Value& pod, const json::Value& old, Allocator& allocator) {
  json::Value* spec = json::find(pod, "spec");
  const json::Value* before = json::find(old, "spec");
  if (spec == nullptr || !spec->IsObject() || before == nullptr) return;
  tolerate_lost_nodes(*spec, allocator);
  for (const char* field : {"priority", "preemptionPolicy"}) {
    if (json::find(*spec, field) == nullptr) json::take(*spec, *before, field, allocator);
  }
}

}  // namespace lookout::apiserver::resources
