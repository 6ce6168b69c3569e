// A source of the objects of several namespaces.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "lookout/api/resource.h"
#include "lookout/base/event_loop.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::cache {

/// Lists and watches several namespaces, each with a reflector of its own, and hands over what they
/// bring as one watch: for programs that may not list all namespaces, or must not (controller-
/// runtime's multi-namespace cache). The set may change at any time.
///
/// A namespace that is added is listed, and its objects come as additions. One that is taken out
/// ends at once, and its objects come as deletions: the API server does the same in a watch for an
/// object that its selector no longer selects.
///
/// A namespace that fails is tried again, and holds up no other. The state is complete, and an
/// informer in sync, when each namespace of the set has been listed or has been refused (401, 403,
/// 404): see unsynced().
///
/// For one reflector at a time, which has to use watch lists (ReflectorOptions::use_watch_list) and
/// must be ended before the source goes. All functions may be called from any thread.
class MultiNamespaceSource : public ListerWatcher {
 public:
  /// The source of one namespace. Called when the namespace is first listed, not on a lock.
  using Make = std::function<std::shared_ptr<ListerWatcher>(const std::string& ns)>;

  /// `options`: those of each namespace's reflector; `name` gets " in NAMESPACE" appended, and
  /// nothing is resynced. `type`: what is listed. Throws InvalidArgument for an empty namespace.
  MultiNamespaceSource(Make make, api::GroupVersionKind type, ReflectorOptions options,
                       std::shared_ptr<EventLoop> loop, std::set<std::string> namespaces);
  ~MultiNamespaceSource() override;
  MultiNamespaceSource(const MultiNamespaceSource&) = delete;
  MultiNamespaceSource& operator=(const MultiNamespaceSource&) = delete;

  /// From now on these, and no others. Returns at once. Throws InvalidArgument for an empty
  /// namespace, which would be all of them.
  void set_namespaces(std::set<std::string> namespaces);
  std::set<std::string> namespaces() const;
  /// Namespaces of the set that have not been listed yet, each with the last error, if there was
  /// any.
  std::map<std::string, std::string> unsynced() const;

  /// Refused: there is a watch only.
  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override;
  /// The state first, whatever the options say; a watch that is to continue another one is answered
  /// with 410. A stop ends it when all reflectors have returned.
  Awaitable<std::unique_ptr<Watcher>> watch(rest::ListOptions options,
                                            std::stop_token stop) override;

 private:
  class Hub;
  class Part;
  class MergedWatcher;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace lookout::cache
