#include "apiserver/openapi/custom_schema.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lookout::apiserver::openapi {
namespace {

using json::Allocator;
using json::Value;

/// Keywords that OpenAPI v2 does not have.
constexpr std::array<std::string_view, 9> kOnlyV3 = {
    "oneOf",   "anyOf",   "not",     "nullable", "x-kubernetes-validations",
    "example", "default", "minimum", "maximum"};

bool is_flag_set(const Value& schema, std::string_view name) {
  const Value* flag = json::find(schema, name);
  return flag != nullptr && flag->IsTrue();
}

void to_v2(Value& schema) {
  if (!schema.IsObject()) return;
  // Everything beyond a simple type is arbitrary JSON in v2.
  if (is_flag_set(schema, "x-kubernetes-preserve-unknown-fields") ||
      is_flag_set(schema, "x-kubernetes-int-or-string") || is_flag_set(schema, "nullable")) {
    for (const char* name : {"type", "format", "properties", "items", "additionalProperties",
                             "required", "oneOf", "anyOf", "allOf"})
      json::erase(schema, name);
  }
  for (const std::string_view name : kOnlyV3) json::erase(schema, name);
  if (Value* all = json::find(schema, "allOf"); all != nullptr) json::erase(schema, "allOf");
  if (Value* properties = json::find(schema, "properties")) {
    for (auto& property : properties->GetObject()) to_v2(property.value);
  }
  if (Value* items = json::find(schema, "items")) to_v2(*items);
  if (Value* values = json::find(schema, "additionalProperties")) to_v2(*values);
}

}  // namespace

std::string custom_schema_name(const api::GroupVersionKind& gvk) {
  std::string out;
  std::string_view rest = gvk.group;
  while (!rest.empty()) {
    const std::size_t dot = rest.rfind('.');
    out += rest.substr(dot == std::string_view::npos ? 0 : dot + 1);
    out += '.';
    rest = rest.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return out + gvk.version + "." + gvk.kind;
}

Value add_custom_schema(const resources::ServedResource& resource, Schemas& schemas,
                        Allocator& allocator) {
  const api::GroupVersionKind gvk = resource.type.gvk();
  const std::string name = custom_schema_name(gvk);
  if (schemas.contains(name)) return schemas.reference(name);
  const auto text = [&](const char* type) {
    Value out(rapidjson::kObjectType);
    json::set(out, "type", type, allocator);
    return out;
  };
  const auto add_type = [&](Value& properties, bool of_list) {
    json::set(properties, "apiVersion", text("string"), allocator);
    json::set(properties, "kind", text("string"), allocator);
    json::set(properties, "metadata", schemas.metadata(of_list), allocator);
  };
  Value schema = text("object");
  const bool v2 = schemas.dialect() == Dialect::kV2;
  const json::Document document =
      resource.schema ? resource.schema.to_document() : json::Document();
  // With one property, v2 clients would treat all others as unknown, even if the schema preserves
  // them.
  const bool is_open =
      !resource.schema || (v2 && is_flag_set(document, "x-kubernetes-preserve-unknown-fields"));
  if (!is_open) {
    schema = json::deep_copy(document, allocator);
    if (v2) to_v2(schema);
    add_type(json::child(schema, "properties", allocator), false);
  }
  json::set(schema, kGroupVersionKind, group_version_kinds(gvk, allocator), allocator);
  schemas.add(name, std::move(schema));

  const api::GroupVersionKind list{gvk.group, gvk.version, resource.list_kind};
  Value list_schema = text("object");
  Value& list_properties = json::child(list_schema, "properties", allocator);
  add_type(list_properties, true);
  Value items = text("array");
  json::set(items, "items", schemas.reference(name), allocator);
  json::set(list_properties, "items", std::move(items), allocator);
  Value required(rapidjson::kArrayType);
  required.PushBack("items", allocator);
  json::set(list_schema, "required", std::move(required), allocator);
  json::set(list_schema, kGroupVersionKind, group_version_kinds(list, allocator), allocator);
  schemas.add(custom_schema_name(list), std::move(list_schema));
  return schemas.reference(name);
}

}  // namespace lookout::apiserver::openapi
