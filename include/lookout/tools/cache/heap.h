// Things to be dealt with, the most urgent first.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/error.h"

namespace lookout::cache {

/// client-go's Heap: each key once, in an order that the values say. Any number of threads may put
/// in and take out.
template <class T>
class Heap {
 public:
  using KeyOf = std::function<std::string(const T&)>;
  using Less = std::function<bool(const T&, const T&)>;

  /// Both are pure functions.
  Heap(KeyOf key_of, Less less) : key_of_(std::move(key_of)), order_(Before{std::move(less)}) {}

  /// Puts it in the place of the one with the same key, if there is one. These throw
  /// InvalidArgument once it is closed.
  void add(T value) { insert({std::move(value)}, true); }
  void update(T value) { add(std::move(value)); }
  /// All of them, before anybody takes one out.
  void bulk_add(std::vector<T> values) { insert(std::move(values), true); }
  /// Leaves one with the same key as it is.
  void add_if_not_present(T value) { insert({std::move(value)}, false); }

  /// Takes out the one with this key; false if there is none.
  bool remove(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(std::string(key));
    if (at == places_.end()) return false;
    order_.erase(at->second);
    places_.erase(at);
    return true;
  }

  /// Waits for something, and takes out what comes first. Nothing if a stop was requested, or if it
  /// is closed.
  std::optional<T> pop(std::stop_token stop = {}) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !order_.empty() || closed_; });
    if (closed_ || stop.stop_requested()) {
      if (!order_.empty()) changed_.notify_one();  // for somebody else
      return std::nullopt;
    }
    auto node = order_.extract(order_.begin());
    places_.erase(node.value().key);
    return std::move(node.value().value);
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  std::optional<T> get(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(std::string(key));
    return at == places_.end() ? std::nullopt : std::optional<T>(at->second->value);
  }
  /// In their order.
  std::vector<T> list() const {
    const std::lock_guard lock(mutex_);
    std::vector<T> out;
    for (const auto& entry : order_) out.push_back(entry.value);
    return out;
  }
  std::vector<std::string> list_keys() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& entry : order_) out.push_back(entry.key);
    return out;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return order_.size();
  }

 private:
  struct Entry {
    std::string key;
    T value;
  };
  struct Before {
    Less less;
    bool operator()(const Entry& a, const Entry& b) const { return less(a.value, b.value); }
  };
  using Order = std::multiset<Entry, Before>;

  void insert(std::vector<T> values, bool replace) {
    std::vector<Entry> entries;
    for (auto& value : values) {
      std::string key = key_of_(value);
      entries.push_back({std::move(key), std::move(value)});
    }
    const std::lock_guard lock(mutex_);
    if (closed_) throw InvalidArgument("the heap is closed");
    for (auto& entry : entries) {
      const auto at = places_.find(entry.key);
      if (at != places_.end()) {
        if (!replace) continue;
        order_.erase(at->second);
        at->second = order_.insert(std::move(entry));
      } else {
        std::string key = entry.key;
        places_.emplace(std::move(key), order_.insert(std::move(entry)));
      }
    }
    changed_.notify_all();
  }

  const KeyOf key_of_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  Order order_;
  std::unordered_map<std::string, typename Order::iterator> places_;
  bool closed_ = false;
};

}  // namespace lookout::cache
