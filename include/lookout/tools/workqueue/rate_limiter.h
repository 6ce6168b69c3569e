// RateLimiter: the delay before a retry.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/base/clock.h"

namespace lookout::workqueue {

/// client-go's TypedRateLimiter. Safe to use from any thread.
template <class T>
class RateLimiter {
 public:
  virtual ~RateLimiter() = default;
  /// Records a failure of the item and returns the delay before its next attempt.
  virtual Clock::Duration when(const T& item) = 0;
  /// Resets the item, because it succeeded or was given up.
  virtual void forget(const T& item) = 0;
  /// The number of when() calls for the item since it was last forgotten.
  virtual int num_requeues(const T& item) const = 0;
};

namespace detail {
/// Counts failures by item.
template <class T, class Hash>
class FailureCount {
 public:
  /// Adds a failure and returns the number of earlier ones.
  int add(const T& item) {
    const std::lock_guard lock(mutex_);
    return failures_[item]++;
  }
  void forget(const T& item) {
    const std::lock_guard lock(mutex_);
    if (!failures_.empty()) failures_.erase(item);
  }
  int get(const T& item) const {
    const std::lock_guard lock(mutex_);
    const auto at = failures_.find(item);
    return at == failures_.end() ? 0 : at->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<T, int, Hash> failures_;  // guarded by mutex_
};
}  // namespace detail

/// Per item: `base`, doubled after each failure, up to `max`.
template <class T, class Hash = std::hash<T>>
class ItemExponentialFailureRateLimiter : public RateLimiter<T> {
 public:
  ItemExponentialFailureRateLimiter(Clock::Duration base, Clock::Duration max)
      : base_(base), max_(max) {}

  Clock::Duration when(const T& item) override {
    // A floating-point number, because the value soon exceeds the range of a Duration. (The exponent
    // is limited, because 0 times infinity is NaN.)
    constexpr int kMostDoublings = 1000;
    const double wait = static_cast<double>(base_.count()) *
                        std::exp2(std::min(failures_.add(item), kMostDoublings));
    return wait >= static_cast<double>(max_.count())
               ? max_
               : Clock::Duration(static_cast<Clock::Duration::rep>(wait));
  }
  void forget(const T& item) override { failures_.forget(item); }
  int num_requeues(const T& item) const override { return failures_.get(item); }

 private:
  const Clock::Duration base_;
  const Clock::Duration max_;
  detail::FailureCount<T, Hash> failures_;
};

/// Per item: a few quick attempts, then slow ones.
template <class T, class Hash = std::hash<T>>
class ItemFastSlowRateLimiter : public RateLimiter<T> {
 public:
  ItemFastSlowRateLimiter(Clock::Duration fast, Clock::Duration slow, int max_fast_attempts)
      : fast_(fast), slow_(slow), max_fast_attempts_(max_fast_attempts) {}

  Clock::Duration when(const T& item) override {
    return failures_.add(item) < max_fast_attempts_ ? fast_ : slow_;
  }
  void forget(const T& item) override { failures_.forget(item); }
  int num_requeues(const T& item) const override { return failures_.get(item); }

 private:
  const Clock::Duration fast_;
  const Clock::Duration slow_;
  const int max_fast_attempts_;
  detail::FailureCount<T, Hash> failures_;
};

/// For all items together: a bucket that holds `burst` tokens and is refilled with `per_second`
/// tokens; each item takes one token, or waits for it.
template <class T>
class BucketRateLimiter : public RateLimiter<T> {
 public:
  BucketRateLimiter(double per_second, double burst, std::shared_ptr<Clock> clock = Clock::real())
      : per_second_(per_second),
        burst_(burst),
        clock_(std::move(clock)),
        tokens_(burst),
        filled_(clock_->now()) {}

  Clock::Duration when(const T&) override {
    const std::lock_guard lock(mutex_);
    const auto now = clock_->now();
    const double seconds = std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(burst_, tokens_ + seconds * per_second_);
    filled_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return {};
    constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
    const std::chrono::duration<double> wait(-tokens_ / per_second_);
    return std::chrono::duration_cast<Clock::Duration>(wait < kLongest ? wait : kLongest);
  }
  void forget(const T&) override {}
  int num_requeues(const T&) const override { return 0; }

 private:
  const double per_second_;
  const double burst_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  // Guarded by mutex_. Negative: tokens that are promised to waiting items.
  double tokens_;
  Clock::TimePoint filled_;
};

/// The maximum of the delays of several limiters.
template <class T>
class MaxOfRateLimiter : public RateLimiter<T> {
 public:
  explicit MaxOfRateLimiter(std::vector<std::shared_ptr<RateLimiter<T>>> limiters)
      : limiters_(std::move(limiters)) {}
  ///     std::make_shared<MaxOfRateLimiter<std::string>>(per_item, for_all)
  template <std::derived_from<RateLimiter<T>>... Limiters>
    requires(sizeof...(Limiters) > 0)
  explicit MaxOfRateLimiter(std::shared_ptr<Limiters>... limiters)
      : limiters_{std::move(limiters)...} {}

  Clock::Duration when(const T& item) override {
    Clock::Duration longest{};
    for (const auto& limiter : limiters_) longest = std::max(longest, limiter->when(item));
    return longest;
  }
  void forget(const T& item) override {
    for (const auto& limiter : limiters_) limiter->forget(item);
  }
  int num_requeues(const T& item) const override {
    int most = 0;
    for (const auto& limiter : limiters_) most = std::max(most, limiter->num_requeues(item));
    return most;
  }

 private:
  const std::vector<std::shared_ptr<RateLimiter<T>>> limiters_;
};

/// Limits the delay of another limiter.
template <class T>
class WithMaxWaitRateLimiter : public RateLimiter<T> {
 public:
  WithMaxWaitRateLimiter(std::shared_ptr<RateLimiter<T>> limiter, Clock::Duration max)
      : limiter_(std::move(limiter)), max_(max) {}

  Clock::Duration when(const T& item) override { return std::min(limiter_->when(item), max_); }
  void forget(const T& item) override { limiter_->forget(item); }
  int num_requeues(const T& item) const override { return limiter_->num_requeues(item); }

 private:
  const std::shared_ptr<RateLimiter<T>> limiter_;
  const Clock::Duration max_;
};

/// The default of controllers: 5 ms to 1000 s per item, and 10 per second (burst of 100) for all
/// items.
template <class T, class Hash = std::hash<T>>
std::shared_ptr<RateLimiter<T>> default_controller_rate_limiter(
    std::shared_ptr<Clock> clock = Clock::real()) {
  return std::make_shared<MaxOfRateLimiter<T>>(std::vector<std::shared_ptr<RateLimiter<T>>>{
      std::make_shared<ItemExponentialFailureRateLimiter<T, Hash>>(std::chrono::milliseconds(5),
                                                                   std::chrono::seconds(1000)),
      std::make_shared<BucketRateLimiter<T>>(10, 100, std::move(clock))});
}

}  // namespace lookout::workqueue
