// Shared by the worlds of Lookout's own parts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>

#include "lookout/testing/sim/explore.h"
#include "lookout/testing/sim/world.h"
#include "tests/support/sanitizers.h"

namespace lookout::test {

/// Seeds of each world in CI. scripts/sim.sh runs more.
inline constexpr std::uint64_t kSeeds = kSanitized ? 3 : 25;

/// For a short world: half a minute with one or two objects and few requests, many of which fail.
/// It takes some milliseconds, so that many seeds can try many orders of events. The long worlds try
/// heavy and long load.
inline sim::ExploreOptions shortened(sim::ExploreOptions options) {
  options.seeds = kSanitized ? 10 : 200;
  options.faults.per_request = 0.2;
  return options;
}

/// Returns when the process is to end, or after that long.
inline void wait_for_stop(const std::stop_token& stop,
                          std::chrono::milliseconds most = std::chrono::hours(24)) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, most, [] { return false; });
}

/// Calls `check` every so often until `until`.
inline void every(sim::World& world, std::chrono::milliseconds interval,
                  std::chrono::milliseconds until, const std::function<void()>& check) {
  for (auto time = interval; time < until; time += interval) world.at(time, check);
}

}  // namespace lookout::test
