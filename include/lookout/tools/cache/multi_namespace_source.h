// MultiNamespaceSource: the objects of several namespaces as one source.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "lookout/api/resource.h"
#include "lookout/base/event_loop.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::cache {

/// Lists and watches several namespaces, each with its own reflector, and merges them into one
/// watch: for programs that may not list all namespaces (controller-runtime's multi-namespace
/// cache). The set may change at any time.
///
/// When a namespace is added, it is listed, and its objects arrive as additions. When one is
/// removed, its watch ends immediately, and its objects arrive as deletions: the API server does
/// the same in a watch for an object that no longer matches the selector.
///
/// A namespace that fails is retried and does not delay the others. The state is complete, and an
/// informer synced, when each namespace has been listed or is forbidden (403): see unsynced().
///
/// The version of the state is the oldest that the listed namespaces have reached: all changes up to
/// it have arrived. It goes back when a namespace is added whose list is older.
///
/// The reflector on top of this source is live if those of all namespaces are, reports the newest
/// failure of those that are not, and counts the errors and unreadable objects of all (health()).
///
/// Serves one reflector at a time, which must use watch lists (ReflectorOptions::use_watch_list)
/// and must end before the source is destroyed. All functions may be called from any thread.
class MultiNamespaceSource : public ListerWatcher {
 public:
  /// Makes the source of one namespace. Called when the namespace is listed first, without a lock.
  using Make = std::function<std::shared_ptr<ListerWatcher>(const std::string& ns)>;

  /// `options`: for each namespace's reflector; " in NAMESPACE" is appended to `name`, and resyncs
  /// are off. `type`: the listed type. Throws InvalidArgument for an empty namespace.
  MultiNamespaceSource(Make make, api::GroupVersionKind type, ReflectorOptions options,
                       std::shared_ptr<EventLoop> loop, std::set<std::string> namespaces);
  ~MultiNamespaceSource() override;
  MultiNamespaceSource(const MultiNamespaceSource&) = delete;
  MultiNamespaceSource& operator=(const MultiNamespaceSource&) = delete;

  /// Replaces the set of namespaces. Returns immediately. Throws InvalidArgument for an empty
  /// namespace, which would mean all of them. Also throws what Make throws for a new namespace; the
  /// others are then listed, and another call with the same set retries.
  void set_namespaces(std::set<std::string> namespaces);
  std::set<std::string> namespaces() const;
  /// The namespaces of the set that have not been listed yet, each with its last error, if any.
  std::map<std::string, std::string> unsynced() const;

  /// Not supported: this source has a watch only.
  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override;
  /// Always sends the state first; answers 410 to a watch that wants to continue another one. The
  /// watch has ended (Watcher::end()) once the reflectors of all namespaces have returned.
  Awaitable<std::unique_ptr<Watcher>> watch(rest::ListOptions options,
                                            std::stop_token stop) override;
  std::optional<SourceHealth> health() const override;

 private:
  class Hub;
  class Part;
  class MergedWatcher;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace lookout::cache
