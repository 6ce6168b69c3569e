#include "apiserver/openapi/schemas.h"

#include <utility>

#include "lookout/api/detail/symbol_table.h"

namespace lookout::apiserver::openapi {
namespace {

using api::detail::Field;
using api::detail::Scalar;
using api::detail::Shape;
using api::detail::Type;
using json::Allocator;
using json::Value;

Value object() { return Value(rapidjson::kObjectType); }

Value typed(std::string_view type, std::string_view format, Allocator& allocator) {
  Value out = object();
  json::set(out, "type", type, allocator);
  if (!format.empty()) json::set(out, "format", format, allocator);
  return out;
}

/// "oneOf" of two simple types, which v2 does not have.
Value either(std::string_view a, std::string_view b, Allocator& allocator) {
  Value list(rapidjson::kArrayType);
  list.PushBack(typed(a, "", allocator), allocator);
  list.PushBack(typed(b, "", allocator), allocator);
  Value out = object();
  json::set(out, "oneOf", std::move(list), allocator);
  return out;
}

/// The extensions for merging lists and maps.
void add_merge_rules(const Field& field, Value& schema, Allocator& allocator) {
  using api::detail::ListType;
  using api::detail::MapType;
  if (field.list_type() != ListType::kNone) {
    const auto keys = field.list_map_keys();
    if (!keys.empty()) {
      Value names(rapidjson::kArrayType);
      for (const auto key : keys)
        names.PushBack(json::copy_text(api::detail::symbol_text(key), allocator), allocator);
      json::set(schema, "x-kubernetes-list-map-keys", std::move(names), allocator);
    }
    json::set(schema, "x-kubernetes-list-type",
              field.list_type() == ListType::kAtomic ? "atomic"
              : field.list_type() == ListType::kSet  ? "set"
                                                     : "map",
              allocator);
  }
  if (field.map_type() != MapType::kNone) {
    json::set(schema, "x-kubernetes-map-type",
              field.map_type() == MapType::kAtomic ? "atomic" : "granular", allocator);
  }
  if (!field.patch_merge_key().empty())
    json::set(schema, "x-kubernetes-patch-merge-key", field.patch_merge_key(), allocator);
  std::string strategies;
  const auto add = [&](unsigned strategy, const char* name) {
    if ((field.patch_strategies() & strategy) == 0) return;
    if (!strategies.empty()) strategies += ',';
    strategies += name;
  };
  add(api::detail::patch_strategy::kMerge, "merge");
  add(api::detail::patch_strategy::kReplace, "replace");
  add(api::detail::patch_strategy::kRetainKeys, "retainKeys");
  if (!strategies.empty()) json::set(schema, "x-kubernetes-patch-strategy", strategies, allocator);
}

}  // namespace

std::string_view reference_prefix(Dialect dialect) {
  return dialect == Dialect::kV2 ? "#/definitions/" : "#/components/schemas/";
}

Value group_version_kind(const api::GroupVersionKind& gvk, Allocator& allocator) {
  Value out = object();
  json::set(out, "group", gvk.group, allocator);
  json::set(out, "kind", gvk.kind, allocator);
  json::set(out, "version", gvk.version, allocator);
  return out;
}

Value group_version_kinds(const api::GroupVersionKind& gvk, Allocator& allocator) {
  Value out(rapidjson::kArrayType);
  out.PushBack(group_version_kind(gvk, allocator), allocator);
  return out;
}

Value Schemas::reference(std::string_view name) {
  Value out = object();
  json::set(out, "$ref", std::string(reference_prefix(dialect_)) + std::string(name), allocator_);
  return out;
}

void Schemas::add(std::string_view name, Value schema) {
  names_.emplace(name);
  all_.AddMember(json::copy_text(name, allocator_), schema, allocator_);
}

Value Schemas::of_kind(const api::GroupVersionKind& gvk) {
  const auto type = Type::of_kind(gvk.group, gvk.version, gvk.kind);
  if (!type || type->name().empty()) return {};
  Value out = schema_of(*type);
  Value& schema = *json::find(all_, type->name());
  if (json::find(schema, kGroupVersionKind) == nullptr)
    json::set(schema, kGroupVersionKind, group_version_kinds(gvk, allocator_), allocator_);
  return out;
}

void Schemas::describe_items(const api::GroupVersionKind& list, std::string_view text) {
  const auto type = Type::of_kind(list.group, list.version, list.kind);
  if (!type || !contains(type->name())) return;
  Value* properties = json::find(*json::find(all_, type->name()), "properties");
  Value* items = properties == nullptr ? nullptr : json::find(*properties, "items");
  if (items != nullptr) json::set(*items, "description", text, allocator_);
}

Value Schemas::metadata(bool of_list) {
  const auto type = Type::of_kind("", "v1", of_list ? "PodList" : "Pod");
  return schema_of(type->field("metadata")->type());
}

Value Schemas::scalar(Scalar scalar, std::string_view name) {
  switch (scalar) {
    case Scalar::kString:
      if (dialect_ == Dialect::kV3 && name.ends_with(".resource.Quantity"))
        return either("string", "number", allocator_);
      return typed("string", "", allocator_);
    case Scalar::kBytes:
      return typed("string", "byte", allocator_);
    case Scalar::kDateTime:
      return typed("string", "date-time", allocator_);
    case Scalar::kIntOrString: {
      if (dialect_ == Dialect::kV2) return typed("string", "int-or-string", allocator_);
      Value out = either("integer", "string", allocator_);
      json::set(out, "format", "int-or-string", allocator_);
      return out;
    }
    case Scalar::kInt32:
      return typed("integer", "int32", allocator_);
    case Scalar::kInt64:
      return typed("integer", "int64", allocator_);
    case Scalar::kDouble:
      return typed("number", "double", allocator_);
    case Scalar::kBoolean:
      return typed("boolean", "", allocator_);
    case Scalar::kObject:
      return typed("object", "", allocator_);
    default:
      return object();  // anything
  }
}

Value Schemas::schema_of(Type type) {
  if (!type.name().empty()) {
    if (!contains(type.name())) define(type);
    return reference(type.name());
  }
  switch (type.shape()) {
    case Shape::kList: {
      Value out = typed("array", "", allocator_);
      json::set(out, "items", schema_of(type.element()), allocator_);
      return out;
    }
    case Shape::kMap: {
      Value out = typed("object", "", allocator_);
      json::set(out, "additionalProperties", schema_of(type.element()), allocator_);
      return out;
    }
    default:
      return scalar(type.scalar(), "");
  }
}

Value Schemas::property(const Field& field) {
  Value schema = schema_of(field.type());
  Value rules = object();
  add_merge_rules(field, rules, allocator_);
  if (rules.ObjectEmpty()) return schema;
  if (dialect_ == Dialect::kV3 && json::find(schema, "$ref") != nullptr) {
    // A reference must not have siblings.
    Value all(rapidjson::kArrayType);
    all.PushBack(schema, allocator_);
    schema = object();
    json::set(schema, "allOf", std::move(all), allocator_);
  }
  for (auto& rule : rules.GetObject()) schema.AddMember(rule.name, rule.value, allocator_);
  return schema;
}

void Schemas::define(Type type) {
  // Add the name first, because types may refer to themselves.
  const std::string name(type.name());
  add(name, object());
  Value schema;
  if (type.shape() != Shape::kStruct) {
    schema = scalar(type.scalar(), name);
  } else {
    schema = typed("object", "", allocator_);
    Value properties = object();
    Value required(rapidjson::kArrayType);
    for (const Field field : type.fields()) {
      properties.AddMember(json::copy_text(field.name(), allocator_), property(field), allocator_);
      if (field.required())
        required.PushBack(json::copy_text(field.name(), allocator_), allocator_);
    }
    if (!properties.ObjectEmpty())
      json::set(schema, "properties", std::move(properties), allocator_);
    if (!required.Empty()) json::set(schema, "required", std::move(required), allocator_);
  }
  *json::find(all_, name) = std::move(schema);
}

}  // namespace lookout::apiserver::openapi
