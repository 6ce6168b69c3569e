#include "apiserver/quota/resource_list.h"

#include <algorithm>

namespace lookout::apiserver::quota {
namespace {

void raise(ResourceList& to, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const auto [found, is_new] = to.emplace(name, amount);
    if (!is_new) found->second = std::max(found->second, amount);
  }
}

bool is_infeasible(api::Value status) {
  for (const api::Value condition : status["conditions"].elements()) {
    if (condition["type"].as_string() == "PodResizePending")
      return condition["reason"].as_string() == "Infeasible";
  }
  return false;
}

/// The requests or limits (`part`) of a container. With the pod's status, during a resize: the larger
/// of the requested and the current amounts.
ResourceList amounts_of(api::Value container, std::string_view part, api::Value status) {
  ResourceList wanted = resource_list(container["resources"][part]);
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const api::Value one : status[list].elements()) {
      if (one["name"] != container["name"] || !one["resources"].exists()) continue;
      // Infeasible requests are not counted.
      if (is_infeasible(status)) wanted.clear();
      raise(wanted, resource_list(one["resources"][part]));
      if (part == "requests") raise(wanted, resource_list(one["allocatedResources"]));
      return wanted;
    }
  }
  return wanted;
}

}  // namespace

ResourceList resource_list(api::Value amounts) {
  ResourceList out;
  for (const auto& [name, value] : amounts.members()) {
    const std::string text =
        value.is_string() ? std::string(value.as_string()) : std::string(value.to_json());
    if (const auto amount = api::Quantity::parse(text)) out.emplace(name, *amount);
  }
  return out;
}

void add(ResourceList& to, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const auto [found, is_new] = to.emplace(name, amount);
    if (!is_new) found->second = found->second + amount;
  }
}

ResourceList resources_of_containers(api::Value spec, std::string_view part, api::Value status) {
  ResourceList out;
  for (const api::Value container : spec["containers"].elements())
    add(out, amounts_of(container, part, status));
  // A restartable init container runs concurrently with all later containers.
  ResourceList beside;
  ResourceList init;
  for (const api::Value container : spec["initContainers"].elements()) {
    const bool goes_on = container["restartPolicy"].as_string() == "Always";
    ResourceList needed = amounts_of(container, part, goes_on ? status : api::Value());
    if (goes_on) {
      add(out, needed);
      add(beside, needed);
      needed = beside;
    } else {
      add(needed, beside);
    }
    raise(init, needed);
  }
  raise(out, init);
  return out;
}

ResourceList pod_resources(api::Value spec, std::string_view part, api::Value status) {
  ResourceList out = resources_of_containers(spec, part, status);
  for (auto& [name, amount] : resource_list(spec["resources"][part]))
    out.insert_or_assign(name, amount);
  return out;
}

}  // namespace lookout::apiserver::quota
