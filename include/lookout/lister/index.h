// Index: a typed handle to one index of a store.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/lister/list_range.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::lister {

namespace detail {
/// Throws InvalidArgument if the store is null or has no such index.
void require_index(const std::shared_ptr<const cache::Indexer>& store, const std::string& name);
}  // namespace detail

/// One index of a store, as returned by add_index() of an informer and by Lister::index().
///
///     auto by_node = pods.add_index("by-node", [](const Pod& p) { return p.spec().node_name(); });
///     for (const auto& pod : by_node.get("node-1")) ...
///
/// A small value that keeps the store alive; safe to use from any thread. Each call reads the
/// store's current state.
template <class T>
class Index {
 public:
  /// Empty, for later assignment. Calls throw InvalidArgument until then.
  Index() = default;
  /// Throws InvalidArgument if the store has no such index.
  Index(std::shared_ptr<const cache::Indexer> store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {
    detail::require_index(store_, name_);
  }

  /// The objects with this index value: text, or a number.
  template <cache::IndexKey Key>
  ListRange<T> get(const Key& value) const {
    return get(now(), value);
  }
  /// Like get(), for a given snapshot: lookups that must be consistent with each other share one.
  template <cache::IndexKey Key>
  ListRange<T> get(const cache::Snapshot& moment, const Key& value) const {
    return {moment.by_index(name_, cache::index_text(value)), {}};
  }
  /// The number of objects that get() returns.
  template <cache::IndexKey Key>
  std::size_t count(const Key& value) const {
    return now().by_index(name_, cache::index_text(value)).size();
  }
  /// All index values that have objects, in no particular order.
  std::vector<std::string> values() const { return now().index_values(name_); }
  /// The index values of this object, which need not be in the store.
  std::vector<std::string> values_of(const T& object) const {
    detail::require_index(store_, name_);
    return store_->values_of(name_, object);
  }

  const std::string& name() const { return name_; }
  explicit operator bool() const { return store_ != nullptr; }

 private:
  cache::Snapshot now() const {
    if (!store_) detail::require_index(store_, name_);
    return store_->snapshot();
  }

  std::shared_ptr<const cache::Indexer> store_;
  std::string name_;
};

}  // namespace lookout::lister
