// ResourceRegistry: the served resources, including custom ones.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::webhooks {
class WebhookClient;
}

namespace lookout::apiserver::resources {

/// The built-in resources, and those of the CustomResourceDefinitions in the storage. Thread-safe.
class ResourceRegistry {
 public:
  explicit ResourceRegistry(storage::Backend& backend);

  storage::Backend& backend() const { return backend_; }

  /// The client for conversion webhooks; without it, versions differ only in apiVersion. Call it before
  /// the first refresh(). The client must outlive all requests.
  void convert_with(webhooks::WebhookClient* client) { webhooks_ = client; }

  std::shared_ptr<const ResourceTable> table() const;

  /// Reads the definitions. When this returns, their resources are served.
  Awaitable<void> refresh();
  /// Calls `changed` and refresh() after each change of a definition, and ends the watches of removed
  /// resources. Returns when the storage's watch ends.
  Awaitable<void> follow(std::function<Awaitable<void>()> changed);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// A definition and its resources.
  struct Defined {
    api::Object definition;
    std::vector<std::shared_ptr<ServedResource>> resources;
  };
  /// Watches that are to end.
  struct Retired {
    TimePoint due;
    std::stop_source watches;
  };

  void publish(storage::Revision revision, const std::vector<api::Object>& definitions);
  /// Ends the watches that are due. Returns when the next ones are due.
  TimePoint end_retired();

  storage::Backend& backend_;
  webhooks::WebhookClient* webhooks_ = nullptr;
  std::vector<ServedResourcePtr> builtin_;
  ServedResourcePtr definitions_;

  /// Locked before mutex_.
  std::mutex publishing_;
  storage::Revision revision_ = 0;  // guarded by publishing_
  std::set<std::string> places_;    // of the custom resources; guarded by publishing_
  /// By name, so that only changed definitions are read again; guarded by publishing_.
  std::map<std::string, Defined, std::less<>> defined_;
  /// For each version of a definition; guarded by publishing_.
  std::map<std::string, std::stop_source> served_;
  std::vector<Retired> retired_;  // in the order of `due`; guarded by publishing_
  mutable std::mutex mutex_;
  std::shared_ptr<const ResourceTable> table_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::resources
