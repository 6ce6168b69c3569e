// Being called when a time has come.
#pragma once

#include <functional>
#include <memory>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout {

/// Calls a function at a time that may be moved forward. Safe to use from any thread.
class Alarm {
 public:
  /// `ring` runs on the loop, never within set(), and must not block. Exceptions are logged.
  Alarm(std::shared_ptr<EventLoop> loop, std::shared_ptr<Clock> clock, std::function<void()> ring);
  /// A call that is running may outlast it; no other begins.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Rings once at that time or soon after; of several times that have not come yet, at the first
  /// only.
  void set(Clock::TimePoint time);

 private:
  struct State;
  static Awaitable<void> run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace lookout
