#include "lookout/base/backoff.h"

#include <algorithm>

namespace lookout {

Backoff::Backoff(BackoffOptions options, std::shared_ptr<Clock> clock)
    : options_(options),
      clock_(std::move(clock)),
      current_(options.initial),
      last_(clock_->now()),
      random_(std::random_device{}()) {}

Clock::Duration Backoff::next() {
  const auto now = clock_->now();
  if (now - last_ > options_.reset_after) reset();
  last_ = now;
  const auto base = current_;
  current_ =
      std::min<std::chrono::duration<double, std::milli>>(current_ * options_.factor, options_.max);
  std::uniform_real_distribution<double> part(0.0, options_.jitter);
  return std::chrono::duration_cast<Clock::Duration>(base * (1.0 + part(random_)));
}

}  // namespace lookout
