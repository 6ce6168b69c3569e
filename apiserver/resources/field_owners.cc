#include "apiserver/resources/field_owners.h"

#include <chrono>
#include <utility>

#include "lookout/api/detail/type_table.h"

namespace lookout::apiserver::resources {
namespace {

using fields::FieldSchema;

FieldSchema schema_of(const api::GroupVersionKind& kind) {
  const auto type = api::detail::Type::of_kind(kind.group, kind.version, kind.kind);
  return type ? FieldSchema::of(*type) : FieldSchema();
}

FieldSchema schema_of(const ServedResource& resource) {
  if (!resource.custom) return schema_of(resource.type.gvk());
  return FieldSchema::of_custom_resource(resource.schema ? resource.schema.body() : api::Value());
}

fields::FieldManager from_now_on(std::string manager, fields::ObjectType type) {
  return {
      std::move(type), std::move(manager),
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now())};
}

}  // namespace

fields::FieldManager field_manager(std::string manager, std::shared_ptr<const ResourceTable> table,
                                   const ServedResourcePtr& resource,
                                   std::string_view subresource) {
  const api::Resource& type = resource->type;
  auto serves = [table = std::move(table), resource](std::string_view api_version) {
    const std::size_t slash = api_version.find('/');
    const bool has_group = slash != std::string_view::npos;
    const std::string_view group = has_group ? api_version.substr(0, slash) : std::string_view();
    const std::string_view version = has_group ? api_version.substr(slash + 1) : api_version;
    return group == resource->type.group &&
           table->find(group, version, resource->type.plural) != nullptr;
  };
  return from_now_on(std::move(manager), {.kind = type.gvk(),
                                          .schema = schema_of(*resource),
                                          .ownable = fields::OwnableFields::of(
                                              type.group, type.plural, subresource,
                                              resource->custom, resource->has_status()),
                                          .subresource = std::string(subresource),
                                          .serves = std::move(serves)});
}

fields::FieldManager field_manager(std::string manager, const api::GroupVersionKind& kind,
                                   std::string subresource) {
  return from_now_on(std::move(manager), {.kind = kind,
                                          .schema = schema_of(kind),
                                          .ownable = {},
                                          .subresource = std::move(subresource),
                                          .serves = nullptr});
}

}  // namespace lookout::apiserver::resources
