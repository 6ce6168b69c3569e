// NamespaceLimits: enforces LimitRanges and ResourceQuotas.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/quota/gate.h"
#include "apiserver/quota/resource_list.h"
#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::quota {

/// Applies a namespace's LimitRanges and ResourceQuotas. Before an object is written, charge() adds its
/// usage to `status.used` of the quotas by compare-and-swap: concurrent creations never exceed a
/// quota, even with several servers on one storage. Deletions subtract nothing: settle() recounts
/// everything, while this server creates nothing in the namespace.
///
/// Thread-safe. Rejections are api::StatusError (403).
class NamespaceLimits {
 public:
  /// Keeps the reference.
  explicit NamespaceLimits(resources::ResourceRegistry& resources);

  /// `stale` is called, on any thread, with each namespace whose `status.used` may be too high. Set
  /// it before the first request.
  void on_stale(std::function<void(const std::string& ns)> stale) { stale_ = std::move(stale); }

  /// A new or resized pod with the default requests and limits of its namespace.
  Awaitable<api::Object> complete_pod(std::string ns, api::Object pod);

  /// Throws if an object is outside of the namespace's LimitRanges. `old` is empty for a new one.
  Awaitable<void> check(resources::ServedResourcePtr resource, std::string ns, api::Object object,
                        api::Object old);

  /// A write's addition to the quotas.
  class Charge {
   public:
    Charge() = default;
    ~Charge();
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&&) = delete;
    /// The object was written. A charge that is neither kept nor refunded makes its namespace stale.
    void keep();

   private:
    friend class NamespaceLimits;
    NamespaceLimits* limits_ = nullptr;
    std::string ns_;
    /// By the name of the quota.
    std::vector<std::pair<std::string, ResourceList>> taken_;
    Gate::Pass pass_;
  };

  /// Adds an object's usage, or its increase over `old`, to all quotas that count it. Throws if one of
  /// them does not allow it. End the charge after the write: settle() waits for it.
  Awaitable<Charge> charge(resources::ServedResourcePtr resource, std::string ns,
                           api::Object object, api::Object old, bool dry_run);
  /// Subtracts the charge again, because the object was not written.
  Awaitable<void> refund(Charge charge);

  /// Whether updates of such objects are checked and charged, too.
  static bool concerns_updates(const api::Resource& type);

  /// Counts the usage of a namespace. Writes it and the limits to the status of its quotas.
  Awaitable<void> settle(std::string ns);

  /// Records that a client of this server has written a quota or a range, so that the next request
  /// reads it.
  void note(const resources::ServedResource& resource, const api::Object& object);

  /// The served resources whose objects these quota names (`pods`, `count/jobs.batch`) count.
  std::vector<resources::ServedResourcePtr> counted_by(
      const std::set<std::string, std::less<>>& names) const;

 private:
  Awaitable<std::vector<api::Object>> list(resources::ServedResourcePtr resource, std::string ns,
                                           bool latest);
  /// The usage in `ns`, for each of the quotas.
  Awaitable<std::vector<ResourceList>> count(std::string ns, std::vector<api::Object> quotas) const;
  Awaitable<void> add_to(std::string ns, std::string quota, ResourceList delta, bool taken);
  /// False if a quota changed meanwhile.
  Awaitable<bool> settle_once(std::string ns);

  resources::ResourceRegistry& resources_;
  const resources::ServedResourcePtr quotas_;
  const resources::ServedResourcePtr ranges_;
  std::function<void(const std::string& ns)> stale_;
  Gate gate_;
  /// The newest revision of a quota or a range that this server has written.
  std::atomic<storage::Revision> written_{0};
};

}  // namespace lookout::apiserver::quota
