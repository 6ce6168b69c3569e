// Helpers for RapidJSON documents, the mutable form of objects.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/detail/json_values.h"

namespace lookout::apiserver::json {

using Document = rapidjson::Document;
using Value = rapidjson::Value;
using Allocator = rapidjson::Document::AllocatorType;

using api::detail::copy_text;
using api::detail::deep_copy;
using api::detail::parse_json;
using api::detail::text_of;
using api::detail::to_json;

/// An empty object.
inline Value object() { return Value(rapidjson::kObjectType); }

/// The member of an object; null if there is none, or if `object` is not an object.
inline Value* find(Value& object, std::string_view name) {
  if (!object.IsObject()) return nullptr;
  for (auto& member : object.GetObject()) {
    if (text_of(member.name) == name) return &member.value;
  }
  return nullptr;
}
inline const Value* find(const Value& object, std::string_view name) {
  return find(const_cast<Value&>(object), name);
}

/// The name of a value's type in the messages of Go's encoding/json.
inline std::string_view type_name(const Value& value) {
  return value.IsObject()   ? "object"
         : value.IsArray()  ? "array"
         : value.IsString() ? "string"
         : value.IsBool()   ? "bool"
         : value.IsNull()   ? "null"
                            : "number";
}

/// The text of a member; empty if it is not a string.
inline std::string_view text(const Value& object, std::string_view name) {
  const Value* value = find(object, name);
  return value != nullptr && value->IsString() ? text_of(*value) : std::string_view{};
}

/// The integer in a member.
inline std::int64_t integer(const Value& object, std::string_view name, std::int64_t otherwise) {
  const Value* value = find(object, name);
  return value != nullptr && value->IsInt64() ? value->GetInt64() : otherwise;
}

inline void erase(Value& object, std::string_view name) {
  if (!object.IsObject()) return;
  for (auto member = object.MemberBegin(); member != object.MemberEnd(); ++member) {
    if (text_of(member->name) == name) {
      object.EraseMember(member);
      return;
    }
  }
}

/// Adds or replaces a member.
inline Value& set(Value& object, std::string_view name, Value value, Allocator& allocator) {
  if (Value* present = find(object, name)) {
    *present = std::move(value);
    return *present;
  }
  object.AddMember(copy_text(name, allocator), value, allocator);
  return (object.MemberEnd() - 1)->value;
}
inline void set(Value& object, std::string_view name, std::string_view value,
                Allocator& allocator) {
  set(object, name, copy_text(value, allocator), allocator);
}

/// Adds a member, unless it exists and is not null.
inline void set_default(Value& object, std::string_view name, Value value, Allocator& allocator) {
  const Value* present = find(object, name);
  if (present == nullptr || present->IsNull()) set(object, name, std::move(value), allocator);
}
inline void set_default(Value& object, std::string_view name, std::string_view value,
                        Allocator& allocator) {
  // In the API, an empty string equals an absent one.
  if (text(object, name).empty()) set(object, name, value, allocator);
}

/// The object in a member; created if there is none.
inline Value& child(Value& object, std::string_view name, Allocator& allocator) {
  Value* present = find(object, name);
  if (present != nullptr && present->IsObject()) return *present;
  return set(object, name, Value(rapidjson::kObjectType), allocator);
}

/// Makes a member of `to` equal to that of `from`: copies or removes it.
inline void take(Value& to, const Value& from, std::string_view name, Allocator& allocator) {
  if (const Value* value = find(from, name)) {
    set(to, name, deep_copy(*value, allocator), allocator);
  } else {
    erase(to, name);
  }
}

/// Calls `visit` with each element of the array in a member, if there is one.
template <class Visit>
void for_each(Value& object, std::string_view name, Visit visit) {
  Value* array = find(object, name);
  if (array == nullptr || !array->IsArray()) return;
  for (Value& element : array->GetArray()) visit(element);
}
template <class Visit>
void for_each(const Value& object, std::string_view name, Visit visit) {
  for_each(const_cast<Value&>(object), name, [&](const Value& element) { visit(element); });
}

}  // namespace lookout::apiserver::json
