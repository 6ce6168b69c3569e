// FakeClock: a clock that a test moves.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lookout/base/clock.h"

namespace lookout::test {

/// Stands still until the test moves it. For all code that takes a Clock. Safe to use from any
/// thread.
class FakeClock : public Clock {
 public:
  TimePoint now() const override;
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override;

  /// Moves the time forward and wakes the sleepers whose time has come.
  void advance(Duration duration);
  /// Makes shorter sleeps return immediately; each advances the time by its length, as advance()
  /// does.
  void skip_sleeps_below(Duration limit);

  /// The lengths of all sleeps, in the order in which they began.
  std::vector<Duration> slept() const;
  std::size_t sleepers() const;
  /// The remaining time of the sleeper that wakes first; empty without sleepers.
  std::optional<Duration> next_wake() const;

 private:
  struct Sleeper;
  class Entry;

  /// Wakes the sleepers whose time has come. With the mutex held.
  void move_to(TimePoint time);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  TimePoint now_{std::chrono::hours(1000)};
  Duration skipped_below_{0};
  std::list<std::shared_ptr<Sleeper>> sleepers_;
  std::vector<Duration> slept_;
};

}  // namespace lookout::test
