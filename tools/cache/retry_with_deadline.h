// RetryWithDeadline: retries until a deadline.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lookout/base/clock.h"

namespace lookout::cache {

/// Decides whether to retry after a failure of a certain kind: yes, within `deadline` of the first
/// one. After `reset_after` without such a failure, the next one counts as the first. client-go's
/// RetryWithDeadline; used on a strand.
class RetryWithDeadline {
 public:
  RetryWithDeadline(Clock::Duration deadline, Clock::Duration reset_after,
                    std::function<bool(const std::exception&)> retryable,
                    std::shared_ptr<Clock> clock)
      : deadline_(deadline),
        reset_after_(reset_after),
        retryable_(std::move(retryable)),
        clock_(std::move(clock)) {}

  /// An attempt failed with this.
  void failed(const std::exception& error) {
    if (!retryable_(error)) return;
    const auto now = clock_->now();
    if (!last_ || now - *last_ >= reset_after_) first_ = now;
    last_ = now;
  }

  /// True if the last failure should be retried.
  bool should_retry() {
    if (deadline_ <= Clock::Duration::zero() || !last_) return false;
    if (clock_->now() - first_ <= deadline_) return true;
    last_.reset();
    return false;
  }

 private:
  const Clock::Duration deadline_;
  const Clock::Duration reset_after_;
  const std::function<bool(const std::exception&)> retryable_;
  const std::shared_ptr<Clock> clock_;
  Clock::TimePoint first_;
  std::optional<Clock::TimePoint> last_;
};

}  // namespace lookout::cache
