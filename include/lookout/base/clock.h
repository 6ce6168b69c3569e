// Clock: an injectable time source.
#pragma once

#include <algorithm>
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

  /// The duration, but at most ten years: options such as milliseconds::max() do not fit into a
  /// Duration.
  template <class Rep, class Period>
  static constexpr std::chrono::duration<Rep, Period> limited(
      std::chrono::duration<Rep, Period> duration) {
    constexpr std::chrono::hours kLongest{24 * 365 * 10};
    return std::min<std::chrono::duration<Rep, Period>>(duration, kLongest);
  }

  /// The machine's steady clock.
  static std::shared_ptr<Clock> real();
};

}  // namespace lookout
