// BalancerPolicy: how a balancer picks instances, and what it learns from calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/registry/service_instance.h"

namespace lookout::registry {

/// The result of a call, with regard to the instance.
enum class Outcome {
  kOk,        ///< the expected answer, or a rejection that is the caller's fault
  kFailed,    ///< no connection, a broken one, or an answer such as 503
  kTimedOut,  ///< no answer in time; counts as a failure
  kIgnored    ///< says nothing about the instance, for example because the caller gave up
};

/// When failing instances are ejected for a while (Envoy's outlier detection). Only reported calls
/// count.
struct OutlierOptions {
  /// This many consecutive failures eject an instance; 0: never.
  unsigned consecutive_failures = 5;
  /// After each interval, instances are ejected whose success rate is this many standard deviations
  /// below the mean of all instances; 0: never.
  double success_rate_deviations = 1.9;
  std::chrono::milliseconds interval{10'000};
  /// The success rate is checked only if this many instances had this many calls in the interval.
  unsigned success_rate_instances = 5;
  unsigned success_rate_calls = 100;
  /// The first ejection lasts this long, the n-th one n times as long, up to a limit. Each such
  /// period without an ejection decrements n.
  std::chrono::milliseconds base_ejection{30'000};
  std::chrono::milliseconds max_ejection{300'000};
  /// The maximum percentage of instances that are ejected at a time.
  unsigned max_ejected_percent = 50;
  /// If a smaller percentage of the instances is left, ejections are ignored (Envoy's panic mode),
  /// because the remaining instances could not carry the whole load. 0: never.
  unsigned panic_percent = 50;
};

/// How many retries are allowed (Finagle's retry budget), so that they do not multiply the load
/// when everything fails.
struct RetryBudget {
  /// Each call adds this many retries (and backup requests) to the budget,
  double ratio = 0.2;
  /// each second adds this many,
  double per_second = 10;
  /// up to this maximum, which is also the initial budget.
  double burst = 100;
};

/// How a Balancer picks instances. The functions at the end of this header create a policy; its
/// member functions return changed copies:
///
///     registry::p2c_ewma().eject_after(3).prefer_zone("sh001").keep_last_for(30s)
struct BalancerPolicy {
  enum class Kind {
    /// Each instance in turn.
    kRoundRobin,
    /// In proportion to the weights, evenly interleaved: in a round of as many picks as the sum of
    /// the weights, each instance gets exactly its weight.
    kWeighted,
    /// The zone that was unused for longest, and each of its instances in turn: zones get equal
    /// shares, regardless of their sizes. With a `local_zone`, only that zone while it has an
    /// instance.
    kZones,
    /// The instance with the fewest calls in flight relative to its weight; with more than 16
    /// instances, the best of four random ones.
    kLeastLoaded,
    /// The better of two random instances by the product of recent success rate, recent latency and
    /// calls in flight (kratos' default, with its constants). An instance that was not picked for
    /// three seconds is picked once when it is drawn.
    kP2cEwma,
    /// The instance that owns PickOptions::hash on a ring; if it has more than `bounded_load` times
    /// the mean number of calls in flight, the next one on the ring.
    kConsistentHash
  };
  Kind kind = Kind::kRoundRobin;
  /// The metadata key of the weight, an integer up to 65535. Instances without a valid weight have
  /// `default_weight` (100, as in kratos and dubbo). For kWeighted, and for kLeastLoaded and
  /// kConsistentHash if the key is set: instances of weight 0 are not picked.
  LOOKOUT_OPTION std::string weight_key = "weight";
  std::uint32_t default_weight = 100;
  /// kZones: the preferred zone.
  LOOKOUT_OPTION std::string local_zone = {};
  /// The seed of the starting point and of random choices. By default random, so that programs that
  /// pick only once do not all pick the same instance; tests set it.
  std::optional<std::uint64_t> seed = {};

  OutlierOptions outliers = {};
  /// The retry budget of all calls of this balancer.
  RetryBudget retries = {};
  /// The share of an instance that is new or returns from an ejection grows from a tenth to its
  /// full share in this time. Instances of the first set are not new. 0: no slow start.
  std::chrono::milliseconds slow_start{0};
  /// Uses only this many instances, selected by `subset_of`, which should be the caller's own name
  /// (its pod): each caller always gets the same part, and a change of the set changes as little of
  /// it as possible. If instances differ in their schemes, it is at least this many of each scheme,
  /// so that picks by scheme find enough. 0: all.
  std::size_t subset_size = 0;
  LOOKOUT_OPTION std::string subset_of = {};
  /// Uses only instances that it accepts. Called when the set changes, not for each pick. An
  /// exception is logged and counts as false; so it does for `canary`.
  LOOKOUT_OPTION std::function<bool(const ServiceInstance&)> filter = {};
  /// The instances that it accepts get `canary_share` (0 to 1) of all picks, the others the rest.
  /// If there are no instances of one kind, the other kind gets all picks.
  LOOKOUT_OPTION std::function<bool(const ServiceInstance&)> canary = {};
  double canary_share = 0;
  /// Prefers instances of this zone. The zone gets as many picks as its capacity allows: all, if
  /// its share of the instances that are not ejected is at least `caller_share`, otherwise
  /// proportionally fewer; the rest goes to other zones (Envoy's zone-aware routing).
  LOOKOUT_OPTION std::string preferred_zone = {};
  /// The share of all callers that are in the zone; 0: the same for each zone.
  double caller_share = 0;
  /// When all instances disappear at once, the last set stays in use for this time: most likely the
  /// announcements were lost, not the instances.
  std::chrono::milliseconds keep_last{0};
  /// kConsistentHash: the maximum number of calls in flight of an instance, relative to the mean.
  double bounded_load = 1.25;
  /// A file that keeps the last set, for starts while the API server is unreachable (SetFile).
  /// Empty: none.
  LOOKOUT_OPTION std::string cold_start_file = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};

  static BalancerPolicy round_robin() { return {}; }
  static BalancerPolicy weighted(std::string key = "weight", std::uint32_t default_weight = 100);
  static BalancerPolicy zones(std::string local_zone = {});
  static BalancerPolicy least_loaded() { return of(Kind::kLeastLoaded); }
  static BalancerPolicy p2c_ewma() { return of(Kind::kP2cEwma); }
  static BalancerPolicy consistent_hash() { return of(Kind::kConsistentHash); }

  // Each returns a changed copy.

  /// Ejects after this many consecutive failures, at first for `base`; 0: consecutive failures do
  /// not eject.
  BalancerPolicy eject_after(unsigned failures) const;
  BalancerPolicy eject_after(unsigned failures, std::chrono::milliseconds base) const;
  /// Ejects nothing.
  BalancerPolicy never_eject() const;
  BalancerPolicy slow_start_for(std::chrono::milliseconds time) const;
  BalancerPolicy subset(std::size_t size, std::string of) const;
  /// Only instances of this version.
  BalancerPolicy only_version(std::string version) const;
  /// Only instances with this metadata. Filters are combined.
  BalancerPolicy where(std::string key, std::string value) const;
  BalancerPolicy where(std::function<bool(const ServiceInstance&)> accepts) const;
  /// Instances of this version get this share of all picks.
  BalancerPolicy canary_version(std::string version, double share) const;
  BalancerPolicy prefer_zone(std::string zone, double callers = 0) const;
  BalancerPolicy keep_last_for(std::chrono::milliseconds time) const;
  BalancerPolicy cold_start_from(std::string file) const;
  BalancerPolicy with_seed(std::uint64_t number) const;
  BalancerPolicy with_clock(std::shared_ptr<Clock> other) const;

 private:
  static BalancerPolicy of(Kind kind);
};

inline BalancerPolicy round_robin() { return BalancerPolicy::round_robin(); }
inline BalancerPolicy weighted(std::string key = "weight") {
  return BalancerPolicy::weighted(std::move(key));
}
inline BalancerPolicy least_loaded() { return BalancerPolicy::least_loaded(); }
inline BalancerPolicy p2c_ewma() { return BalancerPolicy::p2c_ewma(); }
inline BalancerPolicy consistent_hash() { return BalancerPolicy::consistent_hash(); }

/// Computes PickOptions::hash from text; every program gets the same result.
std::uint64_t hash_of(std::string_view text);

}  // namespace lookout::registry
