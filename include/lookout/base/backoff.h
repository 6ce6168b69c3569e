// Waiting longer after each failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

#include "lookout/base/clock.h"

namespace lookout {

/// The parameters of client-go's wait.NewExponentialBackoffManager; the defaults are the
/// reflector's.
struct BackoffOptions {
  std::chrono::milliseconds initial{800};
  std::chrono::milliseconds max{30'000};
  double factor = 2.0;
  /// Each wait is longer by a random part of it, at most this many times its length.
  double jitter = 1.0;
  /// After so long without a failure the next one counts as the first.
  std::chrono::milliseconds reset_after{120'000};
};

/// How long to wait before the next attempt. Not thread-safe.
class Backoff {
 public:
  Backoff(BackoffOptions options, std::shared_ptr<Clock> clock);

  /// The next wait, jitter included.
  Clock::Duration next();
  /// The next failure is the first again.
  void reset() { current_ = options_.initial; }

 private:
  BackoffOptions options_;
  std::shared_ptr<Clock> clock_;
  std::chrono::duration<double, std::milli> current_;
  Clock::TimePoint last_;
  std::minstd_rand random_;
};

}  // namespace lookout
