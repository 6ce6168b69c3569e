// How a balancer chooses among instances, and what it learns from calls.
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

/// How a call ended, as far as the instance is concerned.
enum class Outcome {
  kOk,        ///< the instance answered as it should; a refusal that is the caller's fault is that
  kFailed,    ///< no connection, a broken one, or an answer such as 503
  kTimedOut,  ///< no answer in time; counts as a failure
  kIgnored    ///< says nothing about the instance: the caller gave up
};

/// When instances that fail are left alone for a while (Envoy's outlier detection). Only calls that
/// are reported count, so a balancer that nobody reports to ejects nothing.
struct OutlierOptions {
  /// So many failures in a row eject an instance; 0: never.
  unsigned consecutive_failures = 5;
  /// At the end of each interval, instances whose success rate is lower than the mean of all by
  /// this many standard deviations are ejected; 0: never.
  double success_rate_deviations = 1.9;
  std::chrono::milliseconds interval{10'000};
  /// The success rate is looked at only if so many instances had so many calls in the interval.
  unsigned success_rate_instances = 5;
  unsigned success_rate_calls = 100;
  /// The first ejection lasts this long, the n-th one n times as long, up to a limit. After each
  /// such time without an ejection, n is less by one.
  std::chrono::milliseconds base_ejection{30'000};
  std::chrono::milliseconds max_ejection{300'000};
  /// At most this part of the instances is ejected at a time.
  unsigned max_ejected_percent = 50;
  /// If less than this part of the instances is left, ejections are not heeded (Envoy's panic
  /// mode): the few that are left could not carry the load of all. 0: never.
  unsigned panic_percent = 50;
};

/// How many calls may be made again (Finagle's retry budget): when everything fails, retries must
/// not multiply the load.
struct RetryBudget {
  /// For each call so many retries (and backup requests) are saved up,
  double ratio = 0.2;
  /// for each second so many more,
  double per_second = 10;
  /// and at most so many. It begins with these.
  double burst = 100;
};

/// How a Balancer chooses. The functions at the end of this header make one; its members change it:
///
///     registry::p2c_ewma().eject_after(3).prefer_zone("sh001").keep_last_for(30s)
struct BalancerPolicy {
  enum class Kind {
    /// One after the other.
    kRoundRobin,
    /// In proportion to the weights, spread evenly: of as many picks as the weights are together,
    /// each instance gets exactly its weight.
    kWeighted,
    /// The zone that has not been used for longest, and in it one after the other: zones get equal
    /// shares, however many instances they have. With a `local_zone`, that zone alone as long as it
    /// has an instance.
    kZones,
    /// The one with the fewest calls in flight for its weight; of more than 16 instances, the best
    /// of four that are drawn.
    kLeastLoaded,
    /// Draws two and takes the one with the better product of recent success rate, recent
    /// latency and calls in flight (kratos' default, with its constants). An instance that was not
    /// picked for three seconds is picked once when it is drawn.
    kP2cEwma,
    /// The one that owns PickOptions::hash on a ring; if it has more than `bounded_load` times the
    /// mean of calls in flight, the next one on the ring.
    kConsistentHash
  };
  Kind kind = Kind::kRoundRobin;
  /// The metadata key of the weight, a whole number up to 65535. Instances without one, or with one
  /// that cannot be read, weigh `default_weight` (100, as in kratos and dubbo). kWeighted, and
  /// kLeastLoaded and kConsistentHash with it: those that weigh 0 are not chosen.
  LOOKOUT_OPTION std::string weight_key = "weight";
  std::uint32_t default_weight = 100;
  /// kZones: the zone that is preferred.
  LOOKOUT_OPTION std::string local_zone = {};
  /// Where it begins, and what is drawn. By default anything, so that programs that pick only once
  /// do not all pick the same instance; tests give a number.
  std::optional<std::uint64_t> seed = {};

  OutlierOptions outliers = {};
  /// Shared by all calls of this balancer.
  RetryBudget retries = {};
  /// An instance that is new, or comes back from an ejection, gets a share of picks that grows from
  /// a tenth to all of its own in this time. Those of the first set are not new. 0: none of it.
  std::chrono::milliseconds slow_start{0};
  /// Only so many of the instances, chosen by `subset_of`, which should be the caller's own name
  /// (its pod): each caller gets another part, always the same one, and a change of the set changes
  /// as little of it as can be. 0: all.
  std::size_t subset_size = 0;
  LOOKOUT_OPTION std::string subset_of = {};
  /// Only instances that it accepts. Called when a set comes, not for each pick.
  LOOKOUT_OPTION std::function<bool(const ServiceInstance&)> filter = {};
  /// Those that it accepts get `canary_share` (0 to 1) of all picks, the others the rest. If there
  /// are none of one kind, the other kind gets all.
  LOOKOUT_OPTION std::function<bool(const ServiceInstance&)> canary = {};
  double canary_share = 0;
  /// Instances of this zone come first. The zone takes as much as it can carry: all, if its part of
  /// the instances that are not ejected is at least `caller_share`, else proportionally less, and
  /// the rest goes to the other zones (Envoy's zone-aware routing).
  LOOKOUT_OPTION std::string preferred_zone = {};
  /// The part of all callers that are in the zone; 0: as large as that of any other zone.
  double caller_share = 0;
  /// When a set becomes empty at once, the last instances are picked for so long: more likely it is
  /// the announcements that were lost than the instances.
  std::chrono::milliseconds keep_last{0};
  /// kConsistentHash: how much more than the mean an instance may have in flight.
  double bounded_load = 1.25;
  /// A file that keeps the last set for a start while the API server is away (SetFile). Empty:
  /// none.
  LOOKOUT_OPTION std::string cold_start_file = {};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};

  static BalancerPolicy round_robin() { return {}; }
  static BalancerPolicy weighted(std::string key = "weight", std::uint32_t default_weight = 100);
  static BalancerPolicy zones(std::string local_zone = {});
  static BalancerPolicy least_loaded() { return of(Kind::kLeastLoaded); }
  static BalancerPolicy p2c_ewma() { return of(Kind::kP2cEwma); }
  static BalancerPolicy consistent_hash() { return of(Kind::kConsistentHash); }

  // Each returns a changed copy.

  /// Ejects after so many failures in a row, for `base` at first; 0: not for failures in a row.
  BalancerPolicy eject_after(unsigned failures) const;
  BalancerPolicy eject_after(unsigned failures, std::chrono::milliseconds base) const;
  /// Ejects nothing.
  BalancerPolicy never_eject() const;
  BalancerPolicy slow_start_for(std::chrono::milliseconds time) const;
  BalancerPolicy subset(std::size_t size, std::string of) const;
  /// Only instances of this version.
  BalancerPolicy only_version(std::string version) const;
  /// Only instances with this metadata. Filters add up.
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

/// A number for PickOptions::hash: the same for the same text in every program.
std::uint64_t hash_of(std::string_view text);

}  // namespace lookout::registry
