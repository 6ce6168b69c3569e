// AsyncEvent: wakes a coroutine from any thread, or at a given time.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <memory>

#include "lookout/base/event_loop.h"

namespace lookout {

/// One coroutine waits on `executor` (one thread, or a strand); any thread can ring. A ring is lost
/// if nothing waits, so the waiter must check its condition before it waits: on the executor,
/// nothing can run in between. Copies refer to the same event. Destroying the last copy wakes the
/// coroutine, as a ring does.
///
/// A wait that ends with a ring costs neither a timer nor a system call, whatever its deadline: the
/// timer of an earlier wait stays set until it fires, or until a wait has an earlier deadline.
class AsyncEvent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit AsyncEvent(boost::asio::any_io_executor executor);

  /// Rings from any thread. The ring arrives later, possibly after the event is destroyed.
  void ring() const;

  /// Rings from code on the event loop: the waiter resumes on its executor after the current
  /// handler. Wakes no other thread, so the current handler should be about to end.
  void ring_next() const;

  /// Rings immediately; the waiter resumes after the current handler. Call on the executor only.
  void ring_here() const;

  /// Waits for a ring, for the time `until`, or for cancellation of the waiting coroutine. May
  /// return spuriously. Call on the executor only.
  Awaitable<void> wait(TimePoint until = TimePoint::max());

  const boost::asio::any_io_executor& executor() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace lookout
