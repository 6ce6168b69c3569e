// A bounded cache that evicts the least recently used entry.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lookout::record::detail {

/// Not thread-safe.
template <class Value>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  /// Finds an entry and marks it as most recently used; null if there is none.
  Value* find(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  /// Finds or creates an entry; evicts the least recently used one if the cache is full. Valid until the
  /// next call.
  Value& get(std::string_view key) {
    if (Value* const known = find(key)) return *known;
    if (entries_.size() >= capacity_ && !entries_.empty()) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::string(key), Value());
    index_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const std::string, Value>>;

  const std::size_t capacity_;
  Entries entries_;
  // The keys refer to those in entries_.
  std::unordered_map<std::string_view, typename Entries::iterator> index_;
};

}  // namespace lookout::record::detail
