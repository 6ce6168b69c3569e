// The result of a reconcile.
#pragma once

#include <optional>

#include "lookout/api/error.h"
#include "lookout/base/clock.h"

namespace lookout::controller {

/// What happens to a request after a reconcile that did not throw; reconcile.Result. The default
/// means done: the request runs again when something changes.
///
/// A reconcile that throws is retried with back-off: 5 ms, doubling up to 1000 s.
struct Result {
  enum class Next {
    kDone,          ///< forget its failures; wait for events
    kRequeueAfter,  ///< forget its failures; run again after `after`, or sooner if an event comes
    kRequeue,       ///< run again when the rate limiter says so
  };
  Next next = Next::kDone;
  Clock::Duration after{};
  /// The priority of the next run; nothing: that of this one.
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

/// Thrown by a reconciler for a failure that no retry can mend, such as an invalid spec:
/// reconcile.TerminalError. The request runs again only when something changes. It is recognized
/// also as the nested exception of another one (std::throw_with_nested).
class TerminalError : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout::controller
