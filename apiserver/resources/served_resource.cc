#include "apiserver/resources/served_resource.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apiserver/resources/conversion.h"
#include "apiserver/resources/selectable_fields.h"
#include "apiserver/resources/storage_place.h"
#include "apiserver/resources/strategy.h"
#include "apiserver/resources/version_schemas.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/protobuf.h"

namespace lookout::apiserver::resources {
namespace {

using Strings = std::vector<std::string>;

/// The time to live of events, as in kube-apiserver.
constexpr std::chrono::hours kEventTtl{1};

/// Places in the storage that are not the name of the resource, for historical reasons.
struct Place {
  std::string_view group;
  std::string_view plural;
  std::string_view place;
};
constexpr std::array<Place, 7> kPlaces = {{
    {"", "replicationcontrollers", "controllers"},
    {"", "endpoints", "services/endpoints"},
    {"", "nodes", "minions"},
    {"", "services", "services/specs"},
    {"networking.k8s.io", "ingresses", "ingress"},
    {"apiextensions.k8s.io", "customresourcedefinitions",
     "apiextensions.k8s.io/customresourcedefinitions"},
    {"apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"},
}};

/// Subresources whose response has a different kind than the resource.
struct SubresourceKind {
  std::string_view resource;  // empty: of any
  std::string_view name;
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};
constexpr std::array<SubresourceKind, 10> kSubresourceKinds = {{
    {"", "scale", "autoscaling", "v1", "Scale"},
    {"pods", "binding", "", "v1", "Binding"},
    {"pods", "eviction", "policy", "v1", "Eviction"},
    {"pods", "attach", "", "v1", "PodAttachOptions"},
    {"pods", "exec", "", "v1", "PodExecOptions"},
    {"pods", "portforward", "", "v1", "PodPortForwardOptions"},
    {"pods", "proxy", "", "v1", "PodProxyOptions"},
    {"nodes", "proxy", "", "v1", "NodeProxyOptions"},
    {"services", "proxy", "", "v1", "ServiceProxyOptions"},
    {"serviceaccounts", "token", "authentication.k8s.io", "v1", "TokenRequest"},
}};

Strings subresource_verbs(std::string_view name) {
  if (name == "binding" || name == "eviction" || name == "token") return {"create"};
  if (name == "attach" || name == "exec" || name == "portforward") return {"create", "get"};
  if (name == "proxy") return {"create", "delete", "get", "patch", "update"};
  if (name == "log") return {"get"};
  if (name == "finalize") return {"update"};
  return {"get", "patch", "update"};
}

Subresource make_subresource(const api::ResourceInfo& info, std::string_view name) {
  Subresource out;
  out.name = name;
  out.verbs = subresource_verbs(name);
  out.kind = {std::string(info.group), std::string(info.version), std::string(info.kind)};
  for (const SubresourceKind& known : kSubresourceKinds) {
    if (known.name == name && (known.resource.empty() || known.resource == info.plural)) {
      out.kind = {std::string(known.group), std::string(known.version), std::string(known.kind)};
    }
  }
  return out;
}

std::optional<ScalePaths> scale_of(const api::ResourceInfo& info) {
  const auto subresources = api::split_list(info.subresources);
  if (std::find(subresources.begin(), subresources.end(), "scale") == subresources.end())
    return std::nullopt;
  return ScalePaths{{"spec", "replicas"}, {"status", "replicas"}, {"spec", "selector"}};
}

Strings strings(std::string_view comma_separated) {
  Strings out;
  for (const std::string_view one : api::split_list(comma_separated)) out.emplace_back(one);
  return out;
}

/// The categories, which are not in the resource facts.
Strings categories_of(const api::ResourceInfo& info) {
  if (info.group == "admissionregistration.k8s.io" || info.group == "apiextensions.k8s.io" ||
      info.group == "apiregistration.k8s.io")
    return {"api-extensions"};
  constexpr std::array<std::string_view, 10> kAll = {"pods",         "replicationcontrollers",
                                                     "services",     "daemonsets",
                                                     "deployments",  "replicasets",
                                                     "statefulsets", "cronjobs",
                                                     "jobs",         "horizontalpodautoscalers"};
  if (std::find(kAll.begin(), kAll.end(), info.plural) != kAll.end()) return {"all"};
  return {};
}

/// A converted object after decoding into Go's types: empty structures are present, and nulls and
/// empty strings are absent. An object with fields that the types do not have is unchanged.
api::Object as_typed(api::Object object) {
  std::string bytes;
  api::ProtobufEncoder encoder;
  if (!encoder.encode(object, bytes) || encoder.left_out() > 0) return object;
  api::Object typed = api::ProtobufDecoder().decode(bytes);
  return typed ? typed : object;
}

/// Kubernetes' message.
std::string deprecation_of(std::string_view plural) {
  if (plural == "endpoints")
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  if (plural == "componentstatuses") return "v1 ComponentStatus is deprecated in v1.19+";
  return {};
}

}  // namespace

api::Value value_at(const api::Object& object, const std::vector<std::string>& path) {
  api::Value value = object.body();
  for (const std::string& name : path) value = value[name];
  return value;
}

std::string_view place_of(const api::ResourceInfo& info) {
  const auto place = std::find_if(kPlaces.begin(), kPlaces.end(), [&](const Place& p) {
    return p.group == info.group && p.plural == info.plural;
  });
  return place == kPlaces.end() ? info.plural : place->place;
}

bool ServedResource::has_verb(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

const Subresource* ServedResource::find_subresource(std::string_view name) const {
  const auto found = std::find_if(subresources.begin(), subresources.end(),
                                  [&](const Subresource& s) { return s.name == name; });
  return found == subresources.end() ? nullptr : &*found;
}

api::Object ServedResource::to_storage(const api::Object& object) const {
  if (converting_storage != nullptr) return object;
  if (schemas != nullptr) return schemas->convert(object, storage_version);
  if (convert_to_storage != nullptr) return as_typed(convert_to_storage(object));
  return api::with_type(object, storage_version, type.kind);
}

api::Object ServedResource::from_storage(const api::Object& stored) const {
  if (converting_storage != nullptr) return stored;
  if (schemas != nullptr) return schemas->convert(schemas->read(stored), type.api_version());
  return convert_from_storage != nullptr ? convert_from_storage(stored)
                                         : api::with_type(stored, type.api_version(), type.kind);
}

ResourceTable::ResourceTable(std::vector<ServedResourcePtr> resources)
    : resources_(std::move(resources)) {
  for (const ServedResourcePtr& resource : resources_) {
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const ServedGroup& g) { return g.name == resource->type.group; });
    if (group == groups_.end()) group = groups_.insert(group, {resource->type.group, {}});
    auto& versions = group->versions;
    if (std::find(versions.begin(), versions.end(), resource->type.version) == versions.end())
      versions.push_back(resource->type.version);
  }
}

ServedResourcePtr ResourceTable::find(std::string_view group, std::string_view version,
                                      std::string_view plural) const {
  for (const ServedResourcePtr& resource : resources_) {
    if (resource->type.plural == plural && resource->type.group == group &&
        resource->type.version == version)
      return resource;
  }
  return nullptr;
}

const ServedGroup* ResourceTable::find_group(std::string_view name) const {
  const auto group = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const ServedGroup& g) { return g.name == name; });
  return group == groups_.end() ? nullptr : &*group;
}

bool ResourceTable::has_version(std::string_view group, std::string_view version) const {
  const ServedGroup* found = find_group(group);
  return found != nullptr && std::find(found->versions.begin(), found->versions.end(), version) !=
                                 found->versions.end();
}

std::vector<ServedResourcePtr> builtin_resources(storage::Backend& backend) {
  std::vector<ServedResourcePtr> out;
  for (const api::ResourceInfo& info : api::builtin_resources()) {
    auto resource = std::make_shared<ServedResource>();
    resource->type = api::Resource(info.type());
    resource->list_kind = std::string(info.kind) + "List";
    resource->singular = info.singular;
    resource->verbs = strings(info.verbs);
    resource->short_names = strings(info.short_names);
    resource->categories = categories_of(info);
    resource->storage_version = resource->type.api_version();
    for (const std::string_view name : api::split_list(info.subresources))
      resource->subresources.push_back(make_subresource(info, name));
    resource->scale = scale_of(info);
    resource->strategy = &strategy_for(info.group, info.plural);
    resource->printer = tables::Printer::of_builtin(info.group, info.plural);
    if (info.group == "events.k8s.io") {
      resource->storage_version = "v1";
      resource->convert_to_storage = core_event;
      resource->convert_from_storage = new_event;
    } else if (info.group == "autoscaling" && info.version == "v1") {
      resource->storage_version = "autoscaling/v2";
      resource->convert_to_storage = autoscaler_v2;
      resource->convert_from_storage = autoscaler_v1;
    }
    if (resource->has_verb("watch")) {
      resource->storage = &backend.resource(
          place_of(info), info.plural == "events" ? kEventTtl : std::chrono::seconds(0),
          resource->type.qualified_name());
    }
    if (info.group.empty()) resource->deprecation = deprecation_of(info.plural);
    add_selectable_fields(*resource);
    out.push_back(std::move(resource));
  }
  return out;
}

}  // namespace lookout::apiserver::resources
