// Time that passes when a test says so.
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

/// Stands still until it is moved: for everything that takes a Clock. Safe to use from any thread.
class FakeClock : public Clock {
 public:
  TimePoint now() const override;
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override;

  /// Lets time pass and wakes those whose time has come.
  void advance(Duration duration);
  /// From now on nobody sleeps for less than this: time jumps ahead instead.
  void skip_sleeps_below(Duration limit);

  /// How long each sleep was to be, in the order in which they began.
  std::vector<Duration> slept() const;
  std::size_t sleepers() const;
  /// How long the one that wakes first has still to sleep.
  std::optional<Duration> next_wake() const;

 private:
  struct Sleeper;
  class Entry;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  TimePoint now_{std::chrono::hours(1000)};
  Duration skipped_below_{0};
  std::list<std::shared_ptr<Sleeper>> sleepers_;
  std::vector<Duration> slept_;
};

}  // namespace lookout::test
