// Time, as something that can be given.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "lookout/base/event_loop.h"

namespace lookout {

/// Where waiting code gets its time from: the machine's steady clock, or a virtual one in tests.
/// Safe to use from any thread.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;

  /// Waits for that long, or until a stop is requested; true if the time has passed. To be awaited
  /// on a strand.
  virtual Awaitable<bool> sleep(Duration duration, std::stop_token stop) = 0;

  /// The machine's.
  static std::shared_ptr<Clock> real();
};

}  // namespace lookout
