// Shared by the worlds of Lookout's own parts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>

#include "lookout/k8s/core/v1.h"
#include "lookout/testing/sim/explore.h"
#include "lookout/testing/sim/world.h"
#include "tests/support/sanitizers.h"

namespace lookout {

// Names that most of the worlds use.
using namespace std::chrono_literals;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Pod;

namespace test {

/// Seeds of each world in CI. scripts/sim.sh runs more.
inline constexpr std::uint64_t kSeeds = kSanitized ? 3 : 12;

/// Options for short worlds: half a minute with one or two objects and few requests, many of which
/// fail. Each takes some milliseconds, so that many seeds try many orders of events. The long
/// worlds try heavy and long load.
inline sim::ExploreOptions shortened(sim::ExploreOptions options) {
  options.seeds = kSanitized ? 10 : 100;
  options.faults.per_request = 0.2;
  return options;
}

/// For a world with reflectors: one whose list hangs repeats it after two minutes.
inline sim::ExploreOptions with_reflectors() {
  sim::ExploreOptions out;
  out.seeds = kSeeds;
  out.world.settle = 150s;
  return out;
}

/// Returns at a stop, or after this time.
inline void wait_for_stop(const std::stop_token& stop,
                          std::chrono::milliseconds most = std::chrono::hours(24)) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, most, [] { return false; });
}

/// Calls `check` at intervals until `until`.
inline void every(sim::World& world, std::chrono::milliseconds interval,
                  std::chrono::milliseconds until, const std::function<void()>& check) {
  for (auto time = interval; time < until; time += interval) world.at(time, check);
}

}  // namespace test
}  // namespace lookout
