// Which resources are served, custom ones included.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::resources {

/// The resources of Kubernetes, and those that CustomResourceDefinitions in the storage define.
/// Safe to use from many threads.
class ResourceRegistry {
 public:
  explicit ResourceRegistry(storage::Backend& backend);

  storage::Backend& backend() const { return backend_; }

  std::shared_ptr<const ResourceTable> table() const;

  /// Looks at the definitions now. What they define is served when this returns.
  Awaitable<void> refresh();
  /// Looks at them whenever one changes, whoever changed it; ends with the watch of the storage.
  Awaitable<void> follow();

 private:
  void publish(storage::Revision revision, const std::vector<api::Object>& definitions);

  storage::Backend& backend_;
  std::vector<ServedResourcePtr> builtin_;
  ServedResourcePtr definitions_;

  /// Locked before mutex_.
  std::mutex publishing_;
  storage::Revision revision_ = 0;  // guarded by publishing_
  std::set<std::string> places_;    // of the custom resources; guarded by publishing_
  mutable std::mutex mutex_;
  std::shared_ptr<const ResourceTable> table_;  // guarded by mutex_
};

/// What a definition defines: a resource for each served version; nothing as long as its names are
/// not accepted.
std::vector<ServedResourcePtr> custom_resources(const api::Object& definition,
                                                storage::Backend& backend);

}  // namespace lookout::apiserver::resources
