#include "apiserver/fields/field_schema.h"

#include <algorithm>
#include <array>

#include "apiserver/fields/fields_v1.h"
#include "lookout/api/symbol.h"

namespace lookout::apiserver::fields {
namespace {

using api::detail::ListType;
using api::detail::Shape;
using api::detail::Type;
using BuiltinScalar = api::detail::Scalar;

constexpr std::string_view kKeepsUnknown = "x-kubernetes-preserve-unknown-fields";
constexpr std::string_view kEmbedded = "x-kubernetes-embedded-resource";

/// The structures with "x-kubernetes-map-type: atomic", in order. (The facts of the schema have it
/// for fields only.)
constexpr std::array<std::string_view, 27> kAtomicStructures = {
    "io.k8s.api.admissionregistration.v1.MatchResources",
    "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations",
    "io.k8s.api.admissionregistration.v1.ParamKind",
    "io.k8s.api.admissionregistration.v1.ParamRef",
    "io.k8s.api.admissionregistration.v1.Variable",
    "io.k8s.api.autoscaling.v1.CrossVersionObjectReference",
    "io.k8s.api.core.v1.ConfigMapKeySelector",
    "io.k8s.api.core.v1.EndpointAddress",
    "io.k8s.api.core.v1.EndpointPort",
    "io.k8s.api.core.v1.FileKeySelector",
    "io.k8s.api.core.v1.LocalObjectReference",
    "io.k8s.api.core.v1.NodeSelector",
    "io.k8s.api.core.v1.NodeSelectorTerm",
    "io.k8s.api.core.v1.ObjectFieldSelector",
    "io.k8s.api.core.v1.ObjectReference",
    "io.k8s.api.core.v1.ResourceFieldSelector",
    "io.k8s.api.core.v1.ScopeSelector",
    "io.k8s.api.core.v1.SecretKeySelector",
    "io.k8s.api.core.v1.SecretReference",
    "io.k8s.api.core.v1.TopologySelectorTerm",
    "io.k8s.api.core.v1.TypedLocalObjectReference",
    "io.k8s.api.discovery.v1.EndpointPort",
    "io.k8s.api.networking.v1.ServiceBackendPort",
    "io.k8s.api.rbac.v1.RoleRef",
    "io.k8s.api.rbac.v1.Subject",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
};

bool is_atomic_structure(Type type) {
  return std::binary_search(kAtomicStructures.begin(), kAtomicStructures.end(), type.name());
}

ListType list_type_of(api::Value schema) {
  const std::string_view text = schema["x-kubernetes-list-type"].as_string();
  return text == "map" ? ListType::kMap : text == "set" ? ListType::kSet : ListType::kAtomic;
}

}  // namespace

FieldSchema FieldSchema::of(Type type) {
  FieldSchema out(Source::kBuiltin);
  out.type_ = type;
  return out;
}

FieldSchema FieldSchema::of(api::detail::Field field) {
  FieldSchema out = of(field.type());
  out.list_ = field.list_type();
  out.map_ = field.map_type();
  out.list_keys_ = field.list_map_keys();
  return out;
}

FieldSchema FieldSchema::of_custom_resource(api::Value schema) {
  if (!schema.is_object()) return {};
  FieldSchema out = custom(schema, false);
  out.is_object_ = true;
  return out;
}

FieldSchema FieldSchema::custom(api::Value schema, bool keeps_unknown) {
  FieldSchema out(Source::kCustom);
  out.schema_ = schema;
  out.keeps_unknown_ = keeps_unknown || schema[kKeepsUnknown].as_bool();
  out.is_object_ = schema[kEmbedded].as_bool();
  return out;
}

FieldSchema FieldSchema::metadata() {
  return of(Type::of_kind("", "v1", "ConfigMap")->field("metadata")->type());
}

bool FieldSchema::takes_any_form() const {
  switch (source_) {
    case Source::kDeduced:
    case Source::kAtomic:
      return true;
    case Source::kBuiltin:
      return type_->shape() == Shape::kScalar && type_->scalar() == BuiltinScalar::kAny;
    case Source::kCustom:
      return !schema_.contains("type");
    case Source::kText:
      break;
  }
  return false;
}

FieldSchema::Form FieldSchema::own_form() const {
  if (source_ == Source::kText) return Form::kScalar;
  if (source_ == Source::kBuiltin) {
    switch (type_->shape()) {
      case Shape::kStruct:
      case Shape::kMap:
        return Form::kMap;
      case Shape::kList:
        return Form::kList;
      case Shape::kScalar:
        return type_->scalar() == BuiltinScalar::kObject ? Form::kMap : Form::kScalar;
    }
  }
  const std::string_view type = schema_["type"].as_string();
  return type == "array" ? Form::kList : type == "object" ? Form::kMap : Form::kScalar;
}

FieldSchema::Form FieldSchema::form_of(const json::Value& value) const {
  if (!takes_any_form()) return own_form();
  if (value.IsArray()) return Form::kList;
  return value.IsObject() || value.IsNull() ? Form::kMap : Form::kScalar;
}

bool FieldSchema::is_atomic(Form form) const {
  if (form == Form::kScalar || source_ == Source::kAtomic) return true;
  if (takes_any_form()) return form == Form::kList;
  if (source_ == Source::kBuiltin) {
    if (form == Form::kList) return list_ != ListType::kSet && list_ != ListType::kMap;
    if (map_ != api::detail::MapType::kNone) return map_ == api::detail::MapType::kAtomic;
    return type_->scalar() == BuiltinScalar::kObject || is_atomic_structure(*type_);
  }
  if (form == Form::kList) return list_type_of(schema_) == ListType::kAtomic;
  return schema_["x-kubernetes-map-type"].as_string() == "atomic";
}

FieldSchema::Scalar FieldSchema::scalar() const {
  if (source_ == Source::kText) return Scalar::kString;
  if (source_ == Source::kBuiltin) {
    switch (type_->scalar()) {
      case BuiltinScalar::kString:
        // A quantity may be a number.
        return type_->name().empty() ? Scalar::kString : Scalar::kUntyped;
      case BuiltinScalar::kBytes:
        return Scalar::kString;
      case BuiltinScalar::kInt32:
      case BuiltinScalar::kInt64:
      case BuiltinScalar::kDouble:
        return Scalar::kNumeric;
      case BuiltinScalar::kBoolean:
        return Scalar::kBoolean;
      default:
        return Scalar::kUntyped;
    }
  }
  const std::string_view type = schema_["type"].as_string();
  if (type == "integer" || type == "number") return Scalar::kNumeric;
  if (type == "boolean") return Scalar::kBoolean;
  const std::string_view format = schema_["format"].as_string();
  return type == "string" && (format.empty() || format == "byte") ? Scalar::kString
                                                                  : Scalar::kUntyped;
}

std::optional<FieldSchema::Member> FieldSchema::member(std::string_view name) const {
  switch (source_) {
    case Source::kBuiltin:
      if (type_->shape() == Shape::kMap) return Member{of(type_->element()), false};
      if (type_->shape() == Shape::kStruct && type_->fields().size() > 0) {
        // managedFields have no owner.
        if (name == "managedFields") return std::nullopt;
        const auto field = type_->field(name);
        if (!field) return std::nullopt;
        return Member{of(*field), true};
      }
      break;
    case Source::kCustom:
      return custom_member(name);
    case Source::kAtomic:
      return Member{FieldSchema(Source::kAtomic), false};
    case Source::kDeduced:
    case Source::kText:
      break;
  }
  return Member{FieldSchema(), false};
}

std::optional<FieldSchema::Member> FieldSchema::custom_member(std::string_view name) const {
  if (is_object_) {
    if (name == "metadata") return Member{metadata(), true};
    if (name == "apiVersion" || name == "kind") return Member{FieldSchema(Source::kText), true};
  }
  const api::Value properties = schema_["properties"];
  if (const api::Value property = properties[name]; property.is_object())
    return Member{custom(property, keeps_unknown_), true};
  const api::Value others = schema_["additionalProperties"];
  if (others.is_object()) return Member{custom(others, keeps_unknown_), false};
  if (others.exists() ? others.as_bool() : keeps_unknown_ || properties.empty())
    return Member{FieldSchema(), false};
  return std::nullopt;
}

FieldSchema FieldSchema::element() const {
  if (source_ == Source::kBuiltin && type_->shape() == Shape::kList) return of(type_->element());
  if (source_ == Source::kCustom && schema_["items"].is_object())
    return custom(schema_["items"], keeps_unknown_);
  return FieldSchema(Source::kAtomic);
}

std::vector<std::string_view> FieldSchema::keys() const {
  std::vector<std::string_view> out;
  if (source_ == Source::kBuiltin) {
    for (const std::uint16_t key : list_keys_) out.push_back(api::Symbol{key}.text());
  } else if (list_type_of(schema_) == ListType::kMap) {
    for (const api::Value key : schema_["x-kubernetes-list-map-keys"].elements())
      out.push_back(key.as_string());
  }
  return out;
}

std::string FieldSchema::key_default(std::string_view name) const {
  if (source_ == Source::kBuiltin) {
    if (type_->shape() != Shape::kList || type_->element().shape() != Shape::kStruct) return {};
    // The only key field with a default other than zero is the protocol of ports.
    if (name == "protocol") return "\"TCP\"";
    const auto field = type_->element().field(name);
    if (!field || field->type().shape() != Shape::kScalar) return {};
    // The default of a field that Go always writes is its zero value.
    if (!field->required() && type_->element().short_name() != "LocalObjectReference") return {};
    return of(*field).scalar() == Scalar::kNumeric ? "0" : "\"\"";
  }
  const api::Value value = schema_["items"]["properties"][name]["default"];
  if (!value.exists() || value.is_object() || value.is_array()) return {};
  json::Document parsed;
  json::parse_json(value.to_json(), parsed);
  return canonical_json(parsed);
}

}  // namespace lookout::apiserver::fields
