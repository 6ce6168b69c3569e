// Being the leader, for as long as it lasts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "lookout/base/clock.h"

namespace lookout::leaderelection {

/// A term of leadership, given to the leader's work. Cheap to copy; safe to use from any thread.
///
/// Leadership ends `renew_deadline` after the last successful renewal was sent, which is before
/// anybody else may take the lease (`lease_duration` after they saw it): by then the elector has
/// requested a stop, and valid() is false even if nobody could be told, as in a process that was
/// frozen. A write that must never come from two leaders checks valid() right before it is sent,
/// and carries fencing_token() for whoever can refuse an older one.
class Leadership {
 public:
  /// Requested when the work is to end: leadership is lost or the elector was stopped.
  std::stop_token stop() const { return state_->stop.get_token(); }

  /// Whether nobody else can be leader at this moment, by the local clock.
  bool valid() const {
    return !state_->lost.load(std::memory_order_acquire) &&
           state_->clock->now().time_since_epoch().count() <
               state_->valid_until.load(std::memory_order_acquire);
  }

  /// The lease's leaseTransitions while this leadership lasts: it grows with every change of the
  /// holder.
  std::int64_t fencing_token() const { return state_->fencing_token; }

  /// For the elector.
  struct State {
    std::shared_ptr<Clock> clock;
    std::int64_t fencing_token = 0;
    std::stop_source stop = {};
    std::atomic<Clock::Duration::rep> valid_until{0};  // since the clock's epoch
    std::atomic<bool> lost{false};
  };
  explicit Leadership(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace lookout::leaderelection
