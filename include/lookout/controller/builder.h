// Builder: makes a controller.
#pragma once

#include <algorithm>
#include <cctype>
#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/controller/controller.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/predicate.h"
#include "lookout/controller/source.h"

namespace lookout::controller {

/// Makes a controller that reconciles objects of type T and adds it to the manager;
/// controller-runtime's builder.
///
///     controller::Builder<Website>(manager)
///         .owns<k8s::apps::v1::Deployment>()
///         .when(controller::generation_changed() || controller::labels_changed())
///         .reconcile([](controller::Request request, controller::Context& context)
///                        -> controller::Result { ... });
///
/// Call reconcile() last. It declares watched kinds in the manager's cache, unless they are
/// declared already.
///
/// A controller whose requests do not name objects of a single kind has no T, but a name:
///
///     controller::Builder(manager).named("shards").watches<Pod>(map).reconcile(...);
///
/// Several controllers may reconcile the same kind; each needs its own name and has its own queue.
template <class T = void>
class Builder {
  static constexpr bool kHasPrimary = !std::is_void_v<T>;
  static_assert(!kHasPrimary || api::ResourceObject<T>,
                "lookout: a Builder's T is a type with a resource, such as k8s::core::v1::Pod");

 public:
  /// Creations, changes and deletions of T enqueue a request for the object itself.
  explicit Builder(Manager& manager, WatchOptions options = {})
    requires(kHasPrimary)
      : Builder(manager, manager.controller_defaults()) {
    require_own_cluster(options);
    spec_.primary = api::Resource(T::kResource);
    spec_.options.name = spec_.primary.kind;
    std::transform(spec_.options.name.begin(), spec_.options.name.end(), spec_.options.name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    spec_.watches.push_back(
        {spec_.primary, options.only_metadata, enqueue_object(), std::move(options.predicate)});
  }
  /// Has no kind of its own: call named(), and watches() or source().
  explicit Builder(Manager& manager)
    requires(!kHasPrimary)
      : Builder(manager, manager.controller_defaults()) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Events of U enqueue a request for the T that owns the object (owner references).
  /// New objects of the reconciler get the controller reference, unless with match_any_owner; see
  /// also Context::create_or_update().
  template <api::ResourceObject U>
  Builder& owns(WatchOptions options = {}) {
    static_assert(kHasPrimary, "lookout: owns() needs to know the owner: Builder<T>(manager)");
    require_own_cluster(options);
    const api::Resource owned(U::kResource);
    spec_.owned.push_back(owned);
    if (options.match_any_owner) spec_.shared.push_back(owned);
    spec_.watches.push_back({owned, options.only_metadata,
                             enqueue_owner(spec_.primary, options.match_any_owner),
                             std::move(options.predicate)});
    return *this;
  }

  /// Events of U enqueue the requests that `map(object, enqueue)` adds, or that `map(object)` returns;
  /// see MapFunction. An index of the cache finds the objects that refer to the one of the event:
  ///
  ///     .watches<Secret>([&manager](const Secret& secret, controller::Enqueue& enqueue) {
  ///       auto caches = manager.cache().view();
  ///       for (const auto& site : caches.by_index<Website>("secret", secret.key()))
  ///         enqueue({site.ns(), site.name()});
  ///     })
  template <api::ResourceObject U, detail::MapsToRequests<U> Map>
  Builder& watches(Map map, WatchOptions options = {}) {
    spec_.watches.push_back(watch_of<U>(std::move(map), std::move(options)));
    return *this;
  }

  /// Adds a raw source, such as timer() or a Channel.
  Builder& source(std::shared_ptr<Source> from) {
    spec_.sources.push_back(std::move(from));
    return *this;
  }

  /// Only events that match enqueue requests; raw sources are not filtered. Several predicates are
  /// combined with &&.
  Builder& when(Predicate predicate) {
    when_ = std::move(when_) && std::move(predicate);
    return *this;
  }

  /// The default name is the kind in lower case; without a kind, a name is required.
  Builder& named(std::string name) {
    spec_.options.name = std::move(name);
    return *this;
  }
  Builder& concurrency(unsigned count) {
    spec_.options.concurrency = count;
    return *this;
  }
  Builder& rate_limiter(std::shared_ptr<workqueue::RateLimiter<Request>> limiter) {
    spec_.options.rate_limiter = std::move(limiter);
    return *this;
  }
  /// See ControllerOptions::debounce.
  Builder& debounce(std::chrono::milliseconds period) {
    spec_.options.debounce = period;
    return *this;
  }
  Builder& reconcile_timeout(std::chrono::milliseconds timeout) {
    spec_.options.reconcile_timeout = timeout;
    return *this;
  }
  /// See ControllerOptions::stuck_after.
  Builder& stuck_after(std::chrono::milliseconds bound) {
    spec_.options.stuck_after = bound;
    return *this;
  }
  Builder& needs_leader_election(bool needed) {
    spec_.options.needs_leader_election = needed;
    return *this;
  }
  Builder& warm_up(bool early = true) {
    spec_.options.warm_up = early;
    return *this;
  }
  /// Changes other options; sees the options set so far.
  Builder& options(const std::function<void(ControllerOptions&)>& change) {
    change(spec_.options);
    return *this;
  }

  /// Makes the controller. `function` takes (Request, Context&). If it returns Result, it runs on
  /// threads of the controller and may block; if it returns Awaitable<Result>, it runs on the event
  /// loop. The manager keeps it until the manager is destroyed. Throws InvalidArgument if the name
  /// is missing or taken; if nothing is watched; if `function` is an empty std::function; or if the
  /// manager is stopping.
  ///
  /// The returned controller accepts further watches while it runs. It may be ignored.
  template <class Function>
  Controller reconcile(Function function) {
    constexpr bool kFits = std::is_invocable_v<Function&, Request, Context&>;
    static_assert(kFits,
                  "lookout: a reconciler is called with (controller::Request request, "
                  "controller::Context& context)");
    if constexpr (kFits) {  // (without a second, lengthy error)
      using Returned = std::invoke_result_t<Function&, Request, Context&>;
      static_assert(
          std::is_same_v<Returned, Awaitable<Result>> || std::is_convertible_v<Returned, Result>,
          "lookout: a reconciler returns controller::Result or Awaitable<controller::Result>");
      if constexpr (std::is_same_v<Returned, Awaitable<Result>>) {
        spec_.reconcile = AsyncReconcileFunction(std::move(function));
      } else {
        spec_.reconcile = ReconcileFunction(std::move(function));
      }
    }
    for (Watch& watch : spec_.watches) watch.predicate = std::move(watch.predicate) && when_;
    return manager_.add(std::move(spec_));
  }

 private:
  Builder(Manager& manager, const ControllerOptions& defaults) : manager_(manager) {
    spec_.options = defaults;
  }
  static void require_own_cluster(const WatchOptions& options) {
    if (options.cluster)
      throw InvalidArgument(
          "a Builder's T and the kinds that it owns() must be of the manager's own cluster");
  }

  Manager& manager_;
  ControllerSpec spec_;
  Predicate when_;
};

explicit Builder(Manager&) -> Builder<void>;

}  // namespace lookout::controller
