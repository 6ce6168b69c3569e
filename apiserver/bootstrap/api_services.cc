#include "apiserver/bootstrap/api_services.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "apiserver/controllers/own_writes.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/storage/after_changes.h"

namespace lookout::apiserver::bootstrap {
namespace {

using json::Value;

/// The label of objects that the server manages: "onstart" or "true".
constexpr const char* kLabel = "kube-aggregator.kubernetes.io/automanaged";
constexpr std::string_view kOnStart = "onstart";
constexpr std::string_view kAlways = "true";

struct GroupVersion {
  std::string_view group;
  std::string_view version;
  /// The order of discovery: groups, and versions of a group.
  int group_priority;
  int version_priority;
};

constexpr GroupVersion kBuiltin[] = {
    {"", "v1", 18000, 1},
    {"admissionregistration.k8s.io", "v1", 16700, 15},
    {"apiextensions.k8s.io", "v1", 16700, 15},
    {"apps", "v1", 17800, 15},
    {"authentication.k8s.io", "v1", 17700, 15},
    {"authorization.k8s.io", "v1", 17600, 15},
    {"autoscaling", "v1", 17500, 15},
    {"autoscaling", "v2", 17500, 30},
    {"batch", "v1", 17400, 15},
    {"certificates.k8s.io", "v1", 17300, 15},
    {"coordination.k8s.io", "v1", 16500, 15},
    {"discovery.k8s.io", "v1", 16200, 15},
    {"events.k8s.io", "v1", 17750, 15},
    {"flowcontrol.apiserver.k8s.io", "v1", 16100, 21},
    {"networking.k8s.io", "v1", 17200, 15},
    {"node.k8s.io", "v1", 16300, 15},
    {"policy", "v1", 17100, 15},
    {"rbac.authorization.k8s.io", "v1", 17000, 15},
    {"resource.k8s.io", "v1", 16200, 21},
    {"scheduling.k8s.io", "v1", 16600, 15},
    {"storage.k8s.io", "v1", 16800, 15},
};
constexpr int kCustomGroupPriority = 1000;
constexpr int kCustomVersionPriority = 100;

Object service_of(const GroupVersion& served, std::string_view label) {
  Document document(rapidjson::kObjectType);
  Allocator& allocator = document.GetAllocator();
  json::set(document, "apiVersion", "apiregistration.k8s.io/v1", allocator);
  json::set(document, "kind", "APIService", allocator);
  Value& metadata = json::child(document, "metadata", allocator);
  json::set(metadata, "name", fmt::format("{}.{}", served.version, served.group), allocator);
  json::set(json::child(metadata, "labels", allocator), kLabel, label, allocator);
  Value& spec = json::child(document, "spec", allocator);
  if (!served.group.empty()) json::set(spec, "group", served.group, allocator);
  json::set(spec, "version", served.version, allocator);
  json::set(spec, "groupPriorityMinimum", Value(served.group_priority), allocator);
  json::set(spec, "versionPriority", Value(served.version_priority), allocator);
  return Object::from(document);
}

std::string_view label_of(const Object& service) {
  return service["metadata"]["labels"][kLabel].as_string();
}

/// `present` with the label and the spec of `wanted`; unchanged if it has them, or if it is not
/// managed by the server.
Object revised_service(const Object& present, const Object& wanted) {
  if (label_of(present).empty()) return present;
  Document document = present.to_document();
  const Document other = wanted.to_document();
  const Value* spec = json::find(document, "spec");
  const bool is_same = spec != nullptr && *spec == *json::find(other, "spec");
  if (is_same && label_of(present) == label_of(wanted)) return present;
  Allocator& allocator = document.GetAllocator();
  json::take(document, other, "spec", allocator);
  Value& metadata = *json::find(document, "metadata");
  json::set(json::child(metadata, "labels", allocator), kLabel, label_of(wanted), allocator);
  return Object::from(document);
}

}  // namespace

ApiServices::ApiServices(const controllers::Context& context)
    : context_(context),
      services_(context_.resources.table()->find("apiregistration.k8s.io", "v1", "apiservices")),
      definitions_(context_.resources.table()->find("apiextensions.k8s.io", "v1",
                                                    "customresourcedefinitions")) {}

Awaitable<void> ApiServices::settle_builtin() const {
  std::vector<Object> wanted;
  for (const GroupVersion& served : kBuiltin) wanted.push_back(service_of(served, kOnStart));
  co_await settle(std::move(wanted), kOnStart);
}

Awaitable<void> ApiServices::settle_custom() const {
  const std::vector<Object> definitions = co_await controllers::list_all(definitions_);
  std::vector<Object> wanted;
  for (const Object& definition : definitions) {
    const std::string_view group = definition["spec"]["group"].as_string();
    for (const api::Value version : definition["spec"]["versions"].elements()) {
      if (!version["served"].as_bool()) continue;
      wanted.push_back(service_of(
          {group, version["name"].as_string(), kCustomGroupPriority, kCustomVersionPriority},
          kAlways));
    }
  }
  co_await settle(std::move(wanted), kAlways);
}

Awaitable<void> ApiServices::settle(std::vector<Object> wanted, std::string_view label) const {
  controllers::KeptObjects kept;
  kept.resource = services_;
  kept.wanted = std::move(wanted);
  kept.revise = revised_service;
  kept.is_surplus = [label](const Object& service) { return label_of(service) == label; };
  return controllers::keep(context_, std::move(kept), controllers::kServerManager);
}

Awaitable<void> ApiServices::follow(resources::ServedResourcePtr resource) const {
  std::function<Awaitable<void>()> react = [this] { return settle_custom(); };
  co_await storage::after_changes(*resource->storage, std::move(react));
}

}  // namespace lookout::apiserver::bootstrap
