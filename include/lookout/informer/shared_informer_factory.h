// Informers, each once.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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

  friend bool operator==(const Scope&, const Scope&) = default;
};

struct FactoryOptions {
  /// How often handlers are told of everything again; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// The namespace, selectors and projection of informers that are asked for without a Scope.
  std::string ns = {};
  std::string label_selector = {};
  std::string field_selector = {};
  api::Projection projection = {};
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

  /// Starts every informer that does not run yet; call it again after asking for new ones.
  void start();

  /// Waits until every started informer has its first list; false if a stop was requested before.
  bool wait_for_cache_sync(std::stop_token stop = {});
  /// The names of started informers that have not synced yet.
  std::vector<std::string> unsynced() const;

  /// Stops all informers and waits until nothing of them runs.
  void shutdown();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::informer
