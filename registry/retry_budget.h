// RetryAccount: the balance of a RetryBudget.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "lookout/registry/policy.h"
#include "registry/node.h"

namespace lookout::registry::detail {

/// Thread-safe and lock-free.
class RetryAccount {
 public:
  explicit RetryAccount(const RetryBudget& budget)
      : budget_(budget), saved_(thousandths(budget.burst)) {}

  void call_begun() { add(thousandths(budget_.ratio)); }
  /// False if nothing is left.
  bool take(Nanos now) {
    fill(now);
    std::int64_t saved = saved_.load(std::memory_order_relaxed);
    while (saved >= 1000) {
      if (saved_.compare_exchange_weak(saved, saved - 1000, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  /// Adds the retries for the time since the last call.
  void fill(Nanos now) {
    Nanos before = filled_at_.load(std::memory_order_relaxed);
    if (before == 0) {
      filled_at_.compare_exchange_strong(before, now, std::memory_order_relaxed);
      return;
    }
    if (now <= before) return;
    const std::int64_t more =
        thousandths(static_cast<double>(now - before) / 1e9 * budget_.per_second);
    if (more == 0) return;
    // Count only the time for whole thousandths, unless the account is full.
    Nanos used = now;
    if (more < thousandths(budget_.burst)) {
      const double time = std::ceil(static_cast<double>(more) * 1e6 / budget_.per_second);
      used = std::min(now, before + static_cast<Nanos>(time));
    }
    if (filled_at_.compare_exchange_strong(before, used, std::memory_order_relaxed)) add(more);
  }

  static std::int64_t thousandths(double number) {
    return static_cast<std::int64_t>(std::clamp(number, 0.0, 1e12) * 1000);
  }
  void add(std::int64_t more) {
    const std::int64_t most = thousandths(budget_.burst);
    std::int64_t saved = saved_.load(std::memory_order_relaxed);
    while (saved < most && !saved_.compare_exchange_weak(saved, std::min(most, saved + more),
                                                         std::memory_order_relaxed)) {
    }
  }

  const RetryBudget budget_;
  std::atomic<std::int64_t> saved_;  // in thousandths of a retry
  std::atomic<Nanos> filled_at_{0};
};

}  // namespace lookout::registry::detail
