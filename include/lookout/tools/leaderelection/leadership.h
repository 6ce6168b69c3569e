// Leadership: a term as leader.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "lookout/base/clock.h"

namespace lookout::leaderelection {

/// A term of leadership, passed to the leader's work. Cheap to copy; safe to use from any thread.
///
/// Leadership ends `renew_deadline` after the last successful renewal was sent, before any other
/// candidate may take the lease (`lease_duration` after it saw the renewal). By then the elector
/// has requested a stop, and valid() returns false even if the stop could not be delivered, as in a
/// process that was frozen. A write that must never come from two leaders must check valid() right
/// before it is sent, and should carry fencing_token(), so that the receiver can refuse an older
/// token.
class Leadership {
 public:
  /// Requested when the work must end: leadership was lost or the elector was stopped.
  std::stop_token stop() const { return state_->stop.get_token(); }

  /// True if, by the local clock, no other candidate can be leader at this moment.
  bool valid() const {
    return !state_->lost.load(std::memory_order_acquire) &&
           state_->clock->now().time_since_epoch().count() <
               state_->valid_until.load(std::memory_order_acquire);
  }

  /// The lease's leaseTransitions during this term: it grows with every change of the holder.
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
