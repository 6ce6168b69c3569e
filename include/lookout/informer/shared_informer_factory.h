// Informers, each once.
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
#include "lookout/informer/handler_pool.h"
#include "lookout/informer/multi_namespace_informer.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/rest/client.h"

namespace lookout::informer {

/// Selects the objects of an informer and the fields it keeps. Fields that are not set inherit from
/// FactoryOptions. A field that is set wins even if it is empty: `{.ns = ""}` is all namespaces,
/// whatever the factory's namespace is. Equal scopes share one informer.
struct Scope {
  /// The namespace; without meaning for types that are in none.
  LOOKOUT_OPTION std::optional<std::string> ns = {};
  LOOKOUT_OPTION std::optional<std::string> label_selector = {};
  LOOKOUT_OPTION std::optional<std::string> field_selector = {};
  LOOKOUT_OPTION std::optional<api::Projection> projection = {};
  /// Only apiVersion, kind and metadata, which the server sends as PartialObjectMetadata of
  /// meta.k8s.io/v1 (client-go's metadatainformer). Use for_resource(); typed views of such objects
  /// find nothing but metadata.
  std::optional<bool> metadata_only = {};

  friend bool operator==(const Scope&, const Scope&) = default;
};

/// The outcome of waiting for informers.
struct SyncResult {
  /// Whether the store is complete, by the informer's name: "pods", "pods in shop, app=web".
  std::map<std::string, bool> synced = {};

  explicit operator bool() const { return unsynced().empty(); }
  std::vector<std::string> unsynced() const;
  /// "failed to sync all caches: nodes, pods"; empty if all have.
  std::string message() const;
};

struct FactoryOptions {
  /// The resync period of handlers that have none of their own; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// The same for single types: {{k8s::core::v1::Pod::kResource, 10min}}.
  LOOKOUT_OPTION std::vector<std::pair<api::Resource, std::chrono::milliseconds>> custom_resync =
      {};
  /// The namespace, selectors and projection of informers, unless their Scope says otherwise.
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  LOOKOUT_OPTION api::Projection projection = {};
  bool metadata_only = false;
  /// Nothing: that of the client's Config.
  std::optional<rest::ContentType> content_type = {};
  /// Changes the options of each list and watch of all informers before they are sent; from several
  /// threads at a time.
  LOOKOUT_OPTION std::function<void(rest::ListOptions&)> tweak_list_options = {};
  /// See cache::ReflectorOptions.
  bool use_watch_list = true;
  /// See cache::TransformFunc.
  LOOKOUT_OPTION cache::TransformFunc transform = {};
  LOOKOUT_OPTION cache::WatchErrorHandler watch_error_handler = {};
  BackoffOptions backoff = {};
  HandlerPoolOptions handlers = {};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// Makes informers and runs them together: client-go's SharedInformerFactory. Calls for the same
/// type and scope get the same informer, so that it is watched once.
///
/// All functions may be called from any thread, those that wait not from the event loop: shutdown()
/// and wait_for_cache_sync().
class SharedInformerFactory {
 public:
  explicit SharedInformerFactory(rest::Client client, FactoryOptions options = {});
  /// Shuts down. On the event loop it only stops the informers.
  ~SharedInformerFactory();
  SharedInformerFactory(const SharedInformerFactory&) = delete;
  SharedInformerFactory& operator=(const SharedInformerFactory&) = delete;

  /// The informer of a built-in or hand-written type. It does not run before start().
  template <api::ResourceObject T>
  SharedInformer<T> informer() {
    return {for_resource(T::kResource), api::Resource(T::kResource)};
  }
  template <api::ResourceObject T>
  SharedInformer<T> informer(const Scope& scope) {
    return {for_resource(T::kResource, scope), api::Resource(T::kResource)};
  }
  /// For any other type: no informer, but an error in words.
  template <class T, class... Arguments>
    requires(!api::ResourceObject<T>)
  void informer(const Arguments&...) {
    static_assert(api::explain_resource_object<T>());
  }

  /// An informer for several namespaces, which can be changed: see there. Each call makes another
  /// one; `scope.ns` means nothing.
  template <api::ResourceObject T>
  MultiNamespaceInformer<T> informer_for_namespaces(std::set<std::string> namespaces,
                                                    const Scope& scope = {}) {
    auto [informer, source] =
        for_namespaces(api::Resource(T::kResource), std::move(namespaces), scope);
    return {SharedInformer<T>(std::move(informer), api::Resource(T::kResource)), std::move(source)};
  }
  /// The same for a type that is known at run time. The source is what changes the namespaces.
  std::pair<std::shared_ptr<SharedIndexInformer>, std::shared_ptr<cache::MultiNamespaceSource>>
  for_namespaces(const api::Resource& resource, std::set<std::string> namespaces,
                 const Scope& scope = {});

  /// The informer of a type that is known at run time.
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource,
                                                    const Scope& scope);

  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr,
                                                    const Scope& scope);

  /// Ends an informer and forgets it; the next call gets a new one, which start() starts.
  /// Waits as SharedIndexInformer::shutdown() does, and throws on the event loop as that does. All
  /// who share the informer lose it: what they hold keeps its store, which changes no more. False
  /// if there is no such informer. (One that was stopped by stop() or shutdown() of its own is
  /// forgotten, too, when it is asked for again.)
  template <api::ResourceObject T>
  bool stop_informer(const Scope& scope = {}) {
    return stop_informer(api::Resource(T::kResource), scope);
  }
  bool stop_informer(const api::Resource& resource, const Scope& scope = {});
  /// Stops and forgets this very informer, and waits for nothing, so that it may be called on the
  /// event loop; its shutdown() waits. The factory's shutdown waits for it, too. False if the
  /// factory does not have it, or not any more.
  bool forget(const std::shared_ptr<SharedIndexInformer>& informer);

  /// Starts every informer that does not run yet; call it again after asking for new ones.
  void start();

  /// Waits until every started informer has its first list, or until a stop is requested; says
  /// which have it: `if (!factory.wait_for_cache_sync(stop)) ...`.
  SyncResult wait_for_cache_sync(std::stop_token stop = {});
  /// The names of started informers that have not synced yet.
  std::vector<std::string> unsynced() const;

  /// All informers that have been asked for.
  std::vector<std::shared_ptr<SharedIndexInformer>> informers() const;

  /// Stops all informers and waits until nothing of them runs: see SharedIndexInformer::shutdown().
  void shutdown();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::informer
