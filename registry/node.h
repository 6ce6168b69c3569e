// A balancer's knowledge of one instance.
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

/// Nanoseconds of the balancer's clock.
using Nanos = std::int64_t;

inline Nanos nanos_of(Clock::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

class Plan;

/// What the instances of one balancer have in common: the rules, and what is so rarely true that a
/// pick looks at it first.
struct Health {
  explicit Health(const BalancerPolicy& policy)
      : outliers(policy.outliers),
        slow_start(std::chrono::duration_cast<std::chrono::nanoseconds>(policy.slow_start).count()),
        learns_latency(policy.kind == BalancerPolicy::Kind::kP2cEwma),
        counts_all(policy.kind == BalancerPolicy::Kind::kConsistentHash),
        clock(policy.clock ? policy.clock : Clock::real()) {}

  Nanos now() const { return nanos_of(clock->now()); }

  const OutlierOptions outliers;
  const Nanos slow_start;
  const bool learns_latency;
  const bool counts_all;  // calls in flight on all instances together
  const std::shared_ptr<Clock> clock;

  std::atomic<std::uint32_t> ejected{0};    // at present
  std::atomic<Nanos> ramp_until{0};         // an instance may be in its slow start until then
  std::atomic<Nanos> next_look{0};          // at success rates; 0: not yet
  std::atomic<std::int64_t> in_flight{0};   // of all, if counts_all
  std::atomic<std::uint64_t> ejections{0};  // since the beginning, as what follows
  std::atomic<std::uint64_t> unserved{0};   // picks that found no instance
  std::atomic<std::uint64_t> panics{0};     // picks that did not heed ejections
  std::mutex ejecting;                      // guards changes of who is ejected, and the counts
};

/// The ejected instances of one zone.
struct ZoneHealth {
  std::atomic<std::uint32_t> ejected{0};
};

/// One instance, as long as it is announced at one address. Everything in it is from any thread;
/// what is counted wrongly by two threads at a time is corrected by the next call.
class Node {
 public:
  Node(std::string key, std::uint64_t address, std::shared_ptr<ZoneHealth> zone, Nanos ramp_from)
      : key_(std::move(key)), address_(address), zone_(std::move(zone)), ramp_from_(ramp_from) {}

  const std::string& key() const { return key_; }
  /// The hash of its address.
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

  /// Whether it is ejected now. One whose time is over comes back by this, unless another thread
  /// ejects just now; never waits.
  bool ejected(Nanos now, Health& health) const;
  /// Under Health::ejecting: comes back if its time is over.
  void come_back(Nanos now, Health& health) const;
  /// For `rate` of picks it counts as there: 1, or less while it starts slowly.
  double ramp(Nanos now, const Health& health) const;

  /// Learns from a call that ended `now`. True if it has to be ejected, for its failures in a row or
  /// its silence.
  bool learn(Outcome outcome, Nanos latency, Nanos now, Health& health) const;
  /// Under Health::ejecting: it is not in the set any more. Calls on it may still end.
  void leave() const { left_ = true; }
  /// Under Health::ejecting. `of` is how many there are; false if as many are ejected as may be.
  bool eject(Nanos now, std::size_t of, Health& health) const;

  /// kratos' weight for the power of two choices: the success rate by the load.
  double p2c_weight() const;
  /// Whether it was not picked for so long that it must be; true for one thread only.
  bool overdue(Nanos now) const;
  void picked(Nanos now) const { last_pick_.store(now, std::memory_order_relaxed); }

  std::uint64_t picks() const { return picks_.load(std::memory_order_relaxed); }
  std::uint64_t ok() const { return ok_.load(std::memory_order_relaxed); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  Nanos latency() const { return lag_.load(std::memory_order_relaxed); }
  bool is_out() const { return ejected_until_.load(std::memory_order_relaxed) != 0; }

  /// The calls since the last time it was asked. By the thread that looks at success rates.
  std::pair<std::uint64_t, std::uint64_t> take_window() const;

 private:
  const std::string key_;
  const std::uint64_t address_;
  const std::shared_ptr<ZoneHealth> zone_;
  mutable bool left_ = false;             // guarded by Health::ejecting
  mutable std::atomic<Nanos> ramp_from_;  // 0: it does not start slowly
  mutable std::atomic<std::int64_t> in_flight_{0};
  mutable std::atomic<std::uint64_t> picks_{0};
  mutable std::atomic<std::uint64_t> ok_{0};
  mutable std::atomic<std::uint64_t> failed_{0};
  mutable std::atomic<std::uint64_t> ok_before_{0};
  mutable std::atomic<std::uint64_t> failed_before_{0};
  mutable std::atomic<std::uint32_t> failures_in_row_{0};
  mutable std::atomic<Nanos> answered_at_{std::numeric_limits<Nanos>::min()};
  mutable std::atomic<std::uint32_t> ejections_{0};  // what makes the next one longer
  mutable std::atomic<Nanos> ejected_until_{0};      // 0: it is not
  mutable std::atomic<Nanos> returned_at_{0};
  // Moving averages.
  mutable std::atomic<Nanos> lag_{0};
  mutable std::atomic<Nanos> learned_at_{0};
  mutable std::atomic<std::uint64_t> success_{1000};  // of 1000
  mutable std::atomic<Nanos> last_pick_{0};
};

}  // namespace lookout::registry::detail
