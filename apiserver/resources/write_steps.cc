#include "apiserver/resources/write_steps.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/structural_schema.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/detail/unset_fields.h"
#include "lookout/api/quantity.h"
#include "lookout/api/time.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

/// Removes the null members of a value without further type information.
void strip_nulls(json::Value& value) {
  if (value.IsArray()) {
    for (json::Value& element : value.GetArray()) strip_nulls(element);
  } else if (value.IsObject()) {
    auto kept = value.MemberBegin();
    for (auto member = value.MemberBegin(); member != value.MemberEnd(); ++member) {
      if (member->value.IsNull()) continue;
      strip_nulls(member->value);
      if (kept != member) {
        kept->name.Swap(member->name);
        kept->value.Swap(member->value);
      }
      ++kept;
    }
    // RapidJSON cannot erase an empty range of an empty object.
    if (kept != value.MemberEnd()) value.EraseMember(kept, value.MemberEnd());
  }
}

void write_text(json::Value& value, const std::string& text, Allocator& allocator) {
  if (!value.IsString() || json::text_of(value) != text) value = json::copy_text(text, allocator);
}

api::Quantity rounded_up(const api::Quantity& quantity) {
  constexpr std::int64_t kMostThousandths = INT64_MAX;
  const std::int64_t thousandths = quantity.milli_value();
  if (thousandths == kMostThousandths) return quantity;
  const api::Quantity rounded = api::Quantity::of_milli(thousandths, quantity.format());
  return rounded == quantity ? quantity : rounded;
}

/// `is_resource`: finer amounts than thousandths are rounded up (SetDefaults_ResourceList).
void write_quantity(json::Value& value, bool is_resource, Allocator& allocator) {
  std::string text;
  if (value.IsString()) {
    text = json::text_of(value);
  } else if (value.IsInt64()) {
    text = std::to_string(value.GetInt64());
  } else if (value.IsDouble()) {
    text = fmt::format("{}", value.GetDouble());
  } else {
    return;
  }
  auto quantity = api::Quantity::parse(text);
  if (!quantity) return;
  if (is_resource) quantity = rounded_up(*quantity);
  write_text(value, quantity->to_string(), allocator);
}

void write_time(json::Value& value, bool micro, Allocator& allocator) {
  if (!value.IsString()) return;
  if (const auto time = api::parse_time(json::text_of(value)))
    write_text(value, micro ? api::format_micro_time(*time) : api::format_time(*time), allocator);
}

void write_bytes(json::Value& value, Allocator& allocator) {
  if (!value.IsString()) return;
  if (const auto bytes = decode_base64(json::text_of(value)))
    write_text(value, encode_base64(*bytes), allocator);
}

/// Go's decoder converts null in a list or map to the zero value of the element. (Lists, maps and times
/// stay null, as Go encodes their zero values as null.)
json::Value zero_of(api::detail::Type type, Allocator& allocator) {
  using api::detail::Scalar;
  if (type.shape() == api::detail::Shape::kStruct) return json::object();
  if (type.short_name() == "Quantity") return json::copy_text("0", allocator);
  switch (type.scalar()) {
    case Scalar::kString:
    case Scalar::kBytes:
      return json::copy_text("", allocator);
    case Scalar::kIntOrString:
    case Scalar::kInt32:
    case Scalar::kInt64:
    case Scalar::kDouble:
      return json::Value(0);
    case Scalar::kBoolean:
      return json::Value(false);
    case Scalar::kNone:
    case Scalar::kDateTime:
    case Scalar::kObject:
    case Scalar::kAny:
      return {};
  }
  return {};
}

void write_values(json::Value& value, api::detail::Type type, Allocator& allocator);

void write_element(json::Value& value, api::detail::Type type, Allocator& allocator) {
  if (value.IsNull()) {
    value = zero_of(type, allocator);
  } else {
    write_values(value, type, allocator);
  }
}

/// Removes null and unknown fields.
void write_fields(json::Value& value, api::detail::Type type, Allocator& allocator) {
  auto kept = value.MemberBegin();
  for (auto member = value.MemberBegin(); member != value.MemberEnd(); ++member) {
    if (member->value.IsNull()) continue;
    const auto field = type.field(json::text_of(member->name));
    if (!field) continue;
    write_values(member->value, field->type(), allocator);
    if (kept != member) {
      kept->name.Swap(member->name);
      kept->value.Swap(member->value);
    }
    ++kept;
  }
  if (kept != value.MemberEnd()) value.EraseMember(kept, value.MemberEnd());
}

/// The type of the schema of a custom resource.
std::optional<api::detail::Type> schema_type() {
  auto type = api::detail::Type::of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  for (const char* name : {"spec", "versions", "schema", "openAPIV3Schema"}) {
    const auto field = type ? type->field(std::string_view(name)) : std::nullopt;
    if (!field) return std::nullopt;
    type = field->type().shape() == api::detail::Shape::kList ? field->type().element()
                                                              : field->type();
  }
  return type;
}

/// A schema in a schema, or several; other values (booleans, names) are unchanged.
void write_schemas(json::Value& value, Allocator& allocator) {
  static const std::optional<api::detail::Type> kType = schema_type();
  if (value.IsObject() && kType) write_values(value, *kType, allocator);
  if (!value.IsArray()) return;
  for (json::Value& one : value.GetArray()) write_schemas(one, allocator);
}

/// Converts a number to Go's form of a double: 1000.0 becomes 1000.
void write_double(json::Value& value) {
  constexpr double kMost = 0x1p64;
  if (!value.IsNumber()) return;
  const double number = value.GetDouble();
  if (is_exact_integer(number)) {
    value.SetInt64(static_cast<std::int64_t>(number));
  } else if (number > 0 && number < kMost && value.IsUint64()) {
    value.SetUint64(static_cast<std::uint64_t>(number));
  } else {
    value.SetDouble(number);
  }
}

void write_scalar(json::Value& value, api::detail::Type type, Allocator& allocator) {
  const std::string_view name = type.short_name();
  if (name == "Quantity") {
    write_quantity(value, false, allocator);
  } else if (type.scalar() == api::detail::Scalar::kDateTime) {
    write_time(value, name == "MicroTime", allocator);
  } else if (type.scalar() == api::detail::Scalar::kBytes) {
    write_bytes(value, allocator);
  } else if (name.starts_with("JSONSchemaPropsOr")) {
    write_schemas(value, allocator);
  } else if (name == "JSON") {
    write_numbers(value);
  } else if (type.scalar() == api::detail::Scalar::kDouble) {
    write_double(value);
  }
}

/// Writes quantities, times and bytes in Kubernetes' canonical form: "0.5" becomes "500m", and 1
/// becomes "1". Removes fields that the type does not have, and nulls as Go's decoder does.
void write_values(json::Value& value, api::detail::Type type, Allocator& allocator) {
  switch (type.shape()) {
    case api::detail::Shape::kStruct:
      if (value.IsObject()) write_fields(value, type, allocator);
      return;
    case api::detail::Shape::kList:
      if (!value.IsArray()) return;
      for (json::Value& element : value.GetArray())
        write_element(element, type.element(), allocator);
      return;
    case api::detail::Shape::kMap:
      if (!value.IsObject()) return;
      for (auto& member : value.GetObject()) {
        if (type.element().short_name() == "Quantity" && !member.value.IsNull()) {
          write_quantity(member.value, true, allocator);
        } else {
          write_element(member.value, type.element(), allocator);
        }
      }
      return;
    case api::detail::Shape::kScalar:
      write_scalar(value, type, allocator);
      return;
  }
}

/// Converts the metadata of an embedded resource to the form that Go's decoder produces.
void clean_metadata(json::Value& resource, Allocator& allocator) {
  json::Value* metadata = json::find(resource, "metadata");
  if (metadata == nullptr) return;
  if (metadata->IsNull()) metadata->SetObject();
  write_values(*metadata, metadata_type(), allocator);
  drop_empty_metadata(*metadata);
}

/// The type of a built-in kind.
std::optional<api::detail::Type> type_of(const ServedResource& resource) {
  if (resource.custom) return std::nullopt;
  return api::detail::Type::of_kind(resource.type.group, resource.type.version, resource.type.kind);
}

void set_type(json::Value& document, const ServedResource& resource, Allocator& allocator) {
  json::set(document, "kind", resource.type.kind, allocator);
  json::set(document, "apiVersion", resource.type.api_version(), allocator);
}

/// The object after Go's decoder. Removes server-side fields from a new object.
Document decoded_document(const Target& target, const Object& object, bool is_new) {
  const ServedResource& resource = *target.resource;
  Document document = typed_document(resource, object);
  Allocator& allocator = document.GetAllocator();
  json::Value& metadata = json::child(document, "metadata", allocator);
  if (is_new) {
    for (const char* field : {"uid", "creationTimestamp", "deletionTimestamp",
                              "deletionGracePeriodSeconds", "selfLink"})
      json::erase(metadata, field);
  }
  drop_empty_metadata(metadata);
  ensure_namespace(metadata, resource.type.namespaced ? target.ns : std::string(), allocator);
  if (!resource.custom) add_parts(resource, document, allocator);
  if (resource.strategy->set_defaults != nullptr)
    resource.strategy->set_defaults(document, allocator);
  complete(resource, document, allocator);
  return document;
}

}  // namespace

Document typed_document(const ServedResource& resource, const Object& object) {
  Document document =
      resource.custom ? object.to_document() : typed_document(resource.type.gvk(), object);
  Allocator& allocator = document.GetAllocator();
  json::Value* metadata = json::find(document, "metadata");
  if (resource.custom && metadata != nullptr) write_values(*metadata, metadata_type(), allocator);
  set_type(document, resource, allocator);
  return document;
}

Document typed_document(const api::GroupVersionKind& kind, const Object& object) {
  Document document = object.to_document();
  if (const auto type = api::detail::Type::of_kind(kind.group, kind.version, kind.kind)) {
    write_values(document, *type, document.GetAllocator());
  } else {
    strip_nulls(document);
  }
  api::detail::drop_unset_fields(document, kind.api_version(), kind.kind);
  return document;
}

void add_parts(const ServedResource& resource, Document& document, Allocator& allocator) {
  const auto known = type_of(resource);
  if (!known || known->shape() != api::detail::Shape::kStruct) return;
  for (const char* part : {"spec", "status"}) {
    const auto field = known->field(part);
    if (field && field->type().shape() == api::detail::Shape::kStruct)
      json::child(document, part, allocator);
  }
}

void complete(const ServedResource& resource, Document& document, Allocator& allocator) {
  if (!resource.custom)
    api::detail::add_unset_fields(document, resource.type.api_version(), resource.type.kind,
                                  allocator);
  if (!resource.schema) return;
  const api::Value schema = resource.schema.body();
  prune(document, schema);
  set_schema_defaults(document, schema, allocator);
  for_each_embedded(document, schema,
                    [&](json::Value& embedded) { clean_metadata(embedded, allocator); });
  write_numbers(document);
}

void settle(const ServedResource& resource, Document& document, Allocator& allocator) {
  if (resource.custom) return;
  api::detail::settle_unset_fields(document, resource.type.api_version(), resource.type.kind,
                                   allocator);
}

Object decoded(const Target& target, const Object& object, bool is_new) {
  return Object::from(decoded_document(target, object, is_new));
}

Object owned(const Target& target, const Object& object, const Object& present) {
  Document document = decoded_document(target, object, !present);
  if (target.fields != nullptr) {
    const Document before = present ? present.to_document() : Document();
    target.fields->update(document, present ? &before : nullptr, document.GetAllocator());
  }
  return Object::from(document);
}

void check_target_name(const Target& target, const Object& wanted) {
  if (wanted.name().empty()) {
    throw StatusError::bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name));
  }
  if (wanted.name() != target.name) {
    throw StatusError::bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                    wanted.name(), target.name));
  }
}

void check_identity(const Target& target, const Object& wanted) {
  if (target.resource->type.namespaced) check_same_namespace(wanted.ns(), target.ns);
  check_target_name(target, wanted);
}

bool asks(const Target& target, Write::Operation operation) {
  return target.admission != nullptr && target.admission->concerns(operation);
}

void throw_if_invalid(const ServedResource& resource, std::string_view name, Causes causes) {
  if (causes.empty()) return;
  // For events, kube-apiserver names the group of the stored version.
  const std::string& stored = resource.storage_version;
  const std::string group =
      stored.empty() ? resource.type.group : api::GroupVersionKind::from(stored, {}).group;
  throw StatusError::invalid(group, resource.type.kind, name, std::move(causes));
}

StatusError plain_failure(std::int32_t code, std::string message) {
  api::Status status;
  status.code = code;
  status.message = std::move(message);
  return StatusError(std::move(status));
}

}  // namespace lookout::apiserver::resources
