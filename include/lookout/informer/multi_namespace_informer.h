// An informer for a set of namespaces.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lookout/informer/shared_informer.h"
#include "lookout/tools/cache/multi_namespace_source.h"

namespace lookout::informer {

/// A SharedInformer for objects of several namespaces, which may change while it runs: one store,
/// one lister, handlers as always, and a list and a watch for each namespace.
///
///     auto pods = factory.informer_for_namespaces<Pod>({"shop", "bank"});
///     ...
///     pods.set_namespaces({"shop", "farm"});  // bank's pods are deleted, farm's are added
///
/// See cache::MultiNamespaceSource for what a change of the set brings, and for namespaces that
/// fail. Such an informer takes more memory than one for all namespaces, as it remembers what each
/// has brought; of a transform, the originals.
template <class T>
class MultiNamespaceInformer : public SharedInformer<T> {
 public:
  /// None: to be assigned to. Calls throw InvalidArgument until then.
  MultiNamespaceInformer() = default;
  MultiNamespaceInformer(SharedInformer<T> informer,
                         std::shared_ptr<cache::MultiNamespaceSource> source)
      : SharedInformer<T>(std::move(informer)), source_(std::move(source)) {}

  /// From now on these, and no others; returns at once. Throws InvalidArgument for an empty name.
  void set_namespaces(std::set<std::string> namespaces) const {
    source().set_namespaces(std::move(namespaces));
  }
  std::set<std::string> namespaces() const { return source().namespaces(); }
  /// Namespaces of the set whose objects are not there yet, with the last error: has_synced() does
  /// not wait for those that are refused.
  std::map<std::string, std::string> unsynced() const { return source().unsynced(); }

 private:
  cache::MultiNamespaceSource& source() const {
    if (!source_) detail::throw_no_informer();
    return *source_;
  }

  std::shared_ptr<cache::MultiNamespaceSource> source_;
};

}  // namespace lookout::informer
