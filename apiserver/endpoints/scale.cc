#include "apiserver/endpoints/scale.h"

#include <fmt/format.h>

#include <utility>

#include "lookout/api/labels.h"
#include "lookout/api/validation.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Object;
using api::StatusError;
using api::Value;

Value at(const Object& object, const std::vector<std::string>& path) {
  Value value = object.body();
  for (const std::string& name : path) value = value[name];
  return value;
}

/// A selector as text, from whatever form the resource has it in.
std::string selector_text(Value selector) {
  if (selector.is_string()) return std::string(selector.as_string());
  if (!selector.is_object()) return "";
  try {
    const bool structured =
        selector.contains("matchLabels") || selector.contains("matchExpressions");
    if (structured) return api::labels::from(k8s::meta::v1::LabelSelector(selector)).to_string();
    // A plain map, as replication controllers have it.
    std::vector<api::labels::Requirement> requirements;
    for (const auto& [key, value] : selector.members()) {
      std::vector<std::string> values{std::string(value.as_string())};
      requirements.emplace_back(std::string(key), api::labels::Operator::kEquals,
                                std::move(values));
    }
    return api::labels::Selector(std::move(requirements)).to_string();
  } catch (const api::SelectorError&) {
    return "";
  }
}

}  // namespace

Object scale_of(const resources::ServedResource& resource, const Object& object) {
  json::Document scale(rapidjson::kObjectType);
  auto& allocator = scale.GetAllocator();
  json::set(scale, "kind", "Scale", allocator);
  json::set(scale, "apiVersion", "autoscaling/v1", allocator);
  json::Value& metadata = json::child(scale, "metadata", allocator);
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const std::string_view text = object["metadata"][field].as_string();
    if (!text.empty()) json::set(metadata, field, text, allocator);
  }
  const resources::ScalePaths& paths = *resource.scale;
  json::Value& spec = json::child(scale, "spec", allocator);
  if (const auto replicas = at(object, paths.spec_replicas).to_int())
    json::set(spec, "replicas", json::Value(*replicas), allocator);
  json::Value& status = json::child(scale, "status", allocator);
  json::set(status, "replicas", json::Value(at(object, paths.status_replicas).as_int()), allocator);
  if (!paths.selector.empty()) {
    const std::string selector = selector_text(at(object, paths.selector));
    if (!selector.empty()) json::set(status, "selector", selector, allocator);
  }
  return Object::from(scale);
}

resources::Store::Change scale_change(const resources::ServedResourcePtr& resource,
                                      resources::Store::Change change) {
  return [resource, change = std::move(change)](const Object& present) {
    const Object scale = change(scale_of(*resource, present));
    if (!scale.kind().empty() && scale.kind() != "Scale") {
      throw StatusError::bad_request(fmt::format(
          "{0} in version \"{1}\" cannot be handled as a Scale: converting ({1}.{0}) to "
          "(autoscaling.Scale): unknown conversion",
          scale.kind(), scale.gvk().version));
    }
    if (scale.name() != present.name()) {
      throw StatusError::bad_request(
          fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                      scale.name(), present.name()));
    }
    const std::int64_t replicas = scale["spec"]["replicas"].as_int();
    if (replicas < 0) {
      throw StatusError::invalid("autoscaling", "Scale", present.name(),
                                 {api::validation::invalid("spec.replicas", replicas,
                                                           "must be greater than or equal to 0")});
    }
    json::Document document = present.to_document();
    auto& allocator = document.GetAllocator();
    json::Value* place = &document;
    const auto& path = resource->scale->spec_replicas;
    for (std::size_t i = 0; i + 1 < path.size(); ++i)
      place = &json::child(*place, path[i], allocator);
    if (!path.empty()) json::set(*place, path.back(), json::Value(replicas), allocator);
    // Whose version the client has seen.
    json::set(
        json::child(document, "metadata", allocator), "resourceVersion",
        scale.resource_version().empty() ? present.resource_version() : scale.resource_version(),
        allocator);
    return Object::from(document);
  };
}

}  // namespace lookout::apiserver::endpoints
