// Cache: the cached kinds of a manager, and reading them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/request.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/tools/cache/index.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::controller {

/// The error for reading something that no cache holds: an undeclared kind, an object outside the
/// watched namespaces, a kind with cached metadata only, or an object that cannot be read (decoded);
/// and for reading before Manager::run().
/// controller-runtime's ErrResourceNotCached, its error for unknown namespaces, and
/// ErrCacheNotStarted.
class NotCachedError : public Error {
 public:
  using Error::Error;
};

/// Selects the objects of one namespace that a cache holds; controller-runtime's cache.Config. Unset
/// fields inherit from KindOptions, then from CacheOptions::by_namespace, then from CacheOptions.
struct NamespaceOptions {
  LOOKOUT_OPTION std::optional<std::string> label_selector = {};
  LOOKOUT_OPTION std::optional<std::string> field_selector = {};
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
};

/// Selects the objects of one kind that a cache holds; controller-runtime's cache.ByObject. Unset
/// fields inherit from CacheOptions.
struct KindOptions {
  /// The namespaces to watch; empty: all. Must not be set for cluster-scoped kinds. If the server
  /// refuses one of several (403), the cache works without it until the server allows it:
  /// reading that namespace throws, and the readiness check names it.
  LOOKOUT_OPTION std::optional<std::vector<std::string>> namespaces = {};
  LOOKOUT_OPTION std::optional<std::string> label_selector = {};
  /// With "metadata.namespace=NAME", only that namespace is listed.
  LOOKOUT_OPTION std::optional<std::string> field_selector = {};
  /// The fields to keep. Do not write incomplete objects back as a whole: patch them.
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
  /// The options of single namespaces, which are watched in addition to `namespaces`; ByObject's
  /// Namespaces. The name "" stands for all other namespaces, which are one watch:
  ///
  ///     {.by_namespace = {{"shop", {.label_selector = ""}}, {"", {.label_selector = "app=web"}}}}
  ///
  /// Must not be set for cluster-scoped kinds.
  LOOKOUT_OPTION std::map<std::string, NamespaceOptions> by_namespace = {};
};

struct CacheOptions {
  /// The default namespaces of all kinds; empty: all namespaces, or those of `by_namespace`.
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  /// The default of KindOptions::projection, such as api::Projection::without_managed_fields();
  /// controller-runtime's DefaultTransform. Kinds with cached metadata only ignore it.
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
  /// How often every object is reconciled without a change, with jitter of up to a tenth; 0: never.
  /// Costs no request.
  std::chrono::milliseconds resync_period = std::chrono::hours(10);
  /// The time limit of the first lists; after it, the manager fails. 0: the default.
  std::chrono::milliseconds sync_timeout = std::chrono::minutes(2);
  /// Declares an undeclared kind when it is read, for the namespaces of these options. Otherwise
  /// such a read is an error, because caching a kind of a whole cluster is easily too expensive.
  bool lazy = false;
  /// The first lists request the newest state, so that a restarted controller never sees a state from
  /// before its own last writes. Otherwise, as with controller-runtime, the answer may come from a
  /// server's stale cache. See cache::ReflectorOptions.
  bool newest_first_list = false;
  LOOKOUT_OPTION std::optional<rest::ContentType> content_type = {};
  BackoffOptions backoff = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
  /// The defaults of single namespaces, which are watched in addition to `namespaces`;
  /// controller-runtime's DefaultNamespaces. The name "" stands for all other namespaces. A kind
  /// that selects its own namespaces has these defaults in those that are named here.
  LOOKOUT_OPTION std::map<std::string, NamespaceOptions> by_namespace = {};
};

/// Values by the names of indexes; see CacheView::matching_fields().
using MatchingFields = std::map<std::string, std::string, std::less<>>;

namespace detail {
class CachedKind;
class CacheCore;
}  // namespace detail

/// A consistent view of the caches, taken at the first read; the state that Context reads. Each
/// kind has its own watch, so one kind may be slightly ahead of another.
///
/// Only one thread at a time may use it. While it is kept, the memory of its objects stays
/// allocated.
class CacheView {
 public:
  explicit CacheView(std::shared_ptr<detail::CacheCore> core, std::stop_token stop = {});
  ~CacheView();
  CacheView(CacheView&&) noexcept;
  CacheView& operator=(CacheView&&) = delete;

  /// Empty if there is no such object. All of these functions throw NotCachedError. If the server has
  /// an object that cannot be read, find() throws unless the cache has an older version of it; lists
  /// lack it, and the cache is not live.
  template <class T>
  std::optional<T> find(const Request& request) {
    api::Object found = find(api::Resource(T::kResource), false, request);
    return found ? std::optional<T>(std::in_place, std::move(found)) : std::nullopt;
  }
  /// Like find(), for a kind with cached metadata only. The object has the apiVersion and kind of
  /// its resource. Do not write it back as a whole: patch it.
  template <class T>
  std::optional<T> find_metadata(const Request& request) {
    api::Object found = find(api::Resource(T::kResource), true, request);
    return found ? std::optional<T>(std::in_place, std::move(found)) : std::nullopt;
  }
  /// The objects of a namespace (empty: of all watched namespaces), in no particular order.
  template <class T>
  std::vector<T> list(std::string_view ns = {}, const api::labels::Selector& selector = {}) {
    return typed<T>(list(api::Resource(T::kResource), false, ns, selector));
  }
  template <class T>
  std::vector<T> list_metadata(std::string_view ns = {},
                               const api::labels::Selector& selector = {}) {
    return typed<T>(list(api::Resource(T::kResource), true, ns, selector));
  }
  /// The objects with this index value; see Cache::add_index(). Throws InvalidArgument if there is
  /// no such index.
  template <class T>
  std::vector<T> by_index(std::string_view index, std::string_view value,
                          std::string_view ns = {}) {
    return typed<T>(by_index(api::Resource(T::kResource), index, value, ns));
  }
  template <class T>
  std::vector<T> by_index_metadata(std::string_view index, std::string_view value,
                                   std::string_view ns = {}) {
    return typed<T>(matching_fields(api::Resource(T::kResource), true,
                                    {{std::string(index), std::string(value)}}, ns));
  }
  /// The objects that have all of these index values, and that the selector matches
  /// (client.MatchingFields of controller-runtime). Throws InvalidArgument if an index does not
  /// exist. Without values, it lists.
  ///
  ///     view.matching_fields<Pod>({{"node", "n1"}, {"phase", "Running"}});
  ///
  /// It looks up the value with the fewest objects, and checks each of these objects with the
  /// functions of the other indexes.
  template <class T>
  std::vector<T> matching_fields(const MatchingFields& fields, std::string_view ns = {},
                                 const api::labels::Selector& selector = {}) {
    return typed<T>(matching_fields(api::Resource(T::kResource), false, fields, ns, selector));
  }
  template <class T>
  std::vector<T> matching_fields_metadata(const MatchingFields& fields, std::string_view ns = {},
                                          const api::labels::Selector& selector = {}) {
    return typed<T>(matching_fields(api::Resource(T::kResource), true, fields, ns, selector));
  }

  api::Object find(const api::Resource& resource, bool metadata_only, const Request& request);
  std::vector<api::Object> list(const api::Resource& resource, bool metadata_only,
                                std::string_view ns, const api::labels::Selector& selector);
  std::vector<api::Object> by_index(const api::Resource& resource, std::string_view index,
                                    std::string_view value, std::string_view ns);
  std::vector<api::Object> matching_fields(const api::Resource& resource, bool metadata_only,
                                           const MatchingFields& fields, std::string_view ns,
                                           const api::labels::Selector& selector = {});

 private:
  struct Pinned;
  template <class T>
  static std::vector<T> typed(std::vector<api::Object> objects) {
    std::vector<T> out;
    out.reserve(objects.size());
    for (api::Object& object : objects) out.emplace_back(std::move(object));
    return out;
  }
  Pinned& pinned(const api::Resource& resource, bool metadata_only);
  /// The snapshots of this namespace, or of all watched namespaces if empty.
  std::vector<const cache::Snapshot*> snapshots(const api::Resource& resource, bool metadata_only,
                                                std::optional<std::string_view> ns);

  std::shared_ptr<detail::CacheCore> core_;
  std::stop_token stop_;
  std::vector<std::unique_ptr<Pinned>> pinned_;
};

/// The informers of a manager. Kinds are declared by the builder (its T, owns and watches) and by
/// declare(). All functions may be called from any thread.
class Cache : public metrics::Source {
 public:
  /// `cluster`: for the library, the name of another cluster; see Cluster.
  Cache(rest::Client client, CacheOptions options, std::string cluster = {});
  ~Cache() override;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Declares that objects of this kind are cached, and which ones. Must precede a builder that
  /// watches the kind if there are options. Repeating a declaration with the same or without
  /// options does nothing; with other options it throws InvalidArgument. While the manager runs,
  /// the informer starts immediately.
  template <api::ResourceObject T>
  void declare(KindOptions options = {}) {
    declare(api::Resource(T::kResource), false, std::move(options));
  }
  /// Caches only apiVersion, kind and metadata, separately; read them with find_metadata().
  template <api::ResourceObject T>
  void declare_metadata(KindOptions options = {}) {
    declare(api::Resource(T::kResource), true, std::move(options));
  }

  /// Reverts declare(), lazy reads and indexes: the kind leaves the cache when no controller
  /// watches it, immediately or with the last watch (WatchHandle::remove()). Waits for the informer
  /// to end, except on the event loop; afterwards, reading the kind is an error. It may be declared
  /// again, with other options. Returns false if the kind is not declared. controller-runtime's
  /// RemoveInformer, which also ends the watches of controllers.
  template <api::ResourceObject T>
  bool undeclare() {
    return undeclare(api::Resource(T::kResource), false);
  }
  template <api::ResourceObject T>
  bool undeclare_metadata() {
    return undeclare(api::Resource(T::kResource), true);
  }

  /// Adds an index by the values that `function` returns; see informer::index_func(). Declares the
  /// kind if necessary.
  template <api::ResourceObject T, class Function>
  void add_index(std::string name, Function function) {
    add_index(api::Resource(T::kResource), std::move(name),
              informer::index_func<T>(std::move(function)));
  }
  /// Like add_index(), for a kind with cached metadata only: `function` sees only metadata. See
  /// CacheView::by_index_metadata().
  template <api::ResourceObject T, class Function>
  void add_index_metadata(std::string name, Function function) {
    add_index(api::Resource(T::kResource), true, std::move(name),
              informer::index_func<T>(std::move(function)));
  }
  /// Adds an index by one label, which speeds up lists with a selector.
  template <api::ResourceObject T>
  void add_label_index(std::string_view label) {
    auto [name, function] = cache::index_by_label(label);
    add_index(api::Resource(T::kResource), name, std::move(function));
  }
  template <api::ResourceObject T>
  void add_label_index_metadata(std::string_view label) {
    auto [name, function] = cache::index_by_label(label);
    add_index(api::Resource(T::kResource), true, name, std::move(function));
  }

  void declare(const api::Resource& resource, bool metadata_only, KindOptions options);
  bool undeclare(const api::Resource& resource, bool metadata_only);
  void add_index(const api::Resource& resource, std::string name, cache::IndexFunc function);
  void add_index(const api::Resource& resource, bool metadata_only, std::string name,
                 cache::IndexFunc function);

  /// A view of the current state.
  CacheView view() const;

  /// The names of informers that have not synced yet.
  std::vector<std::string> unsynced() const;
  /// The reason why the caches are not healthy, if any: not synced, or no sign of life from the
  /// server for this long. Names each cache, its last contact and the last failure.
  std::optional<std::string> check(
      std::chrono::milliseconds within = std::chrono::minutes(2)) const;

  /// The metrics of all informers.
  void collect(std::vector<metrics::Sample>& out) const override;

  /// For the library.
  const std::shared_ptr<detail::CacheCore>& core() const { return core_; }

 private:
  std::shared_ptr<detail::CacheCore> core_;
};

}  // namespace lookout::controller
