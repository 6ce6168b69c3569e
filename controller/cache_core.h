// CacheCore: the informers of a Cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "controller/write_barrier.h"
#include "lookout/api/fields.h"
#include "lookout/api/labels.h"
#include "lookout/controller/cache.h"
#include "lookout/informer/shared_informer_factory.h"

namespace lookout::controller::detail {

/// A declared kind: one informer, or one for each of several namespaces.
class CachedKind {
 public:
  struct Part {
    std::string ns;      ///< empty: all namespaces, except those of other parts
    std::string listed;  ///< the requested namespace: `ns` or that of the field selector
    std::shared_ptr<informer::SharedIndexInformer> informer;
    std::shared_ptr<std::stop_source> synced;  ///< requested once the first list is complete
    /// True if the log says that this namespace is refused.
    std::shared_ptr<std::atomic<bool>> reported = std::make_shared<std::atomic<bool>>(false);
    informer::Scope scope = {};       ///< what is requested
    std::string field_selector = {};  ///< that of `scope` without the exclusion of other parts
    api::labels::Selector labels = {};
    api::fields::Selector fields = {};
  };

  api::Resource resource;
  bool metadata_only = false;
  std::string cluster;      ///< empty: the manager's own
  std::vector<Part> parts;  ///< sorted by namespace
  /// True if the kind has left the cache: its informers are stopped and see no more writes.
  std::atomic<bool> retired{false};

  // The reasons for keeping it in the cache. Guarded by the mutex of CacheCore.
  bool declared = false;  // by the program, or by a lazy read
  std::size_t uses = 0;   // watches of controllers
  /// The index functions; null: only the index by namespace. Guarded by the same mutex.
  std::shared_ptr<const cache::Indexers> indexers;

  /// True if the server refuses to list a part (403), which has never been complete.
  static bool forbidden(const Part& part);
  /// The same, if there are other parts, which are used without it.
  bool refused(const Part& part) const { return parts.size() > 1 && forbidden(part); }
  /// Null if the namespace is not watched.
  const Part* part_for(std::string_view ns) const;
  /// True if the selectors match the object.
  bool selects(const api::Object& object) const {
    const Part* const part = part_for(object.ns());
    return part != nullptr && part->labels.matches(object) && part->fields.matches(object);
  }
  /// True if the objects of a namespace are complete, so that they may be written back.
  bool complete_in(std::string_view ns) const;
  /// "pods", "deployments.apps, metadata", "pods of cluster west".
  std::string name() const {
    return resource.qualified_name() + (metadata_only ? ", metadata" : "") + of_cluster();
  }
  /// " of cluster west", or nothing.
  std::string of_cluster() const { return cluster.empty() ? "" : " of cluster " + cluster; }
};

class CacheCore : public std::enable_shared_from_this<CacheCore> {
 public:
  CacheCore(rest::Client client, CacheOptions options, std::string cluster);
  void begin() { barrier_->begin(); }

  std::shared_ptr<const CachedKind> declare(const api::Resource& resource, bool metadata_only,
                                            std::optional<KindOptions> options);
  /// Reverts the declaration. A kind that no controller watches leaves the cache: its informers end, and
  /// the call waits for that, except on the event loop. Returns false if the kind was not declared.
  bool undeclare(const api::Resource& resource, bool metadata_only);
  /// The kind for a watch of a controller. unuse() releases it; it then leaves the cache, as with
  /// undeclare(), if it is not needed otherwise.
  std::shared_ptr<const CachedKind> use(const api::Resource& resource, bool metadata_only);
  void unuse(const std::shared_ptr<const CachedKind>& kind);
  void add_index(const api::Resource& resource, bool metadata_only, const std::string& name,
                 const cache::IndexFunc& function);
  /// The index functions of a kind, without the one by namespace; may be null.
  std::shared_ptr<const cache::Indexers> indexers_of(const CachedKind& kind) const;
  /// Null if there is none.
  std::shared_ptr<const CachedKind> find(const api::Resource& resource, bool metadata_only) const;
  /// The cache of whole objects if there is one, else that of metadata.
  std::shared_ptr<const CachedKind> find_any(const api::Resource& resource) const;
  /// Like find(), but declares the kind if the cache is lazy, and otherwise throws NotCachedError.
  std::shared_ptr<const CachedKind> require(const api::Resource& resource, bool metadata_only);
  /// Waits for the first list of a part. Throws NotCachedError if it is not complete in time; throws it
  /// immediately before expect_start(), and on the event loop if the list is not complete.
  void wait_for(const CachedKind& kind, const CachedKind::Part& part,
                const std::stop_token& stop) const;
  /// The caches that hold objects of this kind, whole or not.
  std::vector<std::shared_ptr<const CachedKind>> kinds_of(const api::Resource& resource) const;
  /// The resource of a kind that is declared or built in. Throws InvalidArgument if it is neither.
  api::Resource resource_of(const api::GroupVersionKind& gvk) const;
  std::vector<std::shared_ptr<const CachedKind>> kinds() const;

  /// Notes that the manager with the cache `manager` runs this one of another cluster. Returns false if
  /// there was a manager before.
  bool adopt(const CacheCore& manager) {
    const CacheCore* none = nullptr;
    return manager_.compare_exchange_strong(none, &manager);
  }
  bool is_adopted_by(const CacheCore& manager) const { return manager_ == &manager; }
  /// start() will follow: reads wait for it from now on.
  void expect_start() { expected_ = true; }
  /// Starts all informers, including those that are declared later.
  void start();
  /// Waits until all are synced or refused, or until a stop. Throws Error on timeout.
  Awaitable<void> wait_for_sync(std::vector<std::shared_ptr<const CachedKind>> kinds,
                                std::stop_token stop);
  /// Not on the event loop.
  void shutdown();

  std::vector<std::string> unsynced() const;
  /// The same for some kinds, with the reasons.
  static std::string missing(const std::vector<std::shared_ptr<const CachedKind>>& kinds);
  std::optional<std::string> check(std::chrono::milliseconds within) const;
  void collect(std::vector<metrics::Sample>& out) const;

  WriteBarrier& barrier() { return *barrier_; }
  const CacheOptions& options() const { return options_; }
  std::shared_ptr<Clock> clock() const { return options_.clock ? options_.clock : Clock::real(); }
  const rest::Client& client() const { return client_; }

 private:
  enum class Reason { kDeclared, kUsed };
  std::shared_ptr<const CachedKind> obtain(const api::Resource& resource, bool metadata_only,
                                           const std::optional<KindOptions>& options,
                                           Reason reason);
  /// Removes a kind that is no longer needed, under the mutex; null if it is needed. finish() ends it.
  std::shared_ptr<CachedKind> retire(std::vector<std::shared_ptr<CachedKind>>::iterator at);
  void finish(const std::shared_ptr<CachedKind>& retired);
  std::shared_ptr<CachedKind> make(const api::Resource& resource, bool metadata_only,
                                   const KindOptions& options);
  /// The namespaces to watch, sorted; "" for all, or for all others.
  std::vector<std::string> namespaces_of(const CachedKind& kind, const KindOptions& options) const;
  /// The selectors and the projection for a namespace.
  NamespaceOptions resolve(const CachedKind& kind, const KindOptions& options,
                           const std::string& ns) const;
  /// Adds an index function; false if there is one of that name.
  bool note_index(const CachedKind& kind, const std::string& name,
                  const cache::IndexFunc& function);
  void forget_index(const CachedKind& kind, const std::string& name);

  const rest::Client client_;
  const CacheOptions options_;
  const std::string cluster_;
  const std::shared_ptr<WriteBarrier> barrier_;
  informer::SharedInformerFactory factory_;
  std::atomic<bool> expected_{false};
  std::atomic<const CacheCore*> manager_{nullptr};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::shared_ptr<CachedKind>> kinds_;
  bool running_ = false;
};

}  // namespace lookout::controller::detail
