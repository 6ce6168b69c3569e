// RateLimiter: client-side rate limiting.
#pragma once

#include <chrono>
#include <mutex>

namespace lookout::rest::detail {

/// A token bucket (client-go's flowcontrol.NewTokenBucketRateLimiter): `qps` requests per second on
/// average, `burst` at once, in the order of reserve() calls. Thread-safe.
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RateLimiter(double qps, int burst);

  /// Reserves a place and returns how long to wait for it; zero or negative: no wait.
  std::chrono::nanoseconds reserve(Time now);
  /// Returns an unused place.
  void give_back();

 private:
  const double qps_;
  const double burst_;
  std::mutex mutex_;
  double tokens_;  // guarded by mutex_, as is at_; below zero: so many wait
  Time at_{};
};

}  // namespace lookout::rest::detail
