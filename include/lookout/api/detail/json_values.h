// Helpers for values that RapidJSON 1.1 does not provide.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <string_view>

namespace lookout::api::detail {

inline std::string_view text_of(const rapidjson::Value& text) {
  return {text.GetString(), text.GetStringLength()};
}

/// Parses without recursion. Each number becomes the nearest double (RapidJSON's own parser may be
/// one off, so that printing gives other digits). Half of a surrogate pair becomes U+FFFD. Returns
/// false if the text is not JSON or has a number beyond the range of doubles.
bool parse_json(std::string_view text, rapidjson::Document& out);

/// Prints compact JSON.
inline std::string to_json(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

inline rapidjson::Value copy_text(std::string_view text,
                                  rapidjson::Document::AllocatorType& allocator) {
  // RapidJSON must not get a null pointer, even with a length of zero.
  return {text.empty() ? "" : text.data(), static_cast<rapidjson::SizeType>(text.size()),
          allocator};
}

/// A copy that shares no memory. (RapidJSON's own copy still points at strings that it did not
/// copy.)
inline rapidjson::Value deep_copy(const rapidjson::Value& value,
                                  rapidjson::Document::AllocatorType& allocator) {
  if (value.IsString()) return copy_text(text_of(value), allocator);
  if (value.IsArray()) {
    rapidjson::Value out(rapidjson::kArrayType);
    out.Reserve(value.Size(), allocator);
    for (const auto& element : value.GetArray())
      out.PushBack(deep_copy(element, allocator), allocator);
    return out;
  }
  if (value.IsObject()) {
    rapidjson::Value out(rapidjson::kObjectType);
    for (const auto& [name, member] : value.GetObject())
      out.AddMember(copy_text(text_of(name), allocator), deep_copy(member, allocator), allocator);
    return out;
  }
  return {value, allocator};
}

}  // namespace lookout::api::detail

namespace lookout::api {

// Short names of RapidJSON's types.
using Allocator = rapidjson::Document::AllocatorType;
using JsonValue = rapidjson::Value;

}  // namespace lookout::api
