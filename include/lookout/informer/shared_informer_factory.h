// SharedInformerFactory: creates each informer once and runs all of them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/group_version_resource.h"
#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/backoff.h"
#include "lookout/base/pinned.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/informer/multi_namespace_informer.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/rest/client.h"

namespace lookout::informer {

/// Selects the objects of an informer and the fields it keeps. Unset fields inherit from
/// FactoryOptions. A set field wins even if it is empty: `{.ns = ""}` means all namespaces,
/// regardless of the factory's namespace. Equal scopes share one informer.
struct Scope {
  /// The namespace; ignored for cluster-scoped types.
  LOOKOUT_OPTION std::optional<std::string> ns = {};
  LOOKOUT_OPTION std::optional<std::string> label_selector = {};
  LOOKOUT_OPTION std::optional<std::string> field_selector = {};
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
  /// Keeps only apiVersion, kind and metadata, which the server sends as PartialObjectMetadata of
  /// meta.k8s.io/v1 (client-go's metadatainformer). Use for_resource(): typed views of such objects
  /// are empty except for metadata.
  std::optional<bool> metadata_only = {};

  friend bool operator==(const Scope&, const Scope&) = default;
};

/// The result of waiting for informers.
struct SyncResult {
  /// True if the informer's store is complete, by the informer's name: "pods", "pods in shop,
  /// app=web".
  std::map<std::string, bool> synced = {};

  explicit operator bool() const { return unsynced().empty(); }
  std::vector<std::string> unsynced() const;
  /// "failed to sync all caches: nodes, pods"; empty on success.
  std::string message() const;
};

struct FactoryOptions {
  /// The resync period of handlers that do not set their own; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// The resync period for single types: {{k8s::core::v1::Pod::kResource, 10min}}.
  LOOKOUT_OPTION std::vector<std::pair<api::Resource, std::chrono::milliseconds>> custom_resync =
      {};
  /// The defaults for Scope: namespace, selectors and projection.
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  LOOKOUT_OPTION api::Projection projection = {};
  bool metadata_only = false;
  /// Empty: the content type of the client's Config.
  std::optional<rest::ContentType> content_type = {};
  /// Changes the options of each list and watch of all informers before it is sent. Called from
  /// several threads at once.
  LOOKOUT_OPTION std::function<void(rest::ListOptions&)> tweak_list_options = {};
  /// See cache::ReflectorOptions.
  bool use_watch_list = true;
  bool newest_first_list = false;
  /// See cache::TransformFunc.
  LOOKOUT_OPTION cache::TransformFunc transform = {};
  LOOKOUT_OPTION cache::WatchErrorHandler watch_error_handler = {};
  BackoffOptions backoff = {};
  HandlerPoolOptions handlers = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// Creates informers and runs them together: client-go's SharedInformerFactory. Calls with the same
/// type and scope return the same informer, so that each resource is watched once.
///
/// All functions may be called from any thread, except that shutdown() and wait_for_cache_sync()
/// must not be called on the event loop.
class SharedInformerFactory : public base::Pinned {
 public:
  explicit SharedInformerFactory(rest::Client client, FactoryOptions options = {});
  /// Shuts down. On the event loop it only stops the informers.
  ~SharedInformerFactory();

  /// The informer of a generated or hand-written type. It does not run before start().
  template <api::ResourceObject T>
  SharedInformer<T> informer() {
    return {for_resource(T::kResource), api::Resource(T::kResource)};
  }
  template <api::ResourceObject T>
  SharedInformer<T> informer(const Scope& scope) {
    return {for_resource(T::kResource, scope), api::Resource(T::kResource)};
  }
  /// The informer of a type known only at run time; rest::discover() finds resources by name.
  ///
  ///     const auto all = rest::discover(client);
  ///     const auto* found = rest::find_resource(all, "crontabs.stable.example.com");
  ///     auto crontabs = factory.informer(found->resource);  // with handlers and listers
  SharedInformer<api::Object> informer(const api::Resource& resource) {
    return {for_resource(resource), resource};
  }
  SharedInformer<api::Object> informer(const api::Resource& resource, const Scope& scope) {
    return {for_resource(resource, scope), resource};
  }
  /// For other types: a readable compile error.
  template <class T, class... Arguments>
    requires(!api::ResourceObject<T>)
  void informer(const Arguments&...) {
    static_assert(api::explain_resource_object<T>());
  }

  /// A new informer for several namespaces; see MultiNamespaceInformer. `scope.ns` is ignored. The
  /// factory keeps it until stop_informer(informer).
  template <api::ResourceObject T>
  MultiNamespaceInformer<T> informer_for_namespaces(std::set<std::string> namespaces,
                                                    const Scope& scope = {}) {
    auto [informer, source] =
        for_namespaces(api::Resource(T::kResource), std::move(namespaces), scope);
    return {SharedInformer<T>(std::move(informer), api::Resource(T::kResource)), std::move(source)};
  }
  /// Like informer_for_namespaces(), for a type known only at run time. The returned source changes
  /// the namespaces.
  std::pair<std::shared_ptr<SharedIndexInformer>, std::shared_ptr<cache::MultiNamespaceSource>>
  for_namespaces(const api::Resource& resource, std::set<std::string> namespaces,
                 const Scope& scope = {});

  /// Like informer(resource): client-go's ForResource. A GroupVersionResource that is not built in
  /// counts as namespaced and has no kind: with rest::discover(), the kind of each object is
  /// checked.
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource,
                                                    const Scope& scope);

  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr,
                                                    const Scope& scope);

  /// Ends an informer and forgets it; the next call creates a new one, which start() starts. Waits
  /// like SharedIndexInformer::shutdown(), and like it throws on the event loop. The informer ends
  /// for all code that shares it; its store stays readable but no longer changes. Returns false if
  /// there is no such informer. (The factory also replaces an informer that was stopped by its own
  /// stop() or shutdown().)
  template <api::ResourceObject T>
  bool stop_informer(const Scope& scope = {}) {
    return stop_informer(api::Resource(T::kResource), scope);
  }
  bool stop_informer(const api::Resource& resource, const Scope& scope = {});
  /// The same for this informer, which may be one for several namespaces.
  template <class T>
  bool stop_informer(const SharedInformer<T>& informer) {
    return stop_informer(informer.shared_informer());
  }
  bool stop_informer(const std::shared_ptr<SharedIndexInformer>& informer);
  /// Stops and forgets this informer without waiting, so that it may be called on the event loop;
  /// the informer's shutdown() and the factory's shutdown() wait for it. Returns false if the
  /// factory does not have this informer.
  bool forget(const std::shared_ptr<SharedIndexInformer>& informer);

  /// Starts every informer that is not running yet; call it again after creating more.
  void start();

  /// Waits until every started informer is synced, or until a stop is requested: `if
  /// (!factory.wait_for_cache_sync(stop)) ...`.
  SyncResult wait_for_cache_sync(std::stop_token stop = {});
  /// The names of started informers that have not synced yet.
  std::vector<std::string> unsynced() const;

  /// All informers of the factory.
  std::vector<std::shared_ptr<SharedIndexInformer>> informers() const;

  /// Stops all informers and waits until nothing runs any more: see
  /// SharedIndexInformer::shutdown().
  void shutdown();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::informer
