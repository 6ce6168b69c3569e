#include "apiserver/resources/schema_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "apiserver/resources/field.h"
#include "apiserver/resources/formats.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/structural_schema.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::array<std::string_view, 6> kTypes = {"array",  "boolean", "integer",
                                                    "number", "object",  "string"};
constexpr std::array<std::string_view, 3> kListTypes = {"atomic", "set", "map"};
constexpr std::array<std::string_view, 2> kMapTypes = {"atomic", "granular"};
constexpr const char* kListType = "x-kubernetes-list-type";
constexpr const char* kListKeys = "x-kubernetes-list-map-keys";
constexpr const char* kMapType = "x-kubernetes-map-type";
constexpr const char* kEmbedded = "x-kubernetes-embedded-resource";
constexpr const char* kIntOrString = "x-kubernetes-int-or-string";
constexpr const char* kPreserve = "x-kubernetes-preserve-unknown-fields";
constexpr const char* kValidations = "x-kubernetes-validations";
/// JSON Schema keywords that structural schemas do not support.
constexpr std::array<std::string_view, 6> kForeignWords = {
    "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"};

/// Calls `each(part, path)` for the schemas of properties, items and other members.
template <class Each>
void for_each_part(Value schema, const std::string& path, Each each) {
  for (const auto& [name, property] : schema["properties"].members())
    each(property, fmt::format("{}.properties[{}]", path, name));
  for (const char* part : {"items", "additionalProperties"}) {
    if (schema[part].is_object()) each(schema[part], fmt::format("{}.{}", path, part));
  }
}

/// Calls `each(part, path)` for the schemas in allOf, anyOf, oneOf and not.
template <class Each>
void for_each_combined(Value schema, const std::string& path, Each each) {
  for (const char* combination : {"allOf", "anyOf", "oneOf"}) {
    std::size_t index = 0;
    for (const Value one : schema[combination].elements())
      each(one, fmt::format("{}.{}[{}]", path, combination, index++));
  }
  if (schema["not"].is_object()) each(schema["not"], path + ".not");
}

/// Whether a member of a schema has an effect: false, "" and empty lists do not.
bool says_anything(Value member) {
  if (!member.exists() || member.is_null()) return false;
  if (const auto flag = member.to_bool()) return *flag;
  if (member.is_string()) return !member.as_string().empty();
  return member.is_number() || !member.empty();
}

/// Whether the alternatives are "integer" and "string", the only combination of types that is
/// allowed.
bool is_int_or_string(Value alternatives) {
  return alternatives.size() == 2 && alternatives[0]["type"].as_string() == "integer" &&
         alternatives[1]["type"].as_string() == "string";
}

class SchemaRules {
 public:
  explicit SchemaRules(Causes& causes) : causes_(causes) {}

  void check_root(Value schema, const std::string& path) {
    if (schema["nullable"].as_bool())
      causes_.push_back(
          rules::forbidden(path + ".nullable", "nullable cannot be true at the root"));
    if (const Value more = schema["additionalProperties"]; more.exists() && !more.is_null())
      forbid(path + ".additionalProperties", "must not be used at the root");
    check(schema, path, "must not be empty at the root");
    check_names(schema, path);
    check_metadata(schema["properties"]["metadata"], path + ".properties[metadata]");
    for (const char* name : {"apiVersion", "kind", "metadata"}) {
      forbid_defaults(schema["properties"][name], fmt::format("{}.properties[{}]", path, name),
                      name);
    }
    for_each_combined(schema, path, [&](Value part, const std::string& there) {
      check_complete(part, schema, path, there);
    });
  }

  /// An object's status is validated only with its part of the schema, so the root must not have rules
  /// for both.
  void check_root_beside_status(Value schema, const std::string& path) {
    constexpr std::array<std::string_view, 22> kAllowed = {"Description",
                                                           "Type",
                                                           "Format",
                                                           "Title",
                                                           "Maximum",
                                                           "ExclusiveMaximum",
                                                           "Minimum",
                                                           "ExclusiveMinimum",
                                                           "MaxLength",
                                                           "MinLength",
                                                           "Pattern",
                                                           "MaxItems",
                                                           "MinItems",
                                                           "UniqueItems",
                                                           "MultipleOf",
                                                           "Required",
                                                           "Items",
                                                           "Properties",
                                                           "ExternalDocs",
                                                           "Example",
                                                           "XPreserveUnknownFields",
                                                           "XValidations"};
    for (const auto& [name, member] : schema.members()) {
      if (!says_anything(member) || name == kPreserve || name == kValidations) continue;
      // Other rules forbid these at the root.
      if (name == "nullable" || name == "additionalProperties" || is_one_of(name, kForeignWords))
        continue;
      const auto is_it = [&](std::string_view allowed) {
        return base::equal_ignoring_case(allowed, name);
      };
      if (std::any_of(kAllowed.begin(), kAllowed.end(), is_it)) continue;
      causes_.push_back(
          {"FieldValueInvalid",
           fmt::format("Invalid value: {}: only [{}] fields are allowed at the root of "
                       "the schema if the status subresource is enabled",
                       schema.to_json(), fmt::join(kAllowed, " ")),
           path});
      return;
    }
  }

 private:
  void check(Value schema, const std::string& path, std::string_view missing_type) {
    for_each_part(schema, path, [&](Value part, const std::string& there) {
      check(part, there,
            there.ends_with(".items") ? "must not be empty for specified array items"
                                      : "must not be empty for specified object fields");
    });
    check_type(schema, path, missing_type);
    check_words(schema, path);
    check_preserving(schema, path);
    check_rules_of_cel(schema, path);
    check_lists(schema, path);
    check_maps(schema, path);
    check_embedded(schema, path);
    check_default(schema, path);
    if (schema["uniqueItems"].as_bool()) {
      forbid(path + ".uniqueItems",
             "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    }
    const Value more = schema["additionalProperties"];
    if ((more.is_object() || more.to_bool() == false) && !schema["properties"].empty()) {
      forbid(path + ".additionalProperties",
             "additionalProperties and properties are mutual exclusive");
    }
    const bool may_combine_types = schema[kIntOrString].as_bool();
    for_each_combined(schema, path, [&](Value part, const std::string& there) {
      if (may_combine_types &&
          (is_int_or_string(schema["anyOf"]) || is_int_or_string(part["anyOf"])))
        return;
      check_combined(part, there);
    });
  }

  void check_type(Value schema, const std::string& path, std::string_view missing_type) {
    const std::string_view type = schema["type"].as_string();
    const bool is_free = schema[kIntOrString].as_bool() || schema[kPreserve].as_bool();
    if (type.empty()) {
      // check_embedded() requires the type.
      if (!is_free && !schema[kEmbedded].as_bool()) require(path + ".type", missing_type);
      return;
    }
    if (type == "null")
      forbid(path + ".type", "type cannot be set to null, use nullable as an alternative");
    if (!is_one_of(type, kTypes))
      causes_.push_back(rules::not_supported(path + ".type", type, kTypes));
    if (type == "array" && !schema["items"].exists()) require(path + ".items", "must be specified");
  }

  void check_words(Value schema, const std::string& path) {
    for (const std::string_view word : kForeignWords) {
      const Value member = schema[word];
      const bool is_meant = word == "additionalItems" || word == "dependencies" || word == "$ref"
                                ? member.exists() && !member.is_null()
                                : says_anything(member);
      if (is_meant)
        forbid(fmt::format("{}.{}", path, word), fmt::format("{} is not supported", word));
    }
    if (schema["items"].is_array())
      forbid(path + ".items", "items must be a schema object and not an array");
  }

  /// x-kubernetes-preserve-unknown-fields must be true or absent: `false` would not undo an outer `true`.
  void check_preserving(Value schema, const std::string& path) {
    if (schema[kIntOrString].as_bool()) {
      for (const char* name : {kPreserve, kEmbedded}) {
        if (!schema[name].as_bool()) continue;
        causes_.push_back(
            {"FieldValueInvalid",
             "Invalid value: true: must be false if x-kubernetes-int-or-string is true",
             fmt::format("{}.{}", path, name)});
      }
    }
    if (!schema[kPreserve].exists() || schema[kPreserve].is_null() || schema[kPreserve].as_bool())
      return;
    causes_.push_back({"FieldValueInvalid", "Invalid value: false: must be true or undefined",
                       fmt::format("{}.{}", path, kPreserve)});
  }

  void check_lists(Value schema, const std::string& path) {
    const std::string_view list_type = schema[kListType].as_string();
    const Value keys = schema[kListKeys];
    if (!list_type.empty()) {
      require_type(schema, path, "array", "must be array if x-kubernetes-list-type is specified");
      if (!is_one_of(list_type, kListTypes))
        causes_.push_back(
            rules::not_supported(fmt::format("{}.{}", path, kListType), list_type, kListTypes));
    }
    if (!keys.empty() && list_type != "map") {
      constexpr const char* kWhy = "must be map if x-kubernetes-list-map-keys is non-empty";
      const std::string there = fmt::format("{}.{}", path, kListType);
      causes_.push_back(list_type.empty() ? rules::required(there, kWhy)
                                          : rules::invalid(there, list_type, kWhy));
    }
    const Value items = schema["items"];
    if ((list_type == "set" || list_type == "map") && items["nullable"].as_bool()) {
      forbid(path + ".items.nullable",
             fmt::format("cannot be nullable when x-kubernetes-list-type is {}", list_type));
    }
    if (list_type == "set") {
      const std::string_view of = items["type"].as_string();
      const bool is_atomic = of == "array" ? items[kListType].as_string() == "atomic"
                                           : items[kMapType].as_string() == "atomic";
      const char* said_by = of == "array" ? kListType : kMapType;
      // A nested list is atomic by default.
      if ((of == "object" && !is_atomic) ||
          (of == "array" && items[kListType].exists() && !is_atomic)) {
        causes_.push_back({"FieldValueInvalid",
                           fmt::format("Invalid value: {}: must be atomic as item of a list with "
                                       "x-kubernetes-list-type=set",
                                       items[said_by].exists() ? items[said_by].to_json() : "null"),
                           fmt::format("{}.items.{}", path, said_by)});
      }
    }
    if (list_type == "map") check_keys(keys, items, path);
  }

  void check_keys(Value keys, Value items, const std::string& path) {
    const std::string there = fmt::format("{}.{}", path, kListKeys);
    if (!items.exists())
      require(path + ".items", "must have a schema if x-kubernetes-list-type is map");
    if (const auto type = items["type"].as_string(); items.is_object() && type != "object") {
      refuse(path + ".items.type", type,
             "must be object if parent array's x-kubernetes-list-type is map");
    }
    if (keys.empty()) return require(there, "must not be empty if x-kubernetes-list-type is map");
    if (items["type"].as_string() != "object") return;
    std::set<std::string_view> seen;
    const auto refuse_keys = [&](const char* why) {
      causes_.push_back(
          {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", keys.to_json(), why), there});
    };
    for (const Value key : keys.elements()) {
      const std::string_view name = key.as_string();
      if (!seen.insert(name).second) {
        refuse_keys("must not contain duplicate entries");
        continue;
      }
      const Value property = items["properties"][name];
      if (!property.exists()) {
        refuse_keys("entries must all be names of item properties");
        continue;
      }
      const std::string at = fmt::format("{}.items.properties[{}]", path, name);
      if (const auto type = property["type"].as_string(); type == "object" || type == "array") {
        refuse(at + ".type", type,
               "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (property["nullable"].as_bool()) {
        forbid(at + ".nullable",
               "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
      }
      const auto required = items["required"].elements();
      const bool is_required = std::any_of(required.begin(), required.end(),
                                           [&](Value one) { return one.as_string() == name; });
      if (!is_required && !property["default"].exists()) {
        require(at + ".default",
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property");
      }
    }
  }

  void check_maps(Value schema, const std::string& path) {
    const std::string_view map_type = schema[kMapType].as_string();
    if (map_type.empty()) return;
    require_type(schema, path, "object", "must be object if x-kubernetes-map-type is specified");
    if (!is_one_of(map_type, kMapTypes))
      causes_.push_back(
          rules::not_supported(fmt::format("{}.{}", path, kMapType), map_type, kMapTypes));
  }

  void check_embedded(Value schema, const std::string& path) {
    if (!schema[kEmbedded].as_bool()) return;
    require_type(schema, path, "object",
                 "must be object if x-kubernetes-embedded-resource is true");
    if (const Value more = schema["additionalProperties"]; more.exists() && !more.is_null()) {
      forbid(path + ".additionalProperties",
             "must not be used if x-kubernetes-embedded-resource is set");
    }
    check_names(schema, path);
    if (schema["properties"].empty() && !schema[kPreserve].as_bool()) {
      require(path + ".properties",
              "must not be empty if x-kubernetes-embedded-resource is true without "
              "x-kubernetes-preserve-unknown-fields");
    }
  }

  /// A default must be valid, and must not be changed by pruning.
  void check_default(Value schema, const std::string& path) {
    const Value value = schema["default"];
    if (!value.exists() || value.is_null()) return;
    const std::string there = path + ".default";
    const json::Document whole = json_of(value);
    json::Document known = json_of(value);
    prune_default(known, schema);
    if (!(known == whole)) {
      causes_.push_back(
          {"FieldValueInvalid",
           fmt::format("Invalid value: {}: must not have unknown fields", value.to_json()), there});
      return;
    }
    Causes found;
    validate_default(value, schema, found);
    for (api::StatusCause& cause : found) {
      const bool is_root = cause.field.empty() || cause.field == "<nil>";
      cause.field = is_root ? there : fmt::format("{}.{}", there, cause.field);
      causes_.push_back(std::move(cause));
    }
  }

  static json::Document json_of(Value value) {
    json::Document out;
    json::parse_json(value.to_json(), out);
    return out;
  }

  /// Schemas in allOf, anyOf, oneOf and not must not have types, defaults and descriptions.
  void check_combined(Value schema, const std::string& path) {
    for (const char* name : {"type", "description", "title"}) {
      if (!schema[name].as_string().empty())
        forbid(fmt::format("{}.{}", path, name), "must be empty to be structural");
    }
    for (const char* name : {kListKeys, kValidations}) {
      if (!schema[name].empty())
        forbid(fmt::format("{}.{}", path, name), "must be empty to be structural");
    }
    for (const char* name : {"default", "additionalProperties", kListType, kMapType}) {
      if (schema[name].exists())
        forbid(fmt::format("{}.{}", path, name), "must be undefined to be structural");
    }
    for (const char* name : {"nullable", kPreserve, kEmbedded, kIntOrString}) {
      if (schema[name].as_bool())
        forbid(fmt::format("{}.{}", path, name), "must be false to be structural");
    }
    if (schema["properties"]["metadata"].exists())
      forbid(path + ".properties[metadata]", "must not be specified in a nested context");
    check_words(schema, path);
    check_preserving(schema, path);
    const auto deeper = [&](Value part, const std::string& there) { check_combined(part, there); };
    for_each_part(schema, path, deeper);
    for_each_combined(schema, path, deeper);
  }

  /// Schemas in allOf, anyOf, oneOf and not must only refer to properties of the schema. (Kubernetes
  /// checks those of the root.)
  void check_complete(Value part, Value schema, const std::string& path, const std::string& there) {
    if (!schema.is_object())
      return require(path, fmt::format("because it is defined in {}", there));
    for_each_combined(part, there, [&](Value deeper, const std::string& at) {
      check_complete(deeper, schema, path, at);
    });
    if (part["items"].is_object())
      check_complete(part["items"], schema["items"], path + ".items", there + ".items");
    for (const auto& [name, property] : part["properties"].members()) {
      check_complete(property, schema["properties"][name],
                     fmt::format("{}.properties[{}]", path, name),
                     fmt::format("{}.properties[{}]", there, name));
    }
  }

  /// CEL rules are not compiled; only other errors in them are reported.
  void check_rules_of_cel(Value schema, const std::string& path) {
    constexpr std::array<std::string_view, 4> kReasons = {
        "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"};
    const auto is_blank = [](std::string_view text) { return base::trim(text).empty(); };
    const auto has_breaks = [](std::string_view text) {
      return text.find_first_of("\r\n") != std::string_view::npos;
    };
    std::size_t index = 0;
    for (const Value rule : schema[kValidations].elements()) {
      const std::string here = fmt::format("{}.{}[{}].", path, kValidations, index++);
      const std::string_view text = rule["rule"].as_string();
      const std::string_view message = rule["message"].as_string();
      if (is_blank(text)) {
        require(here + "rule", "rule is not specified");
      } else if (!message.empty() && is_blank(message)) {
        refuse(here + "message", message, "must be non-empty if specified");
      } else if (has_breaks(base::trim(message))) {
        refuse(here + "message", message, "must not contain line breaks");
      } else if (has_breaks(base::trim(text)) && message.empty()) {
        require(here + "message", "message must be specified if rule contains line breaks");
      }
      const std::string_view expression = rule["messageExpression"].as_string();
      if (!expression.empty() && is_blank(expression))
        require(here + "messageExpression", "messageExpression must be non-empty if specified");
      if (const Value reason = rule["reason"];
          reason.is_string() && !is_one_of(reason.as_string(), kReasons))
        causes_.push_back(rules::not_supported(here + "reason", reason.as_string(), kReasons));
      const std::string_view field = rule["fieldPath"].as_string();
      if (!field.empty() && is_blank(field))
        refuse(here + "fieldPath", field, "must be non-empty if specified");
      if (has_breaks(field)) refuse(here + "fieldPath", field, "must not contain line breaks");
    }
  }

  /// apiVersion, kind and metadata have fixed types.
  void check_names(Value schema, const std::string& path) {
    const Value properties = schema["properties"];
    const auto check_type_of = [&](const char* name, std::string_view type, std::string_view why) {
      const Value property = properties[name];
      if (const auto actual = property["type"].as_string(); property.exists() && actual != type)
        refuse(fmt::format("{}.properties[{}].type", path, name), actual, why);
    };
    check_type_of("apiVersion", "string", "must be string");
    check_type_of("kind", "string", "must be string");
    check_type_of("metadata", "object", "must be object");
  }

  /// The metadata of the root.
  void check_metadata(Value metadata, const std::string& path) {
    for (const auto& [name, member] : metadata.members()) {
      if (name == "type" || name == "default" || !says_anything(member)) continue;
      const auto is_known = [](const auto& property) {
        return property.name == "name" || property.name == "generateName";
      };
      const auto properties = member.members();
      if (name == "properties" && std::all_of(properties.begin(), properties.end(), is_known))
        continue;
      return forbid(path,
                    "must not specify anything other than name and generateName, but metadata is "
                    "implicitly specified");
    }
  }

  void forbid_defaults(Value schema, const std::string& path, std::string_view name) {
    if (schema["default"].exists())
      forbid(path + ".default", fmt::format("must not be set in top-level {}", name));
    for_each_part(schema, path, [&](Value part, const std::string& there) {
      forbid_defaults(part, there, name);
    });
  }

  void require_type(Value schema, const std::string& path, std::string_view type,
                    std::string_view why) {
    const std::string_view actual = schema["type"].as_string();
    if (actual.empty()) return require(path + ".type", why);
    if (actual != type) refuse(path + ".type", actual, why);
  }

  void require(const std::string& field, std::string_view why) {
    causes_.push_back(rules::required(field, why));
  }
  void refuse(const std::string& field, std::string_view value, std::string_view why) {
    causes_.push_back(rules::invalid(field, value, why));
  }
  void forbid(const std::string& field, std::string_view why) {
    causes_.push_back(rules::forbidden(field, why));
  }

  Causes& causes_;
};

}  // namespace

void validate_schema_rules(Value schema, const std::string& path, bool has_status, Causes& causes) {
  SchemaRules rules(causes);
  if (has_status) rules.check_root_beside_status(schema, path);
  rules.check_root(schema, path);
}

bool has_defaults(Value schema) {
  bool found = schema["default"].exists();
  for_each_part(schema, "", [&](Value part, const std::string&) { found |= has_defaults(part); });
  return found;
}

bool has_cel_rules(Value schema) {
  bool found = !schema[kValidations].empty();
  for_each_part(schema, "", [&](Value part, const std::string&) { found |= has_cel_rules(part); });
  return found;
}

std::vector<std::string> unknown_formats(Value schema) {
  std::vector<std::string> out;
  const std::string_view format = schema["format"].as_string();
  if (!format.empty() && !is_known_format(schema["type"].as_string(), format))
    out.emplace_back(format);
  const auto deeper = [&](Value part, const std::string&) {
    for (std::string& one : unknown_formats(part)) out.push_back(std::move(one));
  };
  for_each_combined(schema, "", deeper);
  for_each_part(schema, "", deeper);
  return out;
}

}  // namespace lookout::apiserver::resources
