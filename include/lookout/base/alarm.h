// Alarm: calls a function at a given time.
#pragma once

#include <functional>
#include <memory>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/pinned.h"

namespace lookout {

/// Calls a function at a time that can be moved forward. Safe to use from any thread.
class Alarm : public base::Pinned {
 public:
  /// `ring` runs on the loop, never within set(), and must not block. Exceptions are logged.
  Alarm(std::shared_ptr<EventLoop> loop, std::shared_ptr<Clock> clock, std::function<void()> ring);
  /// A running call may outlast the destructor; no new call starts.
  ~Alarm();

  /// Rings once at this time or soon after. If several times are pending, only the earliest rings.
  void set(Clock::TimePoint time);

 private:
  struct State;
  static Awaitable<void> run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace lookout
