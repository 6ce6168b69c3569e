// RepeatedError: suppresses repeated log lines of retries.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "lookout/base/clock.h"

namespace lookout::cache {

/// The same error is logged only once in this time.
inline constexpr std::chrono::seconds kLogAgain{30};

/// Distinguishes new errors from repetitions. Used on a strand.
class RepeatedError {
 public:
  explicit RepeatedError(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// Returns true if the same error was noted less than kLogAgain ago; otherwise notes it. The
  /// query of a URL (each watch has a random timeoutSeconds) and measured times make no difference.
  bool repeats(const std::exception& error);

 private:
  const std::shared_ptr<Clock> clock_;
  std::string noted_;
  Clock::TimePoint noted_at_{};
};

}  // namespace lookout::cache
