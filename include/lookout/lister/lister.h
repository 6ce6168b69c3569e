// Lister: reads the objects in an informer's store.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/base/attributes.h"
#include "lookout/lister/index.h"
#include "lookout/lister/list_range.h"
#include "lookout/lister/read_view.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::lister {

namespace detail {
/// Throws api::StatusError, as client-go's listers do.
[[noreturn]] void throw_not_found(const api::Resource& resource, std::string_view name);
template <class T>
T require_found(T found, const api::Resource& resource, std::string_view name) {
  if (!found) throw_not_found(resource, name);
  return found;
}
/// The smallest set of objects of a namespace (empty: all) that contains all matches.
struct Candidates {
  cache::ObjectRange objects;
  bool other_namespaces = false;  ///< true if objects of other namespaces may be included
};
/// Uses the index with the fewest objects: the one by namespace, or one by label
/// (cache::index_by_label) for a label that must have a certain value.
Candidates candidates(const cache::Snapshot& now, const api::labels::Selector& selector,
                      std::string_view ns = {});
}  // namespace detail

/// The objects of one namespace. An empty namespace lists all namespaces, as in client-go.
template <class T>
class NamespaceLister {
 public:
  NamespaceLister(std::shared_ptr<const cache::Indexer> store, api::Resource resource,
                  std::string ns)
      : store_(std::move(store)), resource_(std::move(resource)), ns_(std::move(ns)) {}

  /// Uses the index by namespace, or one by label as Lister::list() does if that has fewer objects;
  /// without any index, checks every object.
  ListRange<T> list(api::labels::Selector selector = {}) const {
    auto found = detail::candidates(store_->snapshot(), selector, ns_);
    return {std::move(found.objects), std::move(selector),
            found.other_namespaces ? ns_ : std::string()};
  }
  /// Returns an empty handle if there is no such object.
  T find(std::string_view name) const { return T(store_->get(ns_, name)); }
  /// Throws api::StatusError (api::is_not_found) if there is no such object.
  T get(std::string_view name) const { return detail::require_found(find(name), resource_, name); }

 private:
  std::shared_ptr<const cache::Indexer> store_;
  api::Resource resource_;
  std::string ns_;
};

/// client-go's listers: reads an informer's store by selector, namespace, name and index. A small
/// value; safe to use from any thread. Each call reads the store's current state.
template <class T>
class Lister {
 public:
  Lister(std::shared_ptr<const cache::Indexer> store, api::Resource resource)
      : store_(std::move(store)), resource_(std::move(resource)) {}

  /// Uses an index by label (cache::index_by_label) if the selector requires one value of that
  /// label; of several such indexes, the one with the fewest objects. Otherwise checks every object.
  ListRange<T> list(api::labels::Selector selector = {}) const {
    auto found = detail::candidates(store_->snapshot(), selector);
    return {std::move(found.objects), std::move(selector)};
  }
  NamespaceLister<T> ns(std::string_view name) const {
    return {store_, resource_, std::string(name)};
  }
  ListRange<T> by_index(std::string_view index, std::string_view value) const {
    return {store_->snapshot().by_index(index, value), {}};
  }

  /// The objects with these keys, in the same order; an empty handle for a key without an object.
  /// Faster than a find() for each key.
  std::vector<T> find_many(std::span<const cache::ObjectName> keys) const {
    const ReadView<T> view = read();
    const cache::BorrowedList<T> found = view.find_many(keys);
    return {found.begin(), found.end()};
  }
  /// For many lookups at once.
  ReadView<T> read() const { return ReadView<T>(store_); }

  /// A handle to the index of this name. Throws InvalidArgument if the store has none.
  Index<T> index(std::string name) const { return {store_, std::move(name)}; }

  /// For keys as an event handler adds them to a work queue: "namespace/name", or "name" for
  /// cluster-scoped objects (client-go's GetByKey). Returns an empty handle if there is no such
  /// object.
  T find_by_key(std::string_view key) const { return T(store_->get_by_key(key)); }

  /// For cluster-scoped types.
  T find(std::string_view name) const { return T(store_->get({}, name)); }
  T get(std::string_view name) const { return detail::require_found(find(name), resource_, name); }

 private:
  std::shared_ptr<const cache::Indexer> store_;
  api::Resource resource_;
};

}  // namespace lookout::lister
