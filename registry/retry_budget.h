// The account of a RetryBudget.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lookout/registry/policy.h"
#include "registry/node.h"

namespace lookout::registry::detail {

/// From any thread, without a lock.
class RetryAccount {
 public:
  explicit RetryAccount(const RetryBudget& budget)
      : budget_(budget), saved_(thousandths(budget.burst)) {}

  void call_begun() { add(thousandths(budget_.ratio)); }
  /// False if nothing is left.
  bool take(Nanos now) {
    Nanos before = filled_at_.load(std::memory_order_relaxed);
    if (before == 0 || now > before) {
      if (filled_at_.compare_exchange_strong(before, now, std::memory_order_relaxed) &&
          before != 0) {
        const double seconds = std::min(3600.0, static_cast<double>(now - before) / 1e9);
        add(thousandths(seconds * budget_.per_second));
      }
    }
    std::int64_t saved = saved_.load(std::memory_order_relaxed);
    while (saved >= 1000) {
      if (saved_.compare_exchange_weak(saved, saved - 1000, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
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
