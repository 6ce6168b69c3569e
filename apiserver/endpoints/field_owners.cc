#include "apiserver/endpoints/field_owners.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "lookout/api/detail/type_table.h"

namespace lookout::apiserver::endpoints {
namespace {

using fields::FieldSchema;

FieldSchema schema_of(const resources::ServedResource& resource) {
  if (resource.custom) {
    return FieldSchema::of_custom_resource(resource.schema ? resource.schema.body() : api::Value());
  }
  const auto type =
      api::detail::Type::of_kind(resource.type.group, resource.type.version, resource.type.kind);
  return type ? FieldSchema::of(*type) : FieldSchema();
}

fields::FieldManager manager(const http::Request& request, fields::ObjectType type) {
  const std::string_view name = request.parameter("fieldManager").value_or("");
  return {
      std::move(type), fields::manager_of(name, request.header("user-agent")),
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now())};
}

}  // namespace

fields::FieldManager field_manager(const http::Request& request,
                                   std::shared_ptr<const resources::ResourceTable> table,
                                   const resources::ServedResourcePtr& resource,
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
  return manager(request,
                 {.kind = type.gvk(),
                  .schema = schema_of(*resource),
                  .ownable = fields::OwnableFields::of(type.group, type.plural, subresource,
                                                       resource->custom, resource->has_status()),
                  .subresource = std::string(subresource),
                  .serves = std::move(serves)});
}

fields::FieldManager scale_field_manager(const http::Request& request) {
  const api::GroupVersionKind kind{"autoscaling", "v1", "Scale"};
  const auto type = api::detail::Type::of_kind(kind.group, kind.version, kind.kind);
  return manager(request, {.kind = kind,
                           .schema = FieldSchema::of(*type),
                           .ownable = {},
                           .subresource = "scale",
                           .serves = nullptr});
}

}  // namespace lookout::apiserver::endpoints
