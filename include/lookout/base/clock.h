// Clock: an injectable time source.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "lookout/base/event_loop.h"

namespace lookout {

/// The time source of waiting code: the machine's steady clock, or a virtual clock in tests.
/// Safe to use from any thread.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;

  /// Waits for the given time, or until a stop is requested; returns true if the time has passed.
  /// Await it on a strand.
  virtual Awaitable<bool> sleep(Duration duration, std::stop_token stop) = 0;

  /// The machine's steady clock.
  static std::shared_ptr<Clock> real();
};

}  // namespace lookout
