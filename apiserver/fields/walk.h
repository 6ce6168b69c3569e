// Iterates over pairs of values, and over lists by key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// The element that identifies an item of an associative list. Empty if the item has none; `why` is
/// then structured-merge-diff's reason.
std::optional<PathElement> element_of(const FieldSchema& list, const json::Value& item,
                                      std::string* why = nullptr);

/// The items of a list by their elements, in order.
struct Item {
  PathElement element;
  std::vector<const json::Value*> values;  // several with the same element
};
class Items {
 public:
  /// Empty for a null pointer. Omits items without a key.
  Items(const FieldSchema& list, const json::Value* items);

  const std::vector<Item>& all() const { return items_; }
  const Item* find(const PathElement& element) const;

 private:
  std::vector<Item> items_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The members of an object by name. Construction takes linear time; lookups in member order are
/// fast.
class MembersByName {
 public:
  /// Empty for a null pointer.
  explicit MembersByName(const json::Value* object) : object_(object) {}

  /// Null if there is none.
  const json::Value* find(std::string_view name);

 private:
  const json::Value* object_;
  rapidjson::SizeType next_ = 0;
  std::unordered_map<std::string_view, const json::Value*> index_;
};

/// Calls `visit(name, left, right)` for each member of either object; one of the two may be null.
template <class Visit>
void for_each_member(const json::Value* left, const json::Value* right, Visit visit) {
  MembersByName in_right(right);
  if (left != nullptr) {
    for (const auto& member : left->GetObject()) {
      const std::string_view name = json::text_of(member.name);
      visit(name, &member.value, in_right.find(name));
    }
  }
  if (right == nullptr) return;
  MembersByName in_left(left);
  for (const auto& member : right->GetObject()) {
    const std::string_view name = json::text_of(member.name);
    if (in_left.find(name) == nullptr)
      visit(name, static_cast<const json::Value*>(nullptr), &member.value);
  }
}

/// The value if it is an object, or a list.
inline const json::Value* if_object(const json::Value* value) {
  return value != nullptr && value->IsObject() ? value : nullptr;
}
inline const json::Value* if_list(const json::Value* value) {
  return value != nullptr && value->IsArray() ? value : nullptr;
}
inline bool has_content(const json::Value* object_or_list) {
  if (object_or_list == nullptr) return false;
  return object_or_list->IsObject() ? !object_or_list->ObjectEmpty() : !object_or_list->Empty();
}

}  // namespace lookout::apiserver::fields
