// Reading what an informer keeps.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/base/attributes.h"
#include "lookout/lister/index.h"
#include "lookout/lister/list_range.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::lister {

namespace detail {
/// Throws api::StatusError, as client-go's listers do.
[[noreturn]] void throw_not_found(const api::Resource& resource, std::string_view name);
/// All in a namespace (empty: in any) that the selector can select, and no more than need be.
struct Candidates {
  cache::ObjectRange objects;
  bool other_namespaces = false;  ///< whether there may be objects of other namespaces among them
};
/// By the index that leaves the fewest: that by namespace, or one by label (cache::index_by_label)
/// for a label that must have one value.
Candidates candidates(const cache::Snapshot& now, const api::labels::Selector& selector,
                      std::string_view ns = {});
}  // namespace detail

/// The objects of one namespace; list() of the empty one lists all namespaces, as in client-go.
template <class T>
class NamespaceLister {
 public:
  NamespaceLister(std::shared_ptr<const cache::Indexer> store, api::Resource resource,
                  std::string ns)
      : store_(std::move(store)), resource_(std::move(resource)), ns_(std::move(ns)) {}

  /// By the index by namespace, or by one by label as Lister::list() does if that has fewer
  /// objects.
  ListRange<T> list(api::labels::Selector selector = {}) const {
    auto found = detail::candidates(store_->snapshot(), selector, ns_);
    return {std::move(found.objects), std::move(selector),
            found.other_namespaces ? ns_ : std::string()};
  }
  /// An empty handle if there is none.
  T find(std::string_view name) const { return T(store_->get(ns_, name)); }
  /// Throws api::StatusError (api::is_not_found) if there is none.
  T get(std::string_view name) const {
    T found = find(name);
    if (!found) detail::throw_not_found(resource_, name);
    return found;
  }

 private:
  std::shared_ptr<const cache::Indexer> store_;
  api::Resource resource_;
  std::string ns_;
};

/// client-go's listers: what an informer keeps, by selector, namespace, name and index. A small
/// value; safe to use from any thread. Each call sees the store as it is at that moment.
template <class T>
class Lister {
 public:
  Lister(std::shared_ptr<const cache::Indexer> store, api::Resource resource)
      : store_(std::move(store)), resource_(std::move(resource)) {}

  /// By an index if the store has one for a label that must have one value
  /// (cache::index_by_label; of several the one that has the fewest objects), else by looking at
  /// every object.
  ListRange<T> list(api::labels::Selector selector = {}) const {
    auto found = detail::candidates(store_->snapshot(), selector);
    return {std::move(found.objects), std::move(selector)};
  }
  NamespaceLister<T> ns(std::string name) const { return {store_, resource_, std::move(name)}; }
  ListRange<T> by_index(std::string_view index, std::string_view value) const {
    return {store_->snapshot().by_index(index, value), {}};
  }

  /// The index of that name, to be held. Throws InvalidArgument if the store has none.
  Index<T> index(std::string name) const { return {store_, std::move(name)}; }

  /// For types that live in no namespace.
  T find(std::string_view name) const { return T(store_->get({}, name)); }
  T get(std::string_view name) const {
    T found = find(name);
    if (!found) detail::throw_not_found(resource_, name);
    return found;
  }

 private:
  std::shared_ptr<const cache::Indexer> store_;
  api::Resource resource_;
};

}  // namespace lookout::lister
