// MultiNamespaceInformer: an informer for a set of namespaces.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lookout/informer/shared_informer.h"
#include "lookout/tools/cache/multi_namespace_source.h"

namespace lookout::informer {

/// A SharedInformer for objects of several namespaces. The set may change while it runs. It has one
/// store, one lister and ordinary handlers, and a list and a watch for each namespace.
///
///     auto pods = factory.informer_for_namespaces<Pod>({"shop", "bank"});
///     ...
///     pods.set_namespaces({"shop", "farm"});  // bank's pods are deleted, farm's are added
///
/// cache::MultiNamespaceSource describes the effect of changing the set, and failures of single
/// namespaces. Such an informer takes more memory than one for all namespaces, because it remembers
/// the objects of each namespace; with a transform, the original objects.
template <class T>
class MultiNamespaceInformer : public SharedInformer<T> {
 public:
  /// Empty, for later assignment. Calls throw InvalidArgument until then.
  MultiNamespaceInformer() = default;
  MultiNamespaceInformer(SharedInformer<T> informer,
                         std::shared_ptr<cache::MultiNamespaceSource> source)
      : SharedInformer<T>(std::move(informer)), source_(std::move(source)) {}

  /// Replaces the set of namespaces; returns immediately. Throws InvalidArgument for an empty name.
  void set_namespaces(std::set<std::string> namespaces) const {
    source().set_namespaces(std::move(namespaces));
  }
  std::set<std::string> namespaces() const { return source().namespaces(); }
  /// The namespaces of the set that are not synced yet, with their last errors. has_synced() does
  /// not wait for namespaces that are forbidden (403).
  std::map<std::string, std::string> unsynced() const { return source().unsynced(); }

 private:
  cache::MultiNamespaceSource& source() const {
    if (!source_) detail::throw_no_informer();
    return *source_;
  }

  std::shared_ptr<cache::MultiNamespaceSource> source_;
};

}  // namespace lookout::informer
