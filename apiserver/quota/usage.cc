#include "apiserver/quota/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "apiserver/json.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::quota {
namespace {

using api::Object;
using api::Quantity;

constexpr std::string_view kStorageClassSuffix = ".storageclass.storage.k8s.io/";
/// Resources of which quotas may also count requests and limits.
constexpr std::array<std::string_view, 3> kCompute = {"cpu", "memory", "ephemeral-storage"};
/// Resources that have their own names in quotas, in addition to "count/...".
constexpr std::array<std::string_view, 7> kNamed = {"configmaps",     "persistentvolumeclaims",
                                                    "pods",           "replicationcontrollers",
                                                    "resourcequotas", "secrets",
                                                    "services"};

template <class List>
bool has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Quantity whole(std::int64_t number) { return *Quantity::parse(std::to_string(number)); }

std::string count_name(const api::Resource& type) {
  return type.group.empty() ? "count/" + type.plural
                            : fmt::format("count/{}.{}", type.plural, type.group);
}

/// Whether a container resource is an extended one: "example.com/dongle".
bool is_extended(std::string_view name) {
  return name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos && !name.starts_with("requests.");
}

bool concerns_pods(std::string_view name) {
  constexpr std::string_view kRequests = "requests.";
  constexpr std::string_view kLimits = "limits.";
  if (name == "pods" || has(kCompute, name) || name.starts_with("hugepages-")) return true;
  if (name.starts_with(kLimits)) return has(kCompute, name.substr(kLimits.size()));
  if (!name.starts_with(kRequests)) return false;
  const std::string_view rest = name.substr(kRequests.size());
  return has(kCompute, rest) || rest.starts_with("hugepages-") || is_extended(rest);
}

/// Whether a terminating pod has exceeded its grace period.
bool is_overdue(const Object& pod) {
  const api::Value metadata = pod["metadata"];
  const api::Value grace = metadata["deletionGracePeriodSeconds"];
  const auto deleted = api::parse_time(metadata["deletionTimestamp"].as_string());
  return deleted && grace.is_number() &&
         std::chrono::system_clock::now() > *deleted + std::chrono::seconds(grace.as_int());
}

bool is_finished(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed" || is_overdue(pod);
}

/// The names of requests and limits in a quota: `cpu`, `requests.cpu`, `limits.cpu`, ...
ResourceList compute_usage(const ResourceList& requests, const ResourceList& limits) {
  ResourceList out;
  for (const auto& [name, amount] : requests) {
    const bool huge = name.starts_with("hugepages-");
    if (has(kCompute, name) || huge) out.emplace(name, amount);
    if (has(kCompute, name) || huge || is_extended(name)) out.emplace("requests." + name, amount);
  }
  for (const auto& [name, amount] : limits) {
    if (has(kCompute, name)) out.emplace("limits." + name, amount);
  }
  return out;
}

void add_pod(const Object& pod, ResourceList& usage) {
  // A pod that has ended, or should have, uses only its object count.
  if (is_finished(pod)) return;
  const api::Value spec = pod["spec"];
  ResourceList requests = pod_resources(spec, "requests", pod["status"]);
  ResourceList limits = pod_resources(spec, "limits", pod["status"]);
  const ResourceList overhead = resource_list(spec["overhead"]);
  add(requests, overhead);
  for (auto& [name, amount] : limits) {
    if (const auto more = overhead.find(name); more != overhead.end())
      amount = amount + more->second;
  }
  add(usage, compute_usage(requests, limits));
  usage.emplace("pods", whole(1));
}

/// The annotation is older than the field, and takes precedence.
std::string storage_class_of(const Object& claim) {
  const api::Value annotation =
      claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  return std::string(annotation.exists() ? annotation.as_string()
                                         : claim["spec"]["storageClassName"].as_string());
}

/// The requested size of a claim, or the size that an expansion has allocated if that is larger;
/// nullopt if the claim requests no storage.
std::optional<Quantity> size_of(const Object& claim) {
  const ResourceList requests = resource_list(claim["spec"]["resources"]["requests"]);
  const auto asked = requests.find("storage");
  if (asked == requests.end()) return std::nullopt;
  Quantity size = asked->second;
  const ResourceList allocated = resource_list(claim["status"]["allocatedResources"]);
  if (const auto has = allocated.find("storage"); has != allocated.end())
    size = std::max(size, has->second);
  // Quotas have whole bytes.
  const Quantity rounded = whole(size.value());
  return rounded > size ? rounded : size;
}

void add_claim(const Object& claim, ResourceList& usage) {
  usage.emplace("persistentvolumeclaims", whole(1));
  const std::string storage_class = storage_class_of(claim);
  if (!storage_class.empty())
    usage.emplace(fmt::format("{}{}persistentvolumeclaims", storage_class, kStorageClassSuffix),
                  whole(1));
  const std::optional<Quantity> size = size_of(claim);
  if (!size) return;
  usage.emplace("requests.storage", *size);
  if (!storage_class.empty())
    usage.emplace(fmt::format("{}{}requests.storage", storage_class, kStorageClassSuffix), *size);
}

void add_service(const Object& service, ResourceList& usage) {
  usage.emplace("services", whole(1));
  const api::Value spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  std::int64_t ports = 0;
  if (type == "NodePort") {
    ports = static_cast<std::int64_t>(spec["ports"].size());
  } else if (type == "LoadBalancer") {
    const bool allocates = spec["allocateLoadBalancerNodePorts"].as_bool(true);
    for (const api::Value port : spec["ports"].elements()) {
      if (allocates || port["nodePort"].as_int() != 0) ++ports;
    }
  }
  usage.emplace("services.nodeports", whole(ports));
  usage.emplace("services.loadbalancers", whole(type == "LoadBalancer" ? 1 : 0));
}

bool is_best_effort(const Object& pod) {
  const std::string_view quality = pod["status"]["qosClass"].as_string();
  if (!quality.empty()) return quality == "BestEffort";
  const json::Document document = pod.to_document();
  const json::Value* spec = json::find(document, "spec");
  return spec == nullptr || resources::quality_of_service(*spec) == "BestEffort";
}

bool has_priority_class(api::Value requirement, std::string_view name) {
  const std::string_view op = requirement["operator"].as_string();
  if (op == "Exists") return !name.empty();
  if (op == "DoesNotExist") return name.empty();
  bool listed = false;
  for (const api::Value value : requirement["values"].elements())
    listed = listed || value.as_string() == name;
  if (op == "In") return !name.empty() && listed;
  return op == "NotIn" && !listed;
}

bool holds(std::string_view scope, api::Value requirement, const Object& pod) {
  const api::Value spec = pod["spec"];
  const api::Value deadline = spec["activeDeadlineSeconds"];
  const bool ends = deadline.is_number() && deadline.as_int() >= 0;
  if (scope == "Terminating") return ends;
  if (scope == "NotTerminating") return !ends;
  if (scope == "BestEffort") return is_best_effort(pod);
  if (scope == "NotBestEffort") return !is_best_effort(pod);
  if (scope != "PriorityClass") return false;
  const std::string_view name = spec["priorityClassName"].as_string();
  // In `scopes`, which has no operators, the scope means Exists.
  return requirement.exists() ? has_priority_class(requirement, name) : !name.empty();
}

}  // namespace

bool is_counted(const api::Resource& type) { return type.namespaced && type.plural != "events"; }

bool concerns(const api::Resource& type, std::string_view name) {
  if (!is_counted(type)) return false;
  if (name == count_name(type)) return true;
  if (!type.group.empty()) return false;
  if (type.plural == "pods") return concerns_pods(name);
  if (type.plural == "services")
    return name == "services" || name == "services.nodeports" || name == "services.loadbalancers";
  if (type.plural == "persistentvolumeclaims") {
    return name == type.plural || name == "requests.storage" ||
           name.find(kStorageClassSuffix) != std::string_view::npos;
  }
  return name == type.plural && has(kNamed, name);
}

ResourceList usage_of(const api::Resource& type, const Object& object) {
  ResourceList out;
  if (!is_counted(type)) return out;
  out.emplace(count_name(type), whole(1));
  if (is_core(type, "pods")) {
    add_pod(object, out);
  } else if (is_core(type, "persistentvolumeclaims")) {
    add_claim(object, out);
  } else if (is_core(type, "services")) {
    add_service(object, out);
  } else if (type.group.empty() && has(kNamed, type.plural)) {
    out.emplace(type.plural, whole(1));
  }
  return out;
}

bool is_in_scope(const api::Resource& type, const Object& quota, const Object& object) {
  const api::Value spec = quota["spec"];
  const api::Value selectors = spec["scopeSelector"]["matchExpressions"];
  if (spec["scopes"].empty() && selectors.empty()) return true;
  if (!is_core(type, "pods")) return false;
  for (const api::Value scope : spec["scopes"].elements()) {
    if (!holds(scope.as_string(), {}, object)) return false;
  }
  for (const api::Value selector : selectors.elements()) {
    if (!holds(selector["scopeName"].as_string(), selector, object)) return false;
  }
  return true;
}

std::string missing_resources(const api::Resource& type, const Object& object,
                              const ResourceList& hard) {
  if (!is_core(type, "pods")) return {};
  // Pod-level resources replace those of each container.
  if (!object["spec"]["resources"].empty()) return {};
  constexpr std::array<std::string_view, 6> kRequired = {
      "cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"};
  std::map<std::string_view, std::set<std::string>> missing;
  for (const char* list : {"containers", "initContainers"}) {
    for (const api::Value container : object["spec"][list].elements()) {
      const api::Value resources = container["resources"];
      const ResourceList has_amounts =
          compute_usage(resource_list(resources["requests"]), resource_list(resources["limits"]));
      for (const std::string_view name : kRequired) {
        if (hard.contains(name) && !has_amounts.contains(name))
          missing[name].emplace(container["name"].as_string());
      }
    }
  }
  std::string out;
  for (const auto& [name, containers] : missing)
    out += fmt::format("{}{} for: {}", out.empty() ? "must specify " : "; ", name,
                       fmt::join(containers, ","));
  return out;
}

ResourceList masked(const ResourceList& usage, const ResourceList& hard) {
  ResourceList out;
  for (const auto& [name, amount] : usage) {
    if (hard.contains(name)) out.emplace(name, amount);
  }
  return out;
}

}  // namespace lookout::apiserver::quota
