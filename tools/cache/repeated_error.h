// Logging the errors of what is tried again and again.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "lookout/base/clock.h"

namespace lookout::cache {

/// As long as the same error is logged only once.
inline constexpr std::chrono::seconds kLogAgain{30};

/// Tells errors apart from repetitions of the one before them. On a strand.
class RepeatedError {
 public:
  explicit RepeatedError(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// True if the error is the one that was noted less than kLogAgain ago; otherwise notes it. The
  /// query of a URL (each watch has a random timeoutSeconds) and measured times make no difference.
  bool repeats(const std::exception& error);

 private:
  const std::shared_ptr<Clock> clock_;
  std::string noted_;
  Clock::TimePoint noted_at_{};
};

}  // namespace lookout::cache
