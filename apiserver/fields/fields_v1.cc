#include "apiserver/fields/fields_v1.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "lookout/base/enum_names.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;
using Kind = PathElement::Kind;

constexpr std::string_view kSelf = ".";
/// Integers up to this are exact in a double.
constexpr double kMaxExact = 9007199254740992.0;

std::string_view prefix_of(Kind kind) {
  static constexpr auto kNames = base::enum_names<Kind>(
      {{Kind::kField, "f:"}, {Kind::kKey, "k:"}, {Kind::kValue, "v:"}, {Kind::kIndex, "i:"}});
  return kNames.name_of(kind);
}

/// Converts a double with an integer value to an integer.
void make_whole(Value& value) {
  if (value.IsDouble() && !value.IsInt64() && !value.IsUint64()) {
    const double number = value.GetDouble();
    if (std::trunc(number) == number && std::abs(number) < kMaxExact)
      value.SetInt64(static_cast<std::int64_t>(number));
  } else if (value.IsObject()) {
    for (auto& member : value.GetObject()) make_whole(member.value);
    std::sort(value.MemberBegin(), value.MemberEnd(), [](const auto& a, const auto& b) {
      return json::text_of(a.name) < json::text_of(b.name);
    });
  }
}

/// Whether the text is `{"name":"value"}` in canonical form.
bool is_plain_key(std::string_view text) {
  if (!text.starts_with("{\"") || !text.ends_with("\"}")) return false;
  const std::size_t colon = text.find("\":\"", 2);
  if (colon == std::string_view::npos || colon + 3 > text.size() - 2) return false;
  const auto is_plain = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(),
                       [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  };
  return is_plain(text.substr(2, colon - 2)) &&
         is_plain(text.substr(colon + 3, text.size() - 2 - (colon + 3)));
}

bool is_scalar(const Value& value) { return !value.IsObject() && !value.IsArray(); }

/// Parses a member of FieldsV1 to an element: 1 on success, 0 if its kind is unknown, -1 if it is
/// malformed.
int parse_element(std::string_view name, PathElement& out) {
  if (name.size() < 2 || name[1] != ':') return -1;
  const std::string_view text = name.substr(2);
  if (name[0] == 'f') {
    out = PathElement::field(text);
    return 1;
  }
  if (name[0] == 'i') {
    if (text.empty() || text.size() > 9 ||
        text.find_first_not_of("0123456789") != std::string_view::npos)
      return -1;
    out = {Kind::kIndex, std::string(text)};
    return 1;
  }
  if (name[0] != 'k' && name[0] != 'v') return 0;
  const Kind kind = name[0] == 'k' ? Kind::kKey : Kind::kValue;
  if (kind == Kind::kKey && is_plain_key(text)) {
    out = {kind, std::string(text)};
    return 1;
  }
  json::Document parsed;
  if (!json::parse_json(text, parsed)) return -1;
  if (kind == Kind::kValue && !is_scalar(parsed)) return -1;
  if (kind == Kind::kKey) {
    if (!parsed.IsObject() || parsed.ObjectEmpty()) return -1;
    for (const auto& member : parsed.GetObject()) {
      if (!is_scalar(member.value)) return -1;
    }
  }
  out = {kind, canonical_json(parsed)};
  return 1;
}

std::optional<FieldSet> parse(const Value& value, bool& self, int depth) {
  if (!value.IsObject() || depth > kMaxFieldDepth) return std::nullopt;
  FieldSet out;
  out.reserve(value.MemberCount());
  for (const auto& member : value.GetObject()) {
    const std::string_view name = json::text_of(member.name);
    if (name == kSelf) {
      self = true;
      continue;
    }
    PathElement element;
    const int known = parse_element(name, element);
    if (known < 0) return std::nullopt;
    bool in_set = false;
    auto below = parse(member.value, in_set, depth + 1);
    if (!below) return std::nullopt;
    if (known == 0) continue;
    // An element without a set below it is a member itself.
    const bool is_member = in_set || below->empty();
    out.append(std::move(element), is_member, std::move(*below));
  }
  out.finish();
  return out;
}

bool is_written(const Value& value, int depth) {
  if (!value.IsObject() || depth > kMaxFieldDepth) return false;
  return std::all_of(value.MemberBegin(), value.MemberEnd(), [&](const auto& member) {
    const std::string_view name = json::text_of(member.name);
    // Without a set below it, the element needs no "." for itself.
    if (name == kSelf)
      return depth > 0 && value.MemberCount() > 1 && member.value.IsObject() &&
             member.value.ObjectEmpty();
    PathElement element;
    return parse_element(name, element) == 1 && name.substr(2) == element.text &&
           is_written(member.value, depth + 1);
  });
}

std::string name_of(const PathElement& element) {
  return std::string(prefix_of(element.kind)) + element.text;
}

/// Whether the element with this value in FieldsV1 is a member of the set.
bool is_member(const Value& value) {
  return value.IsObject() && (value.ObjectEmpty() || json::find(value, kSelf) != nullptr);
}

}  // namespace

bool is_written_fields_v1(const Value& value) { return is_written(value, 0); }

bool has_all(const Value& fields, const FieldSet& set) {
  return std::all_of(set.nodes().begin(), set.nodes().end(), [&](const FieldSet::Node& node) {
    const Value* found = json::find(fields, name_of(node.element));
    return found != nullptr && (!node.member || is_member(*found)) && has_all(*found, node.below);
  });
}

bool has_none(const Value& fields, const FieldSet& set) {
  return std::all_of(set.nodes().begin(), set.nodes().end(), [&](const FieldSet::Node& node) {
    const Value* found = json::find(fields, name_of(node.element));
    return found == nullptr ||
           (!(node.member && is_member(*found)) && has_none(*found, node.below));
  });
}

std::string canonical_json(const Value& value) {
  if (value.IsString() || value.IsInt64() || value.IsBool()) return json::to_json(value);
  json::Document copy;
  static_cast<Value&>(copy) = json::deep_copy(value, copy.GetAllocator());
  make_whole(copy);
  return json::to_json(copy);
}

std::optional<FieldSet> parse_fields_v1(const Value& value) {
  bool self = false;
  return parse(value, self, 0);
}

Value to_fields_v1(const FieldSet& set, json::Allocator& allocator) {
  Value out(rapidjson::kObjectType);
  for (const FieldSet::Node& node : set.nodes()) {
    const std::string name = name_of(node.element);
    Value below(rapidjson::kObjectType);
    if (!node.below.empty()) {
      below = to_fields_v1(node.below, allocator);
      if (node.member) {
        below.AddMember(json::copy_text(kSelf, allocator), Value(rapidjson::kObjectType),
                        allocator);
      }
    }
    out.AddMember(json::copy_text(name, allocator), below, allocator);
  }
  return out;
}

}  // namespace lookout::apiserver::fields
