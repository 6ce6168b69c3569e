#include "rest/rate_limiter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lookout::rest::detail {

RateLimiter::RateLimiter(double qps, int burst)
    : qps_(qps), burst_(std::max(1, burst)), tokens_(burst_) {}

std::chrono::nanoseconds RateLimiter::reserve(Time now) {
  const std::lock_guard lock(mutex_);
  if (at_ == Time{}) at_ = now;
  const std::chrono::duration<double> passed = std::max(now - at_, Time::duration::zero());
  at_ = std::max(at_, now);
  tokens_ = std::min(burst_, tokens_ + passed.count() * qps_) - 1;
  if (tokens_ >= 0) return std::chrono::nanoseconds(0);
  // Limited to an hour, so that the result fits into nanoseconds.
  const double seconds = std::min(-tokens_ / qps_, 3600.0);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

void RateLimiter::give_back() {
  const std::lock_guard lock(mutex_);
  tokens_ = std::min(burst_, tokens_ + 1);
}

}  // namespace lookout::rest::detail
