// Informers, each once.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/group_version_resource.h"
#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/api/typed_object.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/rest/client.h"
#include "lookout/tools/backoff.h"

namespace lookout::informer {

/// Which objects an informer keeps and what of them. Informers that ask for the same are the same.
struct Scope {
  /// Empty: all namespaces. Of no meaning for types that live in none.
  std::string ns = {};
  std::string label_selector = {};
  std::string field_selector = {};
  api::Projection projection = {};
  /// Only apiVersion, kind and metadata, which the server sends as PartialObjectMetadata of
  /// meta.k8s.io/v1 (client-go's metadatainformer). Use for_resource(); typed views of such objects
  /// find nothing but metadata.
  bool metadata_only = false;

  friend bool operator==(const Scope&, const Scope&) = default;
};

/// What has come of waiting for informers.
struct SyncResult {
  /// Whether the store is complete, by the informer's name: "pods", "pods in shop, app=web".
  std::map<std::string, bool> synced = {};

  explicit operator bool() const { return unsynced().empty(); }
  std::vector<std::string> unsynced() const;
  /// "failed to sync all caches: nodes, pods"; empty if all have.
  std::string message() const;
};

struct FactoryOptions {
  /// How often handlers are told of everything again, unless they ask otherwise; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// The same for single types: {{core::v1::Pod::kResource, 10min}}.
  std::vector<std::pair<api::Resource, std::chrono::milliseconds>> custom_resync = {};
  /// The namespace, selectors and projection of informers that are asked for without a Scope.
  std::string ns = {};
  std::string label_selector = {};
  std::string field_selector = {};
  api::Projection projection = {};
  bool metadata_only = false;
  /// Nothing: that of the client's Config.
  std::optional<rest::ContentType> content_type = {};
  /// Changes the options of each list and watch of all informers before they are sent; from several
  /// threads at a time.
  std::function<void(rest::ListOptions&)> tweak_list_options = {};
  /// See cache::ReflectorOptions.
  bool use_watch_list = true;
  /// See cache::TransformFunc.
  cache::TransformFunc transform = {};
  cache::WatchErrorHandler watch_error_handler = {};
  BackoffOptions backoff = {};
  HandlerPoolOptions handlers = {};
  /// Null: the machine's.
  std::shared_ptr<Clock> clock = {};
};

/// Makes informers and runs them together: client-go's SharedInformerFactory. Whoever asks for the
/// same type and scope gets the same informer, so that it is watched once.
///
/// All functions may be called from any thread, those that wait not from the event loop or a
/// handler: shutdown() and wait_for_cache_sync().
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

  /// The informer of a type that is known at run time.
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::Resource& resource,
                                                    const Scope& scope);

  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr);
  std::shared_ptr<SharedIndexInformer> for_resource(const api::GroupVersionResource& gvr,
                                                    const Scope& scope);

  /// Starts every informer that does not run yet; call it again after asking for new ones.
  void start();

  /// Waits until every started informer has its first list, or until a stop is requested; says
  /// which have it: `if (!factory.wait_for_cache_sync(stop)) ...`.
  SyncResult wait_for_cache_sync(std::stop_token stop = {});
  /// The names of started informers that have not synced yet.
  std::vector<std::string> unsynced() const;

  /// All informers that have been asked for.
  std::vector<std::shared_ptr<SharedIndexInformer>> informers() const;

  /// Stops all informers and waits until nothing of them runs.
  void shutdown();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::informer
