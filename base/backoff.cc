#include "lookout/base/backoff.h"

#include <algorithm>

namespace lookout {
namespace {

BackoffOptions within_limits(BackoffOptions options) {
  options.initial = Clock::limited(options.initial);
  options.max = Clock::limited(options.max);
  options.reset_after = Clock::limited(options.reset_after);
  return options;
}

}  // namespace

Backoff::Backoff(BackoffOptions options, std::shared_ptr<Clock> clock)
    : options_(within_limits(options)),
      clock_(std::move(clock)),
      current_(options_.initial),
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
