// NamespaceLimits: LimitRanges and ResourceQuotas, applied.
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

/// What may be created in a namespace. A quota's `status.used` is the account: a creation adds to
/// it before the object is written, by compare and swap, so that creations beside each other never
/// overrun it, those of other servers on the same storage included. What goes is taken off by
/// settle(), which counts again while nothing of the namespace is being created here.
///
/// Safe to use from many threads. Refusals are api::StatusError (403).
class NamespaceLimits {
 public:
  /// Keeps the reference.
  explicit NamespaceLimits(resources::ResourceRegistry& resources);

  /// Called, on any thread, with a namespace whose account may be too high. Before the first
  /// request.
  void on_stale(std::function<void(const std::string& ns)> stale) { stale_ = std::move(stale); }

  /// A new pod with the default requests and limits of its namespace.
  Awaitable<api::Object> complete_pod(std::string ns, api::Object pod);

  /// Throws if an object is outside of the namespace's LimitRanges. `old` is empty for a new one.
  Awaitable<void> check(resources::ServedResourcePtr resource, std::string ns, api::Object object,
                        api::Object old);

  /// What was added to accounts for one write.
  class Charge {
   public:
    Charge() = default;
    ~Charge();
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&&) = delete;
    /// The object has been written. Otherwise the account is counted again some time later.
    void keep();

   private:
    friend class NamespaceLimits;
    NamespaceLimits* limits_ = nullptr;
    std::string ns_;
    /// By the name of the quota.
    std::vector<std::pair<std::string, ResourceList>> taken_;
    Gate::Pass pass_;
  };

  /// Adds what an object uses, or what it uses more than `old`, to all accounts that are
  /// concerned. Throws if a quota does not allow it. The charge must end when the object has been
  /// written: settle() waits for it.
  Awaitable<Charge> charge(resources::ServedResourcePtr resource, std::string ns,
                           api::Object object, api::Object old, bool dry_run);
  /// Takes it off again: nothing was written.
  Awaitable<void> refund(Charge charge);

  /// Whether a change of such objects may be refused or charged.
  static bool concerns_updates(const api::Resource& type);

  /// Counts what a namespace uses, and writes it and the limits to the status of its quotas.
  Awaitable<void> settle(std::string ns);

  /// A client of this server has written a quota or a range: the next request sees it.
  void note(const resources::ServedResource& resource, const api::Object& object);

  /// The resources that some of these quotas count.
  std::vector<resources::ServedResourcePtr> counted_by(
      const std::set<std::string, std::less<>>& names) const;

 private:
  Awaitable<std::vector<api::Object>> list(resources::ServedResourcePtr resource, std::string ns,
                                           bool latest);
  /// What each of the quotas counts.
  Awaitable<std::vector<ResourceList>> count(std::string ns, std::vector<api::Object> quotas);
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
