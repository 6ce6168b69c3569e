// EditedMembers: efficient changes of an object's members.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lookout/api/detail/json_values.h"

namespace lookout::api::detail {

/// The members of an object during changes. Lookups take constant time; remaining members keep their
/// order. Do not change the object itself between construction and finish().
class EditedMembers {
 public:
  EditedMembers(rapidjson::Value& object, rapidjson::Document::AllocatorType& allocator)
      : object_(object), allocator_(allocator) {
    slots_.reserve(object.MemberCount());
    for (auto& member : object.GetObject()) add_slot(text_of(member.name), &member.value);
    old_count_ = slots_.size();
  }

  std::size_t size() const { return slots_.size(); }

  /// Null if there is none. The pointer is valid until finish().
  rapidjson::Value* find(std::string_view name) {
    const auto it = index_.find(name);
    return it == index_.end() || !slots_[it->second].present ? nullptr : slots_[it->second].value;
  }

  void remove(std::string_view name) {
    if (const auto it = index_.find(name); it != index_.end()) slots_[it->second].present = false;
  }

  /// `name` must live until finish().
  void set(std::string_view name, rapidjson::Value value) {
    auto it = index_.find(name);
    if (it == index_.end()) {
      added_.emplace_back();
      add_slot(name, &added_.back());
      it = index_.find(name);
    }
    Slot& slot = slots_[it->second];
    slot.present = true;
    *slot.value = std::move(value);
  }

  /// Removes all others.
  void retain(const std::unordered_set<std::string_view>& names) {
    for (auto& slot : slots_) slot.present = slot.present && names.contains(slot.name);
  }

  /// Writes the changes to the object. Do not call any function afterwards.
  void finish() {
    auto kept = object_.MemberBegin();
    auto member = object_.MemberBegin();
    for (std::size_t i = 0; i < old_count_; ++i, ++member) {
      if (!slots_[i].present) continue;
      if (kept != member) {
        kept->name.Swap(member->name);
        kept->value.Swap(member->value);
      }
      ++kept;
    }
    if (kept != object_.MemberEnd()) object_.EraseMember(kept, object_.MemberEnd());
    for (std::size_t i = old_count_; i < slots_.size(); ++i) {
      if (slots_[i].present)
        object_.AddMember(copy_text(slots_[i].name, allocator_), *slots_[i].value, allocator_);
    }
  }

 private:
  struct Slot {
    std::string_view name;
    rapidjson::Value* value;
    bool present = true;
  };

  void add_slot(std::string_view name, rapidjson::Value* value) {
    index_.insert_or_assign(name, slots_.size());
    slots_.push_back({name, value});
  }

  rapidjson::Value& object_;
  rapidjson::Document::AllocatorType& allocator_;
  std::vector<Slot> slots_;  // those of the object, then new ones
  std::size_t old_count_ = 0;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::deque<rapidjson::Value> added_;  // a deque: the slots point into it
};

}  // namespace lookout::api::detail
