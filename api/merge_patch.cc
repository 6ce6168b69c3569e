#include "lookout/api/merge_patch.h"

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/json_values.h"
#include "api/limits.h"
#include "lookout/api/error.h"

namespace lookout::api {
namespace {

using Allocator = rapidjson::Document::AllocatorType;
using JsonValue = rapidjson::Value;
using detail::copy_text;
using detail::deep_copy;
using detail::text_of;

/// So that everything below may recurse.
void check_depth(const JsonValue& value, std::size_t depth = 1) {
  if (!value.IsObject() && !value.IsArray()) return;
  if (depth > kMaxDepth) throw DecodeError("the merge patch is nested too deeply");
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) check_depth(element, depth + 1);
  } else {
    for (const auto& member : value.GetObject()) check_depth(member.value, depth + 1);
  }
}

void apply(JsonValue& target, const JsonValue& patch, Allocator& allocator) {
  if (!patch.IsObject()) {
    target = deep_copy(patch, allocator);
    return;
  }
  if (!target.IsObject()) target.SetObject();
  // One pass over either side: patches come from outside and may be wide.
  std::unordered_map<std::string_view, const JsonValue*> changes;
  for (const auto& [name, value] : patch.GetObject()) changes[text_of(name)] = &value;
  auto kept = target.MemberBegin();
  for (auto member = target.MemberBegin(); member != target.MemberEnd(); ++member) {
    if (const auto change = changes.find(text_of(member->name)); change != changes.end()) {
      const JsonValue& value = *change->second;
      changes.erase(change);
      if (value.IsNull()) continue;
      apply(member->value, value, allocator);
    }
    if (kept != member) {
      kept->name.Swap(member->name);
      kept->value.Swap(member->value);
    }
    ++kept;
  }
  if (kept != target.MemberEnd()) target.EraseMember(kept, target.MemberEnd());
  for (const auto& member : patch.GetObject()) {
    const auto change = changes.find(text_of(member.name));
    if (change == changes.end()) continue;
    if (!change->second->IsNull()) {
      JsonValue value;
      apply(value, *change->second, allocator);
      target.AddMember(copy_text(text_of(member.name), allocator), value, allocator);
    }
    changes.erase(change);
  }
}

JsonValue create(const JsonValue& before, const JsonValue& after, Allocator& allocator) {
  if (!after.IsObject()) return deep_copy(after, allocator);
  JsonValue patch(rapidjson::kObjectType);
  const auto add = [&](const JsonValue& name, JsonValue value) {
    patch.AddMember(copy_text(text_of(name), allocator), value, allocator);
  };
  const bool merging = before.IsObject();
  if (merging) {
    for (const auto& [name, value] : before.GetObject()) {
      const auto member = after.FindMember(name);
      if (member == after.MemberEnd() || member->value.IsNull()) add(name, JsonValue());
    }
  }
  for (const auto& [name, value] : after.GetObject()) {
    if (value.IsNull()) continue;
    static const JsonValue kAbsent;
    const auto member = merging ? before.FindMember(name) : after.MemberEnd();
    const bool existed = merging && member != before.MemberEnd();
    if (existed && member->value == value) continue;
    JsonValue change = create(existed ? member->value : kAbsent, value, allocator);
    const bool merged = existed && member->value.IsObject() && value.IsObject();
    if (!merged || !change.ObjectEmpty()) add(name, std::move(change));
  }
  return patch;
}

}  // namespace

void apply_merge_patch(JsonValue& target, const JsonValue& patch, Allocator& allocator) {
  check_depth(patch);
  apply(target, patch, allocator);
}

rapidjson::Document create_merge_patch(const JsonValue& before, const JsonValue& after) {
  check_depth(before);
  check_depth(after);
  rapidjson::Document patch;
  JsonValue value = create(before, after, patch.GetAllocator());
  static_cast<JsonValue&>(patch).Swap(value);
  return patch;
}

}  // namespace lookout::api
