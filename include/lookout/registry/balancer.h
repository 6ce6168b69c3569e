// Choosing an instance for each request, and calling it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/base/metrics.h"
#include "lookout/registry/call.h"
#include "lookout/registry/detail/call_templates.h"
#include "lookout/registry/feed.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/pick.h"
#include "lookout/registry/policy.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// Chooses among the instances of a service that are ready and have an endpoint, and learns from
/// what is reported of the calls. pick() takes no lock and allocates nothing; what a policy needs
/// is worked out when the set changes.
///
///     registry::Balancer web(registry, "web", registry::p2c_ewma().eject_after(3));
///     auto answer = web.call({.attempts = 3, .deadline = 1s, .scheme = "http"},
///                            [&](const registry::Endpoint& e) { return http.get(e.url("/")); });
///
/// call() picks, reports, and asks another instance when one fails. Programs that do that
/// themselves use pick() and report():
///
///     if (const auto pick = web.pick({.scheme = "http"})) {
///       const auto begun = std::chrono::steady_clock::now();
///       const bool ok = get(pick.endpoint().url("/hello"));
///       web.report(pick, ok ? registry::Outcome::kOk : registry::Outcome::kFailed,
///                  std::chrono::steady_clock::now() - begun);
///     }
///
/// All functions are from any thread. Threads that share a balancer share its order: what one
/// thread picks next is not what comes after its last pick. Must not outlive the Discovery's loop;
/// picks may outlive it.
class Balancer : public metrics::Source {
 public:
  /// Throws as Discovery::subscribe().
  Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy = {});
  ~Balancer() override;
  Balancer(Balancer&&) noexcept;
  Balancer& operator=(Balancer&&) noexcept;

  Pick pick() const;
  /// One that is none of `tried`, whatever the set has become since (instances are told apart by
  /// their keys); nothing if there is no other. For calls that ask another instance when one has
  /// failed. With a local zone of which all have been tried, one of another zone.
  Pick pick(std::span<const Pick> tried) const;
  /// Nothing if no instance is what the options ask for. An instance that is ejected is picked only
  /// if there is no other.
  Pick pick(const PickOptions& options) const;

  /// How the call on a pick ended: what later picks learn from. Pick::report() is the same.
  void report(const Pick& pick, Outcome outcome, std::chrono::nanoseconds latency) const {
    pick.report(outcome, latency);
  }

  /// Calls an instance; when the call fails, another one. call.h has the rules.
  template <class Function>
  auto call(const CallPolicy& policy, Function&& function) const {
    return detail::blocking_call(*this, policy, function, detail::AlwaysOk());
  }
  /// `judge` tells from a result how the call ended, for functions that do not throw: a result that
  /// is not kOk is a failure, and is returned if there is no further attempt.
  template <class Function, class Judge>
  auto call(const CallPolicy& policy, Function&& function, Judge&& judge) const {
    return detail::blocking_call(*this, policy, function, judge);
  }
  /// The same for functions that are coroutines (return an Awaitable). The balancer must live until
  /// it is done. With GCC 12, give a lambda that owns what it captures a name before the co_await
  /// expression; within it, the compiler destroys the captures twice (docs/dependencies.md).
  template <class Function>
  auto async_call(CallPolicy policy, Function function) const {
    return detail::coroutine_call(*this, std::move(policy), std::move(function),
                                  detail::AlwaysOk());
  }
  template <class Function, class Judge>
  auto async_call(CallPolicy policy, Function function, Judge judge) const {
    return detail::coroutine_call(*this, std::move(policy), std::move(function), std::move(judge));
  }

  /// The set that picks are made of.
  InstanceSetPtr load() const;
  /// Whether that set follows the cluster, since when, and what the last error is if it does not.
  Freshness freshness() const { return load()->freshness(); }
  /// Waits until picks are made of another set than this one; false if the time is over first.
  bool wait_for_change(const InstanceSet& from, std::chrono::milliseconds time,
                       std::stop_token stop = {}) const;
  /// Waits for an instance that can be picked; false if none comes in time.
  bool wait_for_instance(std::chrono::milliseconds time, std::stop_token stop = {}) const;

  /// One instance and what is known of it, for pages and logs.
  struct InstanceState {
    std::string key = {};
    std::uint64_t ok = 0;      ///< calls that were reported, since it is announced
    std::uint64_t failed = 0;  ///< the others of them
    std::int64_t in_flight = 0;
    bool ejected = false;
  };
  std::vector<InstanceState> instances() const;

  /// lookout_registry_*: picks, errors and calls in flight by instance, ejections, the size and the
  /// staleness of the set, calls, retries.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  friend class detail::CallRun;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lookout::registry
