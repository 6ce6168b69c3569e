// Balancer: picks an instance for each request, and calls it.
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

/// Picks ready instances of a service that have an endpoint, and learns from the reported results
/// of calls. pick() takes no lock and allocates nothing; the policy's data is prepared when the set
/// changes.
///
///     registry::Balancer web(registry, "web", registry::p2c_ewma().eject_after(3));
///     auto answer = web.call({.attempts = 3, .deadline = 1s, .scheme = "http"},
///                            [&](const registry::Endpoint& e) { return http.get(e.url("/")); });
///
/// call() picks, reports, and calls another instance when a call fails. Programs that do this
/// themselves use pick() and report():
///
///     if (const auto pick = web.pick({.scheme = "http"})) {
///       const auto begun = std::chrono::steady_clock::now();
///       const bool ok = get(pick.endpoint().url("/hello"));
///       web.report(pick, ok ? registry::Outcome::kOk : registry::Outcome::kFailed,
///                  std::chrono::steady_clock::now() - begun);
///     }
///
/// All functions may be called from any thread. Threads that share a balancer share its order, so
/// consecutive picks of one thread need not be consecutive in that order. A balancer must not
/// outlive the Discovery's event loop; picks may outlive the balancer.
class Balancer : public metrics::Source {
 public:
  /// Throws what Discovery::subscribe() throws.
  Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy = {});
  ~Balancer() override;
  Balancer(Balancer&&) noexcept;
  Balancer& operator=(Balancer&&) noexcept;

  Pick pick() const;
  /// Returns an instance that is not in `tried`, even if the set has changed since (keys identify
  /// instances); empty if there is no other. For calls that try another instance after a failure.
  /// If all instances of the local zone have been tried, returns one of another zone.
  Pick pick(std::span<const Pick> tried) const;
  /// Empty if no instance satisfies the options. Picks an ejected instance only if there is no
  /// other.
  Pick pick(const PickOptions& options) const;

  /// Reports the result of the call on a pick (not of a copy), from which later picks learn. Same as
  /// Pick::report().
  void report(const Pick& pick, Outcome outcome, std::chrono::nanoseconds latency) const {
    pick.report(outcome, latency);
  }

  /// Calls an instance and, if the call fails, another one. See call.h for the rules.
  template <class Function>
  auto call(const CallPolicy& policy, Function&& function) const {
    return detail::blocking_call(*this, policy, function, detail::AlwaysOk());
  }
  /// `judge` returns the Outcome for a result, for functions that do not throw. A result that is
  /// not kOk is a failure; it is returned if there is no further attempt.
  template <class Function, class Judge>
  auto call(const CallPolicy& policy, Function&& function, Judge&& judge) const {
    return detail::blocking_call(*this, policy, function, judge);
  }
  /// The same for coroutines (functions that return an Awaitable). The balancer must live until the
  /// call has ended. With GCC 12, give a lambda with captures that own memory a name before the
  /// co_await expression; otherwise the compiler destroys the captures twice
  /// (docs/dependencies.md).
  template <class Function>
  auto async_call(CallPolicy policy, Function function) const {
    return detail::coroutine_call(*this, std::move(policy), std::move(function),
                                  detail::AlwaysOk());
  }
  template <class Function, class Judge>
  auto async_call(CallPolicy policy, Function function, Judge judge) const {
    return detail::coroutine_call(*this, std::move(policy), std::move(function), std::move(judge));
  }

  /// The set that picks come from.
  InstanceSetPtr load() const;
  /// Says whether that set follows the cluster, since when, and the last error if it does not.
  Freshness freshness() const { return load()->freshness(); }
  /// Waits until picks come from a set other than this one; returns false on timeout.
  bool wait_for_change(const InstanceSet& from, std::chrono::milliseconds time,
                       std::stop_token stop = {}) const;
  /// Waits for an instance that can be picked; returns false on timeout.
  bool wait_for_instance(std::chrono::milliseconds time, std::stop_token stop = {}) const;

  /// The state of one instance, for pages and logs.
  struct InstanceState {
    std::string key = {};
    std::uint64_t ok = 0;      ///< reported successful calls since the instance was announced
    std::uint64_t failed = 0;  ///< reported failed calls
    std::int64_t in_flight = 0;
    bool ejected = false;
  };
  std::vector<InstanceState> instances() const;

  /// lookout_registry_*: picks, errors and calls in flight per instance, ejections, the size and
  /// the staleness of the set, calls, retries.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  friend class detail::CallRun;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lookout::registry
