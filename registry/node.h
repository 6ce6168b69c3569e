// Node: a balancer's state of an instance.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/registry/policy.h"

namespace lookout::registry::detail {

/// The time in nanoseconds of the balancer's clock.
using Nanos = std::int64_t;

inline Nanos nanos_of(Clock::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// At most ten years (Clock::limited).
inline Nanos nanos_of(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds(Clock::limited(time)).count();
}

class Plan;

/// The common state of a balancer's instances: the rules, and conditions that are rarely true, which
/// a pick checks first.
struct Health {
  explicit Health(const BalancerPolicy& policy)
      : outliers(policy.outliers),
        slow_start(nanos_of(policy.slow_start)),
        learns_latency(policy.kind == BalancerPolicy::Kind::kP2cEwma),
        counts_all(policy.kind == BalancerPolicy::Kind::kConsistentHash),
        clock(policy.clock ? policy.clock : Clock::real()) {}

  Nanos now() const { return nanos_of(clock->now()); }

  const OutlierOptions outliers;
  const Nanos slow_start;
  const bool learns_latency;
  const bool counts_all;  // count the calls in flight on all instances
  const std::shared_ptr<Clock> clock;

  std::atomic<std::uint32_t> ejected{0};    // current number
  std::atomic<Nanos> ramp_until{0};         // some instance may be in slow start until then
  std::atomic<Nanos> next_look{0};          // next check of success rates; 0: none yet
  std::atomic<std::int64_t> in_flight{0};   // of all, if counts_all
  std::atomic<std::uint64_t> ejections{0};  // totals, as below
  std::atomic<std::uint64_t> unserved{0};   // picks that found no instance
  std::atomic<std::uint64_t> panics{0};     // picks that ignored ejections
  std::mutex ejecting;                      // guards ejections and their counts
};

/// The ejected instances of one zone.
struct ZoneHealth {
  std::atomic<std::uint32_t> ejected{0};
};

/// An instance while it is announced at one address. Thread-safe. Races between threads can make
/// averages slightly inaccurate.
class Node {
 public:
  Node(std::string key, std::uint64_t address, std::shared_ptr<ZoneHealth> zone, Nanos ramp_from)
      : key_(std::move(key)), address_(address), zone_(std::move(zone)), ramp_from_(ramp_from) {}

  const std::string& key() const { return key_; }
  /// The hash of the address.
  std::uint64_t address() const { return address_; }
  const std::shared_ptr<ZoneHealth>& zone() const { return zone_; }

  void take_off(Health& health) const {
    picks_.fetch_add(1, std::memory_order_relaxed);
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    if (health.counts_all) health.in_flight.fetch_add(1, std::memory_order_relaxed);
  }
  void land(Health& health) const {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    if (health.counts_all) health.in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  std::int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  /// Whether it is ejected. Ends an expired ejection, unless another thread holds Health::ejecting.
  /// Never blocks.
  bool ejected(Nanos now, Health& health) const;
  /// Ends an expired ejection. Call with Health::ejecting held.
  void come_back(Nanos now, Health& health) const;
  /// The share of picks for which it is available: 1, or less during slow start.
  double ramp(Nanos now, const Health& health) const;

  /// Records a call that ended `now`. True if the instance must be ejected, because of consecutive
  /// failures or silence.
  bool learn(Outcome outcome, Nanos latency, Nanos now, Health& health) const;
  /// The instance was removed from the set; calls on it may still end. Call with Health::ejecting held.
  void leave() const { left_ = true; }
  /// `of`: the number of instances. False if the maximum is already ejected. Call with Health::ejecting
  /// held.
  bool eject(Nanos now, std::size_t of, Health& health) const;

  /// kratos' weight for the power of two choices: the success rate divided by the load.
  double p2c_weight() const;
  /// Whether it must be picked because its last pick is too long ago. True for only one thread.
  bool overdue(Nanos now) const;
  void picked(Nanos now) const { last_pick_.store(now, std::memory_order_relaxed); }

  std::uint64_t picks() const { return picks_.load(std::memory_order_relaxed); }
  std::uint64_t ok() const { return ok_.load(std::memory_order_relaxed); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  Nanos latency() const { return lag_.load(std::memory_order_relaxed); }
  bool is_out() const { return ejected_until_.load(std::memory_order_relaxed) != 0; }

  /// The calls since the last call of this function. Used by the thread that checks success rates.
  std::pair<std::uint64_t, std::uint64_t> take_window() const;

 private:
  const std::string key_;
  const std::uint64_t address_;
  const std::shared_ptr<ZoneHealth> zone_;
  mutable bool left_ = false;             // guarded by Health::ejecting
  mutable std::atomic<Nanos> ramp_from_;  // 0: not in slow start
  mutable std::atomic<std::int64_t> in_flight_{0};
  mutable std::atomic<std::uint64_t> picks_{0};
  mutable std::atomic<std::uint64_t> ok_{0};
  mutable std::atomic<std::uint64_t> failed_{0};
  mutable std::atomic<std::uint64_t> ok_before_{0};
  mutable std::atomic<std::uint64_t> failed_before_{0};
  mutable std::atomic<std::uint32_t> failures_in_row_{0};
  mutable std::atomic<Nanos> answered_at_{std::numeric_limits<Nanos>::min()};
  mutable std::atomic<std::uint32_t> ejections_{0};  // recent ejections, which prolong the next one
  mutable std::atomic<Nanos> ejected_until_{0};      // 0: not ejected
  mutable std::atomic<Nanos> returned_at_{0};
  // Moving averages.
  mutable std::atomic<Nanos> lag_{0};
  mutable std::atomic<Nanos> learned_at_{0};
  mutable std::atomic<double> success_{1000};  // of 1000
  mutable std::atomic<Nanos> last_pick_{0};
};

}  // namespace lookout::registry::detail
