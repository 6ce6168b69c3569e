// Backoff: longer waits after repeated failures.
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
  /// The maximum jitter: a random extra of up to this fraction is added to each wait.
  double jitter = 1.0;
  /// After this time without a failure, the next failure counts as the first.
  std::chrono::milliseconds reset_after{120'000};
};

/// Computes the wait before the next attempt. Not thread-safe.
class Backoff {
 public:
  Backoff(BackoffOptions options, std::shared_ptr<Clock> clock);

  /// The next wait, including jitter.
  Clock::Duration next();
  /// Treats the next failure as the first again.
  void reset() { current_ = options_.initial; }

 private:
  BackoffOptions options_;
  std::shared_ptr<Clock> clock_;
  std::chrono::duration<double, std::milli> current_;
  Clock::TimePoint last_;
  std::minstd_rand random_;
};

}  // namespace lookout
