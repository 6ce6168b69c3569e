#include "apiserver/resources/embedded_resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

using api::detail::Scalar;
using api::detail::Shape;
using api::detail::Type;

// ----------------------------------------------------------------------------------- Types of values

bool fits_scalar(Value value, Scalar scalar) {
  switch (scalar) {
    case Scalar::kString:
    case Scalar::kBytes:
    case Scalar::kDateTime:
      return value.is_string();
    case Scalar::kBoolean:
      return value.is_bool();
    case Scalar::kInt32:
    case Scalar::kInt64:
      return value.to_int().has_value();
    default:
      return true;
  }
}

bool fits(Value value, Type type) {
  if (type.shape() == Shape::kScalar) return fits_scalar(value, type.scalar());
  return type.shape() == Shape::kList ? value.is_array() : value.is_object();
}

/// The position of Go's decoder: "value", or "struct field ObjectMeta.labels".
struct Position {
  std::string text = "value";
  std::string fields = {};

  Position at(Type owner, std::string_view field) const {
    Position out;
    out.fields = fields.empty() ? std::string(field) : fmt::format("{}.{}", fields, field);
    out.text = fmt::format("struct field {}.{}", owner.short_name(), out.fields);
    return out;
  }
};

/// The first value of a wrong type, with the message of Go's decoder.
std::optional<std::string> find_mismatch(Value value, Type type, const Position& position) {
  if (value.is_null()) return std::nullopt;
  if (!fits(value, type)) {
    return fmt::format("json: cannot unmarshal {} into Go {} of type {}",
                       api::detail::go_json_name(value), position.text,
                       api::detail::go_type_name(type));
  }
  std::optional<std::string> found;
  if (type.shape() == Shape::kList) {
    for (const Value element : value.elements())
      if (!found) found = find_mismatch(element, type.element(), position);
  } else if (type.shape() != Shape::kScalar) {
    for (const auto& [name, member] : value.members()) {
      if (found) break;
      if (type.shape() == Shape::kMap) {
        found = find_mismatch(member, type.element(), position);
      } else if (const auto field = type.field(name)) {
        found = find_mismatch(member, field->type(), position.at(type, name));
      }
    }
  }
  return found;
}

// -------------------------------------------------------------------------------------------- Checks

void check_api_version(std::string_view text, const std::string& path, Causes& causes) {
  if (std::count(text.begin(), text.end(), '/') > 1)
    causes.push_back(
        rules::invalid(path, text, fmt::format("unexpected GroupVersion string: {}", text)));
}

void check_kind(std::string_view text, const std::string& path, Causes& causes) {
  const auto messages = rules::check_dns1035_label(base::lower_case(text));
  if (messages.empty()) return;
  causes.push_back(rules::invalid(path, text,
                                  fmt::format("may have mixed case, but should otherwise match: {}",
                                              fmt::join(messages, ","))));
}

void check_metadata(Value metadata, const std::string& path, Causes& causes) {
  if (const auto mismatch = find_mismatch(metadata, metadata_type(), {})) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: {}", metadata.to_json(), *mismatch), path});
    return;
  }
  json::Document object =
      api::Object::parse(R"({"metadata":)" + metadata.to_json() + "}").to_document();
  json::Value& in_object = json::child(object, "metadata", object.GetAllocator());
  if (json::text(in_object, "name").empty())
    json::set(in_object, "name", "name", object.GetAllocator());
  static const Strategy kStrategy{.check_name = rules::check_path_segment_name};
  ServedResource resource;
  resource.type.namespaced = !json::text(in_object, "namespace").empty();
  resource.strategy = &kStrategy;
  Causes found;
  validate_metadata(resource, api::Object::from(object), found);
  constexpr std::string_view kRoot = "metadata";
  for (api::StatusCause& cause : found) {
    cause.field = path + cause.field.substr(kRoot.size());
    causes.push_back(std::move(cause));
  }
}

}  // namespace

void check_embedded(Value resource, const std::string& path, Causes& causes) {
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const std::string_view name : {"apiVersion", "kind"}) {
    const Value part = resource[name];
    const std::string here = fmt::format("{}{}", prefix, name);
    if (!part.exists()) {
      causes.push_back(rules::required(here, ""));
    } else if (!part.is_string()) {
      causes.push_back({"FieldValueInvalid",
                        fmt::format("Invalid value: {}: must be a string", part.to_json()), here});
    } else if (part.as_string().empty()) {
      causes.push_back(rules::invalid(here, "", "must not be empty"));
    } else if (name == "kind") {
      check_kind(part.as_string(), here, causes);
    } else {
      check_api_version(part.as_string(), here, causes);
    }
  }
  if (const Value metadata = resource["metadata"]; metadata.exists())
    check_metadata(metadata, prefix + "metadata", causes);
}

}  // namespace lookout::apiserver::resources
