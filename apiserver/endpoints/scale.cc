#include "apiserver/endpoints/scale.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/fields/managed_fields.h"
#include "apiserver/names.h"
#include "lookout/api/labels.h"
#include "lookout/api/validation.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Value;

/// The resource's selector as text.
std::string selector_text(Value selector) {
  if (selector.is_string()) return std::string(selector.as_string());
  if (!selector.is_object()) return "";
  try {
    const bool structured =
        selector.contains("matchLabels") || selector.contains("matchExpressions");
    if (structured) return api::labels::from(k8s::meta::v1::LabelSelector(selector)).to_string();
    // A map, as in replication controllers.
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

/// Converts the owners of the replicas between the managedFields of an object, which have the
/// resource's path, and those of its Scale (k8s.io/apimachinery's managedfields.ScaleHandler).
class ScaleOwners {
 public:
  ScaleOwners(const resources::ResourceTable& table, const resources::ServedResource& resource,
              const Object& parent)
      : version_(resource.type.api_version()), parent_(managed_fields_of(parent)) {
    for (const auto& other : table.resources()) {
      const bool same =
          other->type.group == resource.type.group && other->type.plural == resource.type.plural;
      if (same && other->scale) paths_.emplace(other->type.api_version(), path_in(*other->scale));
    }
    // The definition may have changed since the request was routed.
    paths_.insert_or_assign(version_, path_in(*resource.scale));
  }

  Object with_managed_fields(const Object& scale) const {
    fields::ManagedFields managed;
    for (fields::Entry entry : parent_.entries()) {
      if (!owns_replicas(entry)) continue;
      entry.owner.api_version = kScaleVersion;
      entry.set = replicas_of_scale();
      // An updater may own the replicas in several versions.
      if (managed.find(entry.owner) == nullptr) managed.entries().push_back(std::move(entry));
    }
    json::Document document = scale.to_document();
    auto& allocator = document.GetAllocator();
    fields::set_managed_fields(document, managed.to_json(allocator), allocator);
    return Object::from(document);
  }

  /// `parent` with the owners from `scale` in its managedFields.
  Object take_over(const Object& scale, const Object& parent) const {
    fields::ManagedFields of_scale = managed_fields_of(scale);
    fields::ManagedFields managed;
    for (fields::Entry entry : parent_.entries()) {
      if (owns_replicas(entry)) {
        if (of_scale.find(entry.owner) == nullptr) {
          entry.set = entry.set.without(only(paths_.at(entry.owner.api_version)));
        } else {
          of_scale.remove(entry.owner);
        }
      }
      if (!entry.set.empty()) managed.entries().push_back(std::move(entry));
    }
    for (fields::Entry& entry : of_scale.entries()) {
      if (!entry.set.contains(replicas_path())) continue;
      // kube-apiserver does not keep the time.
      entry.time.reset();
      entry.owner.api_version = version_;
      entry.set = only(paths_.at(version_));
      managed.remove(entry.owner);
      managed.entries().push_back(std::move(entry));
    }
    json::Document document = parent.to_document();
    auto& allocator = document.GetAllocator();
    fields::set_managed_fields(document, managed.to_json(allocator), allocator);
    return Object::from(document);
  }

 private:
  using Path = std::vector<fields::PathElement>;
  static constexpr std::string_view kScaleVersion = "autoscaling/v1";

  static Path path_in(const resources::ScalePaths& scale) {
    Path out;
    for (const std::string& name : scale.spec_replicas)
      out.push_back(fields::PathElement::field(name));
    return out;
  }

  static fields::FieldSet only(const Path& path) {
    fields::FieldSet out;
    out.insert(path);
    return out;
  }

  bool owns_replicas(const fields::Entry& entry) const {
    const auto path = paths_.find(entry.owner.api_version);
    return path != paths_.end() && entry.set.contains(path->second);
  }

  /// Empty if they are malformed.
  static fields::ManagedFields managed_fields_of(const Object& object) {
    const json::Document document = object.to_document();
    const json::Value* entries = fields::managed_fields_of(document);
    auto managed = entries == nullptr ? std::nullopt : fields::ManagedFields::parse(*entries);
    return managed ? std::move(*managed) : fields::ManagedFields();
  }

  /// "spec.replicas" of the scale.
  static const Path& replicas_path() {
    static const Path kPath = {fields::PathElement::field("spec"),
                               fields::PathElement::field("replicas")};
    return kPath;
  }
  static fields::FieldSet replicas_of_scale() { return only(replicas_path()); }

  std::string version_;
  /// The path of the replicas in each version that has a scale.
  std::map<std::string, Path, std::less<>> paths_;
  fields::ManagedFields parent_;
};

/// A placeholder for missing replicas of a custom resource. A patch of its scale that does not change
/// this number is rejected.
constexpr std::int64_t kUnset = std::numeric_limits<std::int32_t>::min();

std::string name_of(const std::vector<std::string>& path) {
  return fmt::format(".{}", fmt::join(path, "."));
}

/// 0 for a built-in resource without replicas; nullopt for a custom one. Throws api::StatusError (500)
/// if a custom resource's value is not an integer.
std::optional<std::int64_t> replicas_of(const resources::ServedResource& resource,
                                        const Object& object) {
  const auto& path = resource.scale->spec_replicas;
  const Value replicas = resources::value_at(object, path);
  if (!resource.custom) return replicas.as_int();
  if (!replicas.exists()) return std::nullopt;
  if (const auto number = replicas.to_int()) return number;
  throw StatusError::internal_error(
      fmt::format("{} accessor error: the value is not an int64", name_of(path)));
}

Object make_scale(const resources::ServedResource& resource, const Object& object,
                  std::int64_t replicas) {
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
  // Go omits a zero here.
  if (replicas != 0) json::set(spec, "replicas", json::Value(replicas), allocator);
  json::Value& status = json::child(scale, "status", allocator);
  json::set(status, "replicas",
            json::Value(resources::value_at(object, paths.status_replicas).as_int()), allocator);
  if (!paths.selector.empty()) {
    const std::string selector = selector_text(resources::value_at(object, paths.selector));
    if (!selector.empty()) json::set(status, "selector", selector, allocator);
  }
  return Object::from(scale);
}

/// The changed Scale, with the client as the owner of the change.
Object owned(const Object& scale, const Object& before, const fields::FieldManager& owner) {
  json::Document document = scale.to_document();
  const json::Document live = before.to_document();
  owner.update(document, &live, document.GetAllocator());
  return Object::from(document);
}

}  // namespace

Object scale_of(const resources::ServedResource& resource, const Object& object) {
  return make_scale(resource, object, replicas_of(resource, object).value_or(0));
}

Object read_scale(const resources::ServedResource& resource, const Object& object) {
  const auto replicas = replicas_of(resource, object);
  if (!replicas) {
    throw StatusError::internal_error(fmt::format("the spec replicas field \"{}\" does not exist",
                                                  name_of(resource.scale->spec_replicas)));
  }
  return make_scale(resource, object, *replicas);
}

Object scaled(const resources::ServedResource& resource, const Object& object,
              const Object& scale) {
  if (scale.name() != object.name()) {
    throw StatusError::bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                    scale.name(), object.name()));
  }
  if (!scale.uid().empty() && scale.uid() != object.uid()) {
    throw StatusError::conflict(
        resource.type.group, resource.type.plural + "/scale", object.name(),
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                    scale.uid(), object.uid()));
  }
  const std::int64_t replicas = scale["spec"]["replicas"].as_int();
  if (replicas == kUnset) {
    throw StatusError::bad_request(fmt::format("the spec replicas field \"{}\" cannot be empty",
                                               name_of(resource.scale->spec_replicas)));
  }
  if (replicas < 0) {
    throw StatusError::invalid("autoscaling", "Scale", object.name(),
                               {api::validation::invalid("spec.replicas", replicas,
                                                         "must be greater than or equal to 0")});
  }
  json::Document document = object.to_document();
  auto& allocator = document.GetAllocator();
  json::Value* place = &document;
  const auto& path = resource.scale->spec_replicas;
  for (std::size_t i = 0; i + 1 < path.size(); ++i)
    place = &json::child(*place, path[i], allocator);
  if (!path.empty()) json::set(*place, path.back(), json::Value(replicas), allocator);
  // The client's version is that of the parent object.
  json::set(json::child(document, "metadata", allocator), "resourceVersion",
            scale.resource_version().empty() ? object.resource_version() : scale.resource_version(),
            allocator);
  return Object::from(document);
}

resources::Store::Change scale_change(std::shared_ptr<const resources::ResourceTable> table,
                                      const resources::ServedResourcePtr& resource,
                                      resources::Store::Change change,
                                      std::shared_ptr<const fields::FieldManager> owner,
                                      bool applies) {
  return [table = std::move(table), resource, change = std::move(change), owner = std::move(owner),
          applies](const Object& present) {
    const Object now =
        make_scale(*resource, present, replicas_of(*resource, present).value_or(kUnset));
    if (owner == nullptr) return scaled(*resource, present, change(now));
    const ScaleOwners owners(*table, *resource, present);
    const Object before = owners.with_managed_fields(now);
    const Object scale = change(before);
    const Object object = scaled(*resource, present, scale);
    return owners.take_over(applies ? scale : owned(scale, before, *owner), object);
  };
}

}  // namespace lookout::apiserver::endpoints
