#include "lookout/api/merge_patch.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lookout/api/detail/json_values.h"
#include "lookout/api/error.h"

namespace lookout::api {
namespace {

using detail::copy_text;
using detail::deep_copy;
using detail::text_of;

// The maximum depth of a patch, far beyond real ones.
constexpr std::size_t kDeepest = 1000;

/// Limits the depth, so that the functions below may recurse.
void check_depth(const JsonValue& value, std::size_t depth = 1) {
  if (!value.IsObject() && !value.IsArray()) return;
  if (depth > kDeepest) throw DecodeError("the merge patch is nested too deeply");
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) check_depth(element, depth + 1);
  } else {
    for (const auto& member : value.GetObject()) check_depth(member.value, depth + 1);
  }
}

void apply(JsonValue& target, const JsonValue& patch, NullsInLists nulls, Allocator& allocator);

/// A copy of a list without the null members of objects in it.
JsonValue without_nulls(const JsonValue& list, Allocator& allocator) {
  JsonValue out(rapidjson::kArrayType);
  out.Reserve(list.Size(), allocator);
  for (const auto& element : list.GetArray()) {
    JsonValue copy;
    apply(copy, element, NullsInLists::kDrop, allocator);
    out.PushBack(copy, allocator);
  }
  return out;
}

void apply(JsonValue& target, const JsonValue& patch, NullsInLists nulls, Allocator& allocator) {
  if (!patch.IsObject()) {
    const bool drop = nulls == NullsInLists::kDrop && patch.IsArray() && !target.IsObject();
    target = drop ? without_nulls(patch, allocator) : deep_copy(patch, allocator);
    return;
  }
  if (!target.IsObject()) target.SetObject();
  // One pass over each side: patches are untrusted and may be wide.
  std::unordered_map<std::string_view, const JsonValue*> changes;
  for (const auto& [name, value] : patch.GetObject()) changes[text_of(name)] = &value;
  auto kept = target.MemberBegin();
  for (auto member = target.MemberBegin(); member != target.MemberEnd(); ++member) {
    if (const auto change = changes.find(text_of(member->name)); change != changes.end()) {
      const JsonValue& value = *change->second;
      changes.erase(change);
      if (value.IsNull()) continue;
      apply(member->value, value, nulls, allocator);
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
      apply(value, *change->second, nulls, allocator);
      target.AddMember(copy_text(text_of(member.name), allocator), value, allocator);
    }
    changes.erase(change);
  }
}

/// An index of an object's members by name (the first of a name, as in RapidJSON), for many lookups
/// in a wide object. Narrow objects are searched linearly.
class MemberIndex {
 public:
  explicit MemberIndex(const JsonValue& object) : object_(object) {
    if (!object.IsObject() || object.MemberCount() < kWide) return;
    by_name_.reserve(object.MemberCount());
    for (const auto& [name, value] : object.GetObject()) by_name_.emplace(text_of(name), &value);
  }

  /// Null if there is none, or if the value is not an object.
  const JsonValue* find(const JsonValue& name) const {
    if (!object_.IsObject()) return nullptr;
    if (object_.MemberCount() < kWide) {
      const auto member = object_.FindMember(name);
      return member == object_.MemberEnd() ? nullptr : &member->value;
    }
    const auto found = by_name_.find(text_of(name));
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  static constexpr rapidjson::SizeType kWide = 16;

  const JsonValue& object_;
  std::unordered_map<std::string_view, const JsonValue*> by_name_;
};

/// Like RapidJSON's ==, which is quadratic for wide objects.
bool equal(const JsonValue& a, const JsonValue& b) {
  if (a.IsObject() && b.IsObject()) {
    if (a.MemberCount() != b.MemberCount()) return false;
    const MemberIndex index(b);
    return std::all_of(a.MemberBegin(), a.MemberEnd(), [&](const auto& member) {
      const JsonValue* other = index.find(member.name);
      return other != nullptr && equal(member.value, *other);
    });
  }
  if (a.IsArray() && b.IsArray()) return std::equal(a.Begin(), a.End(), b.Begin(), b.End(), equal);
  return a == b;
}

JsonValue create(const JsonValue& before, const JsonValue& after, Allocator& allocator) {
  if (!after.IsObject()) return deep_copy(after, allocator);
  JsonValue patch(rapidjson::kObjectType);
  const auto add = [&](const JsonValue& name, JsonValue value) {
    patch.AddMember(copy_text(text_of(name), allocator), value, allocator);
  };
  const MemberIndex had(before);
  const MemberIndex has(after);
  if (before.IsObject()) {
    for (const auto& [name, value] : before.GetObject()) {
      const JsonValue* now = has.find(name);
      if (now == nullptr || (now->IsNull() && !value.IsNull())) add(name, JsonValue());
    }
  }
  for (const auto& [name, value] : after.GetObject()) {
    if (value.IsNull()) continue;
    static const JsonValue kAbsent;
    const JsonValue* was = had.find(name);
    const bool merged = was != nullptr && was->IsObject() && value.IsObject();
    if (was != nullptr && !merged && equal(*was, value)) continue;
    JsonValue change = create(was != nullptr ? *was : kAbsent, value, allocator);
    if (!merged || !change.ObjectEmpty()) add(name, std::move(change));
  }
  return patch;
}

}  // namespace

void apply_merge_patch(JsonValue& target, const JsonValue& patch, Allocator& allocator,
                       NullsInLists nulls) {
  check_depth(patch);
  apply(target, patch, nulls, allocator);
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
