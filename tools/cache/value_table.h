// The index values of the objects in one change of a store.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lookout/tools/cache/index.h"
#include "tools/cache/store_state.h"

namespace lookout::cache::detail {

/// The values of an object in a ValueTable: their number and their position.
struct IndexedValues {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The index values of all objects of one change of the store. Stores each value once, because many
/// objects of a first list share values.
class ValueTable {
 public:
  using Id = std::uint32_t;
  struct Value {
    std::uint32_t index = 0;  // the position of the index
    std::uint32_t hash = 0;
    std::string text;
  };

  const Value& operator[](Id id) const { return values_[id]; }

  /// All values of an object, grouped by index, without duplicates.
  std::span<const Id> of(IndexedValues values) const {
    return {ids_.data() + values.first, values.count};
  }
  /// The values in one index, as sorted ids.
  std::span<const Id> of(IndexedValues values, std::size_t index) const {
    const auto found = std::ranges::equal_range(of(values), index, {},
                                                [this](Id id) { return values_[id].index; });
    return {found.begin(), found.end()};
  }
  /// True if two objects have the same values in all indexes.
  bool same(IndexedValues a, IndexedValues b) const { return std::ranges::equal(of(a), of(b)); }

  /// The value of Slot::filing() for these values; `first` is the position of this table's index 0. The
  /// checksums of two groups of indexes add up to that of both.
  std::uint16_t filing(IndexedValues values, std::size_t first = 0) const {
    std::uint32_t sum = 0;
    for (const Id id : of(values)) {
      const Value& value = values_[id];
      const auto index = static_cast<std::uint32_t>(value.index + first + 1);
      sum += (value.hash ^ index * 0x9E3779B9U) * 0x85EBCA6BU >> 16;
    }
    return static_cast<std::uint16_t>(sum);
  }

  /// The output buffer of index functions.
  IndexValues& said() { return said_; }

  /// Call in the order of the indexes.
  void add(IndexedValues& to, std::size_t index, std::span<const std::string> texts) {
    if (to.count == 0) to.first = static_cast<std::uint32_t>(ids_.size());
    const std::size_t begin = ids_.size();
    for (const auto& text : texts) ids_.push_back(id_of(index, text));
    const auto added = ids_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (texts.size() > 1) {
      std::sort(added, ids_.end());
      ids_.erase(std::unique(added, ids_.end()), ids_.end());
    }
    to.count += static_cast<std::uint32_t>(ids_.size() - begin);
  }

  /// Removes all values, but keeps their memory unless it is large.
  void clear() {
    if (used_ > kFew || ids_.size() > kMostKept) *this = {};
    used_ = 0;
    ids_.clear();
  }

 private:
  static constexpr std::size_t kFew = 8;  // up to this number, searches are linear
  static constexpr std::size_t kMostKept = 64;
  static constexpr Id kNone = 0xFFFFFFFF;

  Id id_of(std::size_t index, const std::string& text) {
    if (slots_.empty()) {
      for (std::size_t i = 0; i < used_; ++i) {
        if (values_[i].index == index && values_[i].text == text) return static_cast<Id>(i);
      }
      return add_value(index, text, hash_text(text));
    }
    const std::uint32_t hash = hash_text(text);
    for (std::size_t at = slot_of(hash); slots_[at] != kNone;
         at = slot_of(static_cast<std::uint32_t>(at + 1))) {
      const Value& value = values_[slots_[at]];
      if (value.hash == hash && value.index == index && value.text == text) return slots_[at];
    }
    return add_value(index, text, hash);
  }

  Id add_value(std::size_t index, const std::string& text, std::uint32_t hash) {
    const auto id = static_cast<Id>(used_++);
    if (values_.size() < used_) values_.emplace_back();
    values_[id].index = static_cast<std::uint32_t>(index);
    values_[id].hash = hash;
    values_[id].text = text;
    if (used_ > kFew) note(id);
    return id;
  }

  // (Their number is a power of two.)
  std::size_t slot_of(std::uint32_t hash) const { return hash & (slots_.size() - 1); }

  /// Adds a value to the hash table, of which at most half is in use.
  void note(Id added) {
    Id first = added;
    if (slots_.size() < 2 * used_) {
      slots_.assign(std::bit_ceil(4 * used_), kNone);
      first = 0;
    }
    for (Id id = first; id <= added; ++id) {
      std::size_t at = slot_of(values_[id].hash);
      while (slots_[at] != kNone) at = slot_of(static_cast<std::uint32_t>(at + 1));
      slots_[at] = id;
    }
  }

  IndexValues said_;
  std::vector<Value> values_;  // the first used_ of them count
  std::size_t used_ = 0;
  std::vector<Id> ids_;    // of all objects, one after the other
  std::vector<Id> slots_;  // a hash table of values_, once there are more than kFew
};

}  // namespace lookout::cache::detail
