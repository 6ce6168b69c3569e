// Pruning and defaulting.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>

#include "apiserver/resources/names.h"
#include "apiserver/resources/structural_schema.h"

namespace lookout::apiserver::resources {
namespace {

/// Every object has these fields, regardless of its schema.
bool is_type_or_metadata(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

bool is_embedded(Value schema) { return schema["x-kubernetes-embedded-resource"].as_bool(); }

// ------------------------------------------------------------------------------------------- Pruning

void prune_value(json::Value& value, Value schema, bool is_object, bool kept);

/// `kept`: unknown fields are preserved by the schema, or by that of the containing list.
void prune_members(json::Value& value, Value schema, bool whole, bool kept) {
  const Value properties = schema["properties"];
  const Value others = schema["additionalProperties"];
  const bool any_name = others.is_object() || others.is_bool();
  for (auto member = value.MemberBegin(); member != value.MemberEnd();) {
    const std::string_view name = json::text_of(member->name);
    const Value property = properties[name];
    const bool is_own = whole && is_type_or_metadata(name);
    const bool is_known = property.exists() || any_name;
    if (!is_own && !is_known && !kept) {
      member = value.EraseMember(member);
      continue;
    }
    if (!is_own && is_known) {
      // With true or false, all fields of the member are unknown.
      const Value of_member = property.exists() ? property : others;
      prune_value(member->value, of_member.is_object() ? of_member : Value(), false, false);
    }
    ++member;
  }
}

/// An absent schema has no fields.
void prune_value(json::Value& value, Value schema, bool is_object, bool kept) {
  kept = kept || schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  if (value.IsArray()) {
    const Value items = schema["items"];
    if (kept && !items.is_object()) return;
    for (json::Value& element : value.GetArray())
      prune_value(element, items.is_object() ? items : Value(), false, kept);
  } else if (value.IsObject()) {
    prune_members(value, schema, is_object || is_embedded(schema), kept);
  }
}

// ------------------------------------------------------------------------------------------ Defaults

/// A copy of the schema's default; null if it has none.
json::Value default_of(Value schema, Allocator& allocator) {
  const Value otherwise = schema["default"];
  if (!otherwise.exists()) return {};
  // A default may be any JSON, so it is parsed as a member of an object.
  const json::Document document =
      Object::parse(R"({"default":)" + otherwise.to_json() + "}").to_document();
  return json::deep_copy(*json::find(document, "default"), allocator);
}

/// Whether a value is a null that the schema does not allow. It counts as absent.
bool is_unwanted_null(const json::Value& value, Value schema) {
  return value.IsNull() && schema.is_object() && !schema["nullable"].as_bool();
}

void set_defaults(json::Value& value, Value schema, bool is_object, Allocator& allocator);

void set_element_defaults(json::Value& list, Value items, Allocator& allocator) {
  for (json::Value& element : list.GetArray()) {
    // A null element without a default is kept; validation rejects it.
    if (is_unwanted_null(element, items)) element = default_of(items, allocator);
    set_defaults(element, items, false, allocator);
  }
}

void set_property_defaults(json::Value& value, Value schema, bool is_object, Allocator& allocator) {
  for (const auto& [name, property] : schema["properties"].members()) {
    if (is_object && is_type_or_metadata(name)) continue;
    json::Value* present = json::find(value, name);
    const bool null = present != nullptr && is_unwanted_null(*present, property);
    if ((present == nullptr || null) && property["default"].exists()) {
      present = &json::set(value, name, default_of(property, allocator), allocator);
    } else if (null) {
      json::erase(value, name);
      present = nullptr;
    }
    if (present != nullptr) set_defaults(*present, property, false, allocator);
  }
}

/// Sets the defaults in members that are not properties. Such members have no defaults themselves.
void set_member_defaults(json::Value& value, Value schema, Allocator& allocator) {
  const Value others = schema["additionalProperties"];
  if (!others.is_object()) return;
  for (auto member = value.MemberBegin(); member != value.MemberEnd();) {
    const bool is_other = !schema["properties"].contains(json::text_of(member->name));
    if (is_other && is_unwanted_null(member->value, others)) {
      member = value.EraseMember(member);
      continue;
    }
    if (is_other) set_defaults(member->value, others, false, allocator);
    ++member;
  }
}

void set_defaults(json::Value& value, Value schema, bool is_object, Allocator& allocator) {
  if (value.IsArray()) {
    set_element_defaults(value, schema["items"], allocator);
  } else if (value.IsObject()) {
    set_property_defaults(value, schema, is_object, allocator);
    set_member_defaults(value, schema, allocator);
  }
}

// ------------------------------------------------------------------- Whether they change anything

/// Whether prune_value() removes anything.
bool has_unknown(Value value, Value schema, bool is_object, bool kept) {
  kept = kept || schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  if (value.is_array()) {
    const Value items = schema["items"];
    if (kept && !items.is_object()) return false;
    for (const Value element : value.elements()) {
      if (has_unknown(element, items.is_object() ? items : Value(), false, kept)) return true;
    }
    return false;
  }
  const bool whole = is_object || is_embedded(schema);
  const Value properties = schema["properties"];
  const Value others = schema["additionalProperties"];
  for (const auto& [name, member] : value.members()) {
    if (whole && is_type_or_metadata(name)) continue;
    const Value property = properties[name];
    const Value of_member = property.exists() ? property : others;
    if (!of_member.is_object() && !of_member.is_bool()) {
      if (!kept) return true;
    } else if (has_unknown(member, of_member.is_object() ? of_member : Value(), false, false)) {
      return true;
    }
  }
  return false;
}

bool is_unwanted_null(Value value, Value schema) {
  return value.is_null() && schema.is_object() && !schema["nullable"].as_bool();
}

/// Whether set_defaults() changes anything. (Also true for a null whose default is null.)
bool lacks_defaults(Value value, Value schema, bool is_object) {
  if (value.is_array()) {
    const Value items = schema["items"];
    for (const Value element : value.elements()) {
      if (is_unwanted_null(element, items) && items["default"].exists()) return true;
      if (lacks_defaults(element, items, false)) return true;
    }
    return false;
  }
  if (!value.is_object()) return false;
  const Value properties = schema["properties"];
  for (const auto& [name, property] : properties.members()) {
    if (is_object && is_type_or_metadata(name)) continue;
    const Value present = value[name];
    if (present.exists() ? is_unwanted_null(present, property) : property["default"].exists())
      return true;
    if (lacks_defaults(present, property, false)) return true;
  }
  const Value others = schema["additionalProperties"];
  if (!others.is_object()) return false;
  for (const auto& [name, member] : value.members()) {
    if (properties.contains(name)) continue;
    if (is_unwanted_null(member, others) || lacks_defaults(member, others, false)) return true;
  }
  return false;
}

}  // namespace

void prune(json::Value& object, Value schema) { prune_value(object, schema, true, false); }
void prune_default(json::Value& value, Value schema) { prune_value(value, schema, false, false); }

void set_schema_defaults(json::Value& object, Value schema, Allocator& allocator) {
  set_defaults(object, schema, true, allocator);
}

bool has_unknown_fields(Value object, Value schema) {
  return has_unknown(object, schema, true, false);
}

bool is_settled(Value object, Value schema) {
  return !has_unknown_fields(object, schema) && !lacks_defaults(object, schema, true);
}

void for_each_embedded(json::Value& value, Value schema,
                       const std::function<void(json::Value& resource)>& visit) {
  if (!schema.is_object()) return;
  if (value.IsArray()) {
    for (json::Value& element : value.GetArray())
      for_each_embedded(element, schema["items"], visit);
    return;
  }
  if (!value.IsObject()) return;
  if (is_embedded(schema)) visit(value);
  for (auto& member : value.GetObject()) {
    const Value property = schema["properties"][json::text_of(member.name)];
    for_each_embedded(member.value, property.exists() ? property : schema["additionalProperties"],
                      visit);
  }
}

bool is_exact_integer(double number) {
  constexpr double kMost = 9007199254740991;
  return std::abs(number) <= kMost && number == std::trunc(number);
}

void write_numbers(json::Value& value) {
  if (value.IsArray()) {
    for (json::Value& element : value.GetArray()) write_numbers(element);
  } else if (value.IsObject()) {
    for (auto& member : value.GetObject()) write_numbers(member.value);
  } else if (value.IsUint64() && !value.IsInt64()) {
    value.SetDouble(static_cast<double>(value.GetUint64()));
  } else if (value.IsDouble()) {
    if (const double number = value.GetDouble(); is_exact_integer(number))
      value.SetInt64(static_cast<std::int64_t>(number));
  }
}

}  // namespace lookout::apiserver::resources
