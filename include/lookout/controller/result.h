// Result: the result of a reconcile.
#pragma once

#include <optional>

#include "lookout/api/error.h"
#include "lookout/base/clock.h"

namespace lookout::controller {

/// The result of a reconcile that did not throw (reconcile.Result): decides when the request runs
/// again. The default is kDone: when something changes.
///
/// A reconcile that throws is retried with back-off: 5 ms, doubling up to 1000 s.
struct Result {
  enum class Next {
    kDone,          ///< reset its failure count; wait for events
    kRequeueAfter,  ///< reset its failure count; run again after `after`, or earlier on an event
    kRequeue,       ///< run again after the rate limiter's delay
  };
  Next next = Next::kDone;
  Clock::Duration after{};
  /// The priority of the next run; empty: unchanged.
  std::optional<int> priority = {};
};

inline Result done() { return {}; }
/// A delay of zero or less means kDone, as in controller-runtime.
inline Result requeue_after(Clock::Duration after) {
  if (after <= Clock::Duration::zero()) return {};
  Result out;
  out.next = Result::Next::kRequeueAfter;
  out.after = after;
  return out;
}
inline Result requeue() {
  Result out;
  out.next = Result::Next::kRequeue;
  return out;
}

/// Thrown by a reconciler for a failure that a retry cannot fix, such as an invalid spec:
/// reconcile.TerminalError. The request runs again only when something changes. Also recognised as
/// a nested exception (std::throw_with_nested).
class TerminalError : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout::controller
