#include "apiserver/fields/walk.h"

#include <fmt/format.h>

#include "apiserver/fields/fields_v1.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;

/// Objects with fewer members are searched linearly.
constexpr rapidjson::SizeType kFewMembers = 12;

std::optional<PathElement> fail(std::string* why, std::string_view reason) {
  if (why != nullptr) *why = reason;
  return std::nullopt;
}

std::optional<PathElement> key_of(const FieldSchema& list,
                                  const std::vector<std::string_view>& keys, const Value& item,
                                  std::string* why) {
  if (item.IsNull()) return fail(why, "associative list with keys may not have a null element");
  if (!item.IsObject())
    return fail(why, "associative list with keys may not have non-map elements");
  std::vector<std::pair<std::string_view, std::string>> found;
  for (const std::string_view key : keys) {
    const Value* value = json::find(item, key);
    if (value == nullptr) {
      if (std::string text = list.key_default(key); !text.empty())
        found.emplace_back(key, std::move(text));
    } else if (value->IsObject() || value->IsArray()) {
      return fail(why, "associative list with keys may not have a key that is not a scalar");
    } else {
      found.emplace_back(key, canonical_json(*value));
    }
  }
  if (found.empty()) {
    std::string names;
    for (const std::string_view key : keys) {
      if (!names.empty()) names += ' ';
      names += api::detail::quote(key);
    }
    return fail(why, fmt::format("associative list with keys has an element that omits all key "
                                 "fields [{}] (and doesn't have default values for any key fields)",
                                 names));
  }
  std::sort(found.begin(), found.end());
  std::string text;
  for (const auto& [name, value] : found) {
    text += text.empty() ? "{\"" : ",\"";
    text += name;
    text += "\":";
    text += value;
  }
  text += '}';
  return PathElement{PathElement::Kind::kKey, std::move(text)};
}

}  // namespace

std::optional<PathElement> element_of(const FieldSchema& list, const Value& item,
                                      std::string* why) {
  const auto keys = list.keys();
  if (!keys.empty()) return key_of(list, keys, item, why);
  if (item.IsObject())
    return fail(why, "associative list without keys has an element that's a map type");
  if (item.IsArray()) return fail(why, "not supported: associative list with lists as elements");
  if (item.IsNull())
    return fail(why, "associative list without keys has an element that's an explicit null");
  return PathElement{PathElement::Kind::kValue, canonical_json(item)};
}

Items::Items(const FieldSchema& list, const Value* items) {
  if (items == nullptr) return;
  items_.reserve(items->Size());
  for (const Value& item : items->GetArray()) {
    auto element = element_of(list, item);
    if (!element) continue;
    const auto [at, added] = places_.emplace(element->text, items_.size());
    if (added) items_.push_back({std::move(*element), {}});
    items_[at->second].values.push_back(&item);
  }
}

const Item* Items::find(const PathElement& element) const {
  const auto at = places_.find(element.text);
  return at == places_.end() ? nullptr : &items_[at->second];
}

const Value* MembersByName::find(std::string_view name) {
  if (object_ == nullptr) return nullptr;
  const auto count = object_->MemberCount();
  const auto first = object_->MemberBegin();
  if (next_ < count && json::text_of((first + next_)->name) == name)
    return &(first + next_++)->value;
  if (count <= kFewMembers) {
    for (rapidjson::SizeType i = 0; i < count; ++i) {
      if (json::text_of((first + i)->name) != name) continue;
      next_ = i + 1;
      return &(first + i)->value;
    }
    return nullptr;
  }
  if (index_.empty()) {
    index_.reserve(count);
    for (const auto& member : object_->GetObject())
      index_.emplace(json::text_of(member.name), &member.value);
  }
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : at->second;
}

}  // namespace lookout::apiserver::fields
