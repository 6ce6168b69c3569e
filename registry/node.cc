#include "registry/node.h"

#include <algorithm>
#include <cmath>

namespace lookout::registry::detail {
namespace {

// The constants of kratos' selector/node/ewma and selector/p2c. An instance without data has latency
// 0 (in kratos, a high load); its calls in flight prevent a flood.
constexpr double kTau = 600e6;  // time constant of the moving averages (600 ms)
constexpr double kGap = 5e6;    // added to latencies to reduce differences between zones (5 ms)
constexpr Nanos kForcePick = 3'000'000'000;  // pick a drawn instance at least this often

constexpr double kLeastRamp = 0.1;

}  // namespace

bool Node::ejected(Nanos now, Health& health) const {
  const Nanos until = ejected_until_.load(std::memory_order_relaxed);
  if (until == 0) return false;
  if (now < until) return true;
  // If another thread holds the mutex, a later pick updates the state. It counts as back already.
  const std::unique_lock lock(health.ejecting, std::try_to_lock);
  if (lock.owns_lock()) come_back(now, health);
  return false;
}

void Node::come_back(Nanos now, Health& health) const {
  if (left_) return;
  const Nanos until = ejected_until_.load(std::memory_order_relaxed);
  if (until == 0 || now < until) return;
  ejected_until_.store(0, std::memory_order_relaxed);
  health.ejected.fetch_sub(1, std::memory_order_relaxed);
  zone_->ejected.fetch_sub(1, std::memory_order_relaxed);
  failures_in_row_.store(0, std::memory_order_relaxed);
  returned_at_.store(now, std::memory_order_relaxed);
  if (health.slow_start > 0) {
    ramp_from_.store(now, std::memory_order_relaxed);
    health.ramp_until.store(now + health.slow_start, std::memory_order_relaxed);
  }
}

double Node::ramp(Nanos now, const Health& health) const {
  const Nanos from = ramp_from_.load(std::memory_order_relaxed);
  if (from == 0 || now >= from + health.slow_start) return 1;
  const auto part = static_cast<double>(now - from) / static_cast<double>(health.slow_start);
  return std::max(kLeastRamp, part);
}

bool Node::learn(Outcome outcome, Nanos latency, Nanos now, Health& health) const {
  if (outcome == Outcome::kIgnored) return false;
  const bool ok = outcome == Outcome::kOk;
  (ok ? ok_ : failed_).fetch_add(1, std::memory_order_relaxed);
  if (health.learns_latency) {
    const Nanos before = learned_at_.exchange(now, std::memory_order_relaxed);
    const Nanos old_lag = lag_.load(std::memory_order_relaxed);
    const auto passed = static_cast<double>(std::max<Nanos>(0, now - before));
    // The first call.
    const double keep = old_lag == 0 ? 0 : std::exp(-passed / kTau);
    const auto average = [keep](double old, double fresh) {
      return old * keep + fresh * (1 - keep);
    };
    lag_.store(std::max<Nanos>(1, static_cast<Nanos>(average(static_cast<double>(old_lag),
                                                             static_cast<double>(latency)))),
               std::memory_order_relaxed);
    // (kratos rounds the rate down, so frequent calls never make up for a failure.)
    const double rate = success_.load(std::memory_order_relaxed);
    success_.store(average(rate, ok ? 1000 : 0), std::memory_order_relaxed);
  }
  if (ok) {
    answered_at_.store(now, std::memory_order_relaxed);
    if (failures_in_row_.load(std::memory_order_relaxed) != 0) {
      failures_in_row_.store(0, std::memory_order_relaxed);
    }
    return false;
  }
  const std::uint32_t row = failures_in_row_.fetch_add(1, std::memory_order_relaxed) + 1;
  const unsigned limit = health.outliers.consecutive_failures;
  // A frozen process or failed node costs a timeout per counted failure, so its silence counts, too.
  const bool silent =
      outcome == Outcome::kTimedOut && answered_at_.load(std::memory_order_relaxed) < now - latency;
  return limit > 0 && (silent || row >= limit);
}

bool Node::eject(Nanos now, std::size_t of, Health& health) const {
  if (is_out() || left_) return false;
  const std::size_t out = health.ejected.load(std::memory_order_relaxed);
  if ((out + 1) * 100 > health.outliers.max_ejected_percent * of) return false;
  const Nanos base = nanos_of(health.outliers.base_ejection);
  const Nanos longest = std::max(base, nanos_of(health.outliers.max_ejection));
  std::uint32_t count = ejections_.load(std::memory_order_relaxed);
  if (count > 0 && base > 0) {
    const Nanos good = std::max<Nanos>(0, now - returned_at_.load(std::memory_order_relaxed));
    count -= static_cast<std::uint32_t>(std::min<Nanos>(count, good / base));
  }
  ejections_.store(++count, std::memory_order_relaxed);
  const Nanos length = std::max<Nanos>(1, base > longest / count ? longest : base * count);
  health.ejected.fetch_add(1, std::memory_order_relaxed);
  zone_->ejected.fetch_add(1, std::memory_order_relaxed);
  health.ejections.fetch_add(1, std::memory_order_relaxed);
  ejected_until_.store(now + length, std::memory_order_release);
  return true;
}

double Node::p2c_weight() const {
  const auto lag = static_cast<double>(lag_.load(std::memory_order_relaxed));
  // (Including the current pick.)
  const auto calls = static_cast<double>(std::max<std::int64_t>(0, in_flight()) + 1);
  const double load = std::sqrt(lag + kGap) * calls;
  // A failing instance keeps a weight; else the first of two such instances would get all calls.
  return (success_.load(std::memory_order_relaxed) + 1) / load;
}

bool Node::overdue(Nanos now) const {
  Nanos last = last_pick_.load(std::memory_order_relaxed);
  return now - last > kForcePick &&
         last_pick_.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

std::pair<std::uint64_t, std::uint64_t> Node::take_window() const {
  const std::uint64_t ok_now = ok();
  const std::uint64_t failed_now = failed();
  return {ok_now - ok_before_.exchange(ok_now, std::memory_order_relaxed),
          failed_now - failed_before_.exchange(failed_now, std::memory_order_relaxed)};
}

}  // namespace lookout::registry::detail
