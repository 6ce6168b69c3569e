// A client's own limit of requests.
#pragma once

#include <chrono>
#include <mutex>

namespace lookout::rest::detail {

/// A token bucket (client-go's flowcontrol.NewTokenBucketRateLimiter): `qps` requests a second in
/// the long run, `burst` at once. Whoever asks first goes first. Safe to use from several threads.
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RateLimiter(double qps, int burst);

  /// Takes a place, and says how long to wait for it; zero or less: not at all.
  std::chrono::nanoseconds reserve(Time now);
  /// The place that was taken last is not needed.
  void give_back();

 private:
  const double qps_;
  const double burst_;
  std::mutex mutex_;
  double tokens_;  // guarded by mutex_, as is at_; below zero: so many wait
  Time at_{};
};

}  // namespace lookout::rest::detail
