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

ResourceList resources_of_containers(api::Value spec, std::string_view part) {
  ResourceList out;
  for (const api::Value container : spec["containers"].elements())
    add(out, resource_list(container["resources"][part]));
  // An init container that goes on runs beside all that begin after it.
  ResourceList beside;
  ResourceList init;
  for (const api::Value container : spec["initContainers"].elements()) {
    ResourceList needed = resource_list(container["resources"][part]);
    if (container["restartPolicy"].as_string() == "Always") {
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

ResourceList pod_resources(api::Value spec, std::string_view part) {
  ResourceList out = resources_of_containers(spec, part);
  for (auto& [name, amount] : resource_list(spec["resources"][part]))
    out.insert_or_assign(name, amount);
  return out;
}

}  // namespace lookout::apiserver::quota
