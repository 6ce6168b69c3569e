// QuotaController: recounts the usage of ResourceQuotas.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "apiserver/controllers/controllers.h"
#include "apiserver/quota/namespace_limits.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::controllers {

/// Recounts a namespace when one of its quotas is new or changed, when a counted object was deleted
/// or uses less, and every five minutes (k8s.io/kubernetes/pkg/controller/resourcequota). Both
/// references must outlive it, and it must outlive its tasks, which run on the controllers' thread.
class QuotaController {
 public:
  QuotaController(Context context, quota::NamespaceLimits& limits)
      : context_(context), limits_(limits) {}

  /// Starts the tasks. Call it on the controllers' thread, or before that runs.
  void begin();
  /// Schedules a recount of the namespace. From any thread.
  void mark(const std::string& ns);

 private:
  class BellRemoval;
  using Names = std::set<std::string, std::less<>>;

  Awaitable<void> follow_quotas();
  Awaitable<void> follow_objects(std::string group, std::string plural);
  Awaitable<void> settle();
  /// False if the watch has expired and a new one must continue.
  Awaitable<bool> watch_quotas();
  Awaitable<bool> watch_objects(resources::ServedResourcePtr resource);
  /// The resource in any version; null if no quota counts it, or it is not served.
  resources::ServedResourcePtr find(const std::string& group, const std::string& plural) const;
  void mark_all();
  Names names() const;
  /// Watches every resource that a quota counts. False if one of them is not served yet.
  bool watch_counted();

  const Context context_;
  quota::NamespaceLimits& limits_;
  /// The limited resources, by quota key. Used on the controllers' thread.
  std::map<std::string, Names> quotas_;
  /// "plural.group" of the watched resources. Used on the controllers' thread.
  std::set<std::string> watched_;
  std::mutex mutex_;
  std::set<std::string> marked_;    // guarded by mutex_
  std::optional<AsyncEvent> bell_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::controllers
