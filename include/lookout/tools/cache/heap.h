// Heap: a priority queue with keys.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/tools/cache/detail/precedence.h"

namespace lookout::cache {

/// client-go's Heap: a queue with one value per key, ordered by `less`. Any number of threads may
/// add and remove values. T must be copyable; values of equal priority come in order of arrival.
///
/// No lock is held while `key_of`, `less` or T's own functions run, so they may use the heap. The
/// order is a persistent tree (a treap): a change builds a new version next to the current one, and
/// starts again if another change was committed first. A bulk_add() that was overtaken takes
/// precedence: other changes wait for it, for a limited time.
template <class T>
class Heap {
 public:
  using KeyOf = std::function<std::string(const T&)>;
  using Less = std::function<bool(const T&, const T&)>;

  /// Both must be pure functions.
  Heap(KeyOf key_of, Less less) : key_of_(std::move(key_of)), less_(std::move(less)) {}

  /// Adds a value or replaces the one with the same key. These functions throw InvalidArgument
  /// after close().
  void add(T value) { insert(one(std::move(value)), true); }
  void update(T value) { add(std::move(value)); }
  /// Adds all values at once: none is removed before all are there.
  void bulk_add(std::vector<T> values) { insert(std::move(values), true); }
  /// Adds a value unless there is one with the same key.
  void add_if_not_present(T value) { insert(one(std::move(value)), false); }

  /// Removes the value with this key; returns false if there is none.
  bool remove(std::string_view key) {
    for (;;) {
      const State seen = state();
      const EntryPtr entry = find(key);
      if (!entry) return false;
      const NodePtr root = erase(seen.root, entry);
      if (commit(seen, root, {}, {entry})) return true;
    }
  }

  /// Waits for a value and removes the first one. Empty if a stop was requested or the heap is
  /// closed.
  std::optional<T> pop(std::stop_token stop = {}) {
    for (;;) {
      State seen;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return state_.root != nullptr || closed_; });
        if (closed_ || stop.stop_requested()) {
          if (state_.root) changed_.notify_one();  // for another waiter
          return std::nullopt;
        }
        seen = state_;
      }
      EntryPtr first;
      const NodePtr root = without_first(seen.root, first);
      if (commit(seen, root, {}, {first})) return first->value;
    }
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
    const EntryPtr entry = find(key);
    return entry ? std::optional<T>(entry->value) : std::nullopt;
  }
  /// The values in order.
  std::vector<T> list() const {
    std::vector<T> out;
    for_each(state().root, [&](const Entry& entry) { out.push_back(entry.value); });
    return out;
  }
  std::vector<std::string> list_keys() const {
    std::vector<std::string> out;
    for_each(state().root, [&](const Entry& entry) { out.push_back(entry.key); });
    return out;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::string key;
    T value;
    std::uint64_t arrival;
  };
  using EntryPtr = std::shared_ptr<const Entry>;
  struct Node;
  using NodePtr = std::shared_ptr<const Node>;
  /// Entries are ordered from left to right. Weights are random and decrease downward, which keeps
  /// the tree shallow.
  struct Node {
    EntryPtr entry;
    std::uint64_t weight;
    NodePtr left;
    NodePtr right;
  };
  struct State {
    NodePtr root;
    std::uint64_t version = 0;
  };

  static std::vector<T> one(T value) {
    std::vector<T> out;
    out.push_back(std::move(value));
    return out;
  }

  State state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  EntryPtr find(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(std::string(key));
    return at == entries_.end() ? nullptr : at->second;
  }

  void insert(std::vector<T> values, bool replace) {
    // If values have the same key, the last one counts, or the first if `replace` is false.
    std::vector<EntryPtr> arrived;
    std::unordered_map<std::string, std::size_t> places;
    for (auto& value : values) {
      std::string key = key_of_(value);
      const auto [place, first] = places.try_emplace(key, arrived.size());
      if (!first && !replace) continue;
      auto entry =
          std::make_shared<const Entry>(Entry{std::move(key), std::move(value), next_arrival_++});
      if (first) {
        arrived.push_back(std::move(entry));
      } else {
        arrived[place->second] = std::move(entry);
      }
    }
    const auto round = [&] {
      const State seen = state();
      NodePtr root = seen.root;
      std::vector<EntryPtr> added;
      std::vector<EntryPtr> replaced;
      for (const EntryPtr& entry : arrived) {
        if (EntryPtr there = find(entry->key)) {
          if (!replace) continue;
          root = erase(root, there);
          replaced.push_back(std::move(there));
        }
        root = put(
            root, std::make_shared<const Node>(Node{entry, mix(entry->arrival), nullptr, nullptr}));
        added.push_back(entry);
      }
      return commit(seen, root, added, replaced, true);
    };
    // How often a single change may be overtaken before it takes precedence.
    constexpr int kPatience = 100;
    precedence_.repeat(arrived.size() > 1 ? 1 : kPatience, round);
  }

  /// Makes `root` the current tree, unless another change was committed since `seen`. (Entries that
  /// were looked up in between then belong to `seen`, too.)
  bool commit(const State& seen, const NodePtr& root, const std::vector<EntryPtr>& added,
              const std::vector<EntryPtr>& gone, bool inserts = false) {
    precedence_.respect();
    const std::lock_guard lock(mutex_);
    if (inserts && closed_) throw InvalidArgument("the heap is closed");
    if (state_.version != seen.version) return false;
    // (The caller still holds the removed entries, so they are destroyed after the mutex is
    // released.)
    for (const auto& entry : gone) entries_.erase(entry->key);
    for (const auto& entry : added) entries_.emplace(entry->key, entry);
    state_.root = root;
    ++state_.version;
    if (inserts) changed_.notify_all();
    return true;
  }

  // --- The tree. `before` is a strict order: no two entries are equivalent.

  bool before(const Entry& a, const Entry& b) const {
    if (less_(a.value, b.value)) return true;
    return !less_(b.value, a.value) && a.arrival < b.arrival;
  }
  static NodePtr with(const Node& node, NodePtr left, NodePtr right) {
    return std::make_shared<const Node>(
        Node{node.entry, node.weight, std::move(left), std::move(right)});
  }
  NodePtr put(const NodePtr& tree, const NodePtr& added) const {
    if (!tree) return added;
    if (added->weight > tree->weight) {
      auto [left, right] = split(tree, *added->entry);
      return with(*added, std::move(left), std::move(right));
    }
    if (before(*added->entry, *tree->entry))
      return with(*tree, put(tree->left, added), tree->right);
    return with(*tree, tree->left, put(tree->right, added));
  }
  /// Splits the tree into the entries before `entry` and the others.
  std::pair<NodePtr, NodePtr> split(const NodePtr& tree, const Entry& entry) const {
    if (!tree) return {};
    if (before(*tree->entry, entry)) {
      auto [left, right] = split(tree->right, entry);
      return {with(*tree, tree->left, std::move(left)), std::move(right)};
    }
    auto [left, right] = split(tree->left, entry);
    return {std::move(left), with(*tree, std::move(right), tree->right)};
  }
  NodePtr erase(const NodePtr& tree, const EntryPtr& entry) const {
    if (!tree) return tree;
    if (tree->entry == entry) return joined(tree->left, tree->right);
    if (before(*entry, *tree->entry)) return with(*tree, erase(tree->left, entry), tree->right);
    return with(*tree, tree->left, erase(tree->right, entry));
  }
  static NodePtr joined(const NodePtr& left, const NodePtr& right) {
    if (!left) return right;
    if (!right) return left;
    if (left->weight > right->weight) return with(*left, left->left, joined(left->right, right));
    return with(*right, joined(left, right->left), right->right);
  }
  static NodePtr without_first(const NodePtr& tree, EntryPtr& first) {
    if (tree->left) return with(*tree, without_first(tree->left, first), tree->right);
    first = tree->entry;
    return tree->right;
  }
  template <class Call>
  static void for_each(const NodePtr& tree, const Call& call) {
    if (!tree) return;
    for_each(tree->left, call);
    call(*tree->entry);
    for_each(tree->right, call);
  }
  /// Pseudo-random numbers (splitmix64).
  static std::uint64_t mix(std::uint64_t n) {
    n += 0x9E3779B97F4A7C15u;
    n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9u;
    n = (n ^ (n >> 27)) * 0x94D049BB133111EBu;
    return n ^ (n >> 31);
  }

  const KeyOf key_of_;
  const Less less_;
  std::atomic<std::uint64_t> next_arrival_{0};
  detail::Precedence precedence_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_. The entries are the same as in the tree.
  State state_;
  std::unordered_map<std::string, EntryPtr> entries_;
  bool closed_ = false;
};

}  // namespace lookout::cache
