// The caches of a manager: which kinds, which objects of them, and reading them.
#pragma once

#include <chrono>
#include <cstddef>
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

/// A read of a kind that no cache holds: an undeclared kind, an object outside the namespaces that
/// are watched, or one of which only metadata is kept. controller-runtime's ErrResourceNotCached
/// and its error for unknown namespaces.
class NotCachedError : public Error {
 public:
  using Error::Error;
};

/// Selects the objects of one kind that a cache holds; controller-runtime's cache.ByObject. Fields
/// that are not set inherit from CacheOptions.
struct KindOptions {
  /// The namespaces to watch; empty: all. Must not be set for cluster-scoped kinds. If there are
  /// several, and the server refuses one of them (401, 403), the others are used without it: to read
  /// that one is an error, readiness names it, and it joins when the server allows it.
  LOOKOUT_OPTION std::optional<std::vector<std::string>> namespaces = {};
  LOOKOUT_OPTION std::optional<std::string> label_selector = {};
  LOOKOUT_OPTION std::optional<std::string> field_selector = {};
  /// The fields to keep. Objects that lack fields must not be written back whole: patch them.
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
};

struct CacheOptions {
  /// The namespaces of all kinds that do not say otherwise; empty: all.
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  /// How often every object is reconciled again without a change, spread by up to a tenth; 0:
  /// never. Costs no request.
  std::chrono::milliseconds resync_period = std::chrono::hours(10);
  /// How long the first lists may take before the manager fails.
  std::chrono::milliseconds sync_timeout = std::chrono::minutes(2);
  /// Whether reading a kind that was not declared declares it, for all namespaces of these options.
  /// Otherwise it is an error, since the cache of a whole cluster is easily more than one wants.
  bool lazy = false;
  LOOKOUT_OPTION std::optional<rest::ContentType> content_type = {};
  BackoffOptions backoff = {};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

namespace detail {
class CachedKind;
class CacheCore;
}  // namespace detail

/// Everything that the caches held at one moment; what Context reads. The moment is that of the
/// first read. Kinds come from watches of their own, so one may be a little ahead of another.
///
/// One thread at a time may use it. While it is kept, so is the memory of what it shows.
class CacheView {
 public:
  explicit CacheView(std::shared_ptr<detail::CacheCore> core, std::stop_token stop = {});
  ~CacheView();
  CacheView(CacheView&&) noexcept;
  CacheView& operator=(CacheView&&) = delete;

  /// Nothing if there is no such object. All of these throw NotCachedError.
  template <class T>
  std::optional<T> find(const Request& request) {
    api::Object found = find(api::Resource(T::kResource), false, request);
    return found ? std::optional<T>(std::in_place, std::move(found)) : std::nullopt;
  }
  /// The same for a kind of which only metadata is cached.
  template <class T>
  std::optional<T> find_metadata(const Request& request) {
    api::Object found = find(api::Resource(T::kResource), true, request);
    return found ? std::optional<T>(std::in_place, std::move(found)) : std::nullopt;
  }
  /// Those of a namespace (empty: of all that are watched), in no particular order.
  template <class T>
  std::vector<T> list(std::string_view ns = {}, const api::labels::Selector& selector = {}) {
    return typed<T>(list(api::Resource(T::kResource), false, ns, selector));
  }
  template <class T>
  std::vector<T> list_metadata(std::string_view ns = {},
                               const api::labels::Selector& selector = {}) {
    return typed<T>(list(api::Resource(T::kResource), true, ns, selector));
  }
  /// What an index files under a value; see Cache::add_index(). Throws InvalidArgument if there is
  /// no such index.
  template <class T>
  std::vector<T> by_index(std::string_view index, std::string_view value,
                          std::string_view ns = {}) {
    return typed<T>(by_index(api::Resource(T::kResource), index, value, ns));
  }

  api::Object find(const api::Resource& resource, bool metadata_only, const Request& request);
  std::vector<api::Object> list(const api::Resource& resource, bool metadata_only,
                                std::string_view ns, const api::labels::Selector& selector);
  std::vector<api::Object> by_index(const api::Resource& resource, std::string_view index,
                                    std::string_view value, std::string_view ns);

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
  /// The snapshots of this namespace, or of all watched namespaces.
  std::vector<const cache::Snapshot*> snapshots(const api::Resource& resource, bool metadata_only,
                                                std::optional<std::string_view> ns);

  std::shared_ptr<detail::CacheCore> core_;
  std::stop_token stop_;
  std::vector<std::unique_ptr<Pinned>> pinned_;
};

/// The informers of a manager, made by declaration: by the builder's for, owns and watches, and by
/// declare(). All functions may be called from any thread.
class Cache : public metrics::Source {
 public:
  Cache(rest::Client client, CacheOptions options);
  ~Cache() override;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Says that objects of this kind are cached, and which. Comes before the builder that watches
  /// the kind if there are options. Declaring a kind again with the same or without options does
  /// nothing; with others it throws InvalidArgument. While the manager runs, the informer starts at
  /// once.
  template <api::ResourceObject T>
  void declare(KindOptions options = {}) {
    declare(api::Resource(T::kResource), false, std::move(options));
  }
  /// Only apiVersion, kind and metadata, in a cache of its own; read with find_metadata().
  template <api::ResourceObject T>
  void declare_metadata(KindOptions options = {}) {
    declare(api::Resource(T::kResource), true, std::move(options));
  }

  /// Takes declare() back, and lazy reads and indexes as well: the kind leaves the cache when no
  /// controller watches it, at once or with the last watch (WatchHandle::remove()). Its informer
  /// ends, which the call waits for except on the event loop, and reading the kind is an error from
  /// then on. It may be declared again, with other options. False if it is not declared.
  /// controller-runtime's RemoveInformer, which also ends the watches of controllers.
  template <api::ResourceObject T>
  bool undeclare() {
    return undeclare(api::Resource(T::kResource), false);
  }
  template <api::ResourceObject T>
  bool undeclare_metadata() {
    return undeclare(api::Resource(T::kResource), true);
  }

  /// Finds objects by what `function` says of them; see informer::index_func(). Declares the kind
  /// if need be.
  template <api::ResourceObject T, class Function>
  void add_index(std::string name, Function function) {
    add_index(api::Resource(T::kResource), std::move(name),
              informer::index_func<T>(std::move(function)));
  }
  /// Lists by selector find by this label at once.
  template <api::ResourceObject T>
  void add_label_index(std::string_view label) {
    auto [name, function] = cache::index_by_label(label);
    add_index(api::Resource(T::kResource), name, std::move(function));
  }

  void declare(const api::Resource& resource, bool metadata_only, KindOptions options);
  bool undeclare(const api::Resource& resource, bool metadata_only);
  void add_index(const api::Resource& resource, std::string name, cache::IndexFunc function);

  /// Reads what is there now.
  CacheView view() const;

  /// The names of informers that have no complete list yet.
  std::vector<std::string> unsynced() const;
  /// The reason why the caches are not healthy, if any: not synced, or nothing heard from the server
  /// for this long. Names each cache, its last contact and the last failure.
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
