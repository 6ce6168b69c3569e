// Leader election: never two leaders, and a leader again soon after all faults.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "lookout/testing/sim/gtest.h"
#include "lookout/tools/leaderelection/leader_elector.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;

/// The candidates that believe to lead, by their own clocks.
struct Candidates {
  std::mutex mutex;
  std::map<std::string, leaderelection::Leadership> leading;

  std::vector<std::string> leaders() {
    const std::lock_guard lock(mutex);
    std::vector<std::string> out;
    for (const auto& [name, leadership] : leading) {
      if (leadership.valid()) out.push_back(name);
    }
    return out;
  }
};

sim::ExploreOptions faults() {
  sim::ExploreOptions out;
  out.seeds = test::kSeeds;
  // The leader at the end differs from run to run.
  out.stable = false;
  out.world.settle = 60s;
  out.faults.per_request = 0.05;
  return out;
}

LOOKOUT_SIM_TEST(ElectionWorlds, ThereIsAtMostOneLeaderAndOneInTheEnd, faults()) {
  auto candidates = std::make_shared<Candidates>();
  for (const char* name : {"one", "two", "three"}) {
    world.start(name, [candidates](sim::Process& p) {
      leaderelection::LeaderElector elector(
          p.client(), {.name = "shared",
                       .ns = "default",
                       .identity = p.name() + "-" + std::to_string(p.life())});
      elector.run(
          [&](const leaderelection::Leadership& leadership) {
            // A later life takes the place of an earlier one, which has crashed.
            {
              const std::lock_guard lock(candidates->mutex);
              candidates->leading.insert_or_assign(p.name(), leadership);
            }
            // Some leaders are done after a while, and release the lease.
            if (p.life() % 2 == 1) {
              test::wait_for_stop(leadership.stop());
            } else {
              test::wait_for_stop(leadership.stop(), 25s);
            }
          },
          p.stop());
      // Lost, or stopped: the next life is a candidate again.
    });
  }
  auto last = std::make_shared<sim::Time>();
  test::every(world, 100ms, 5min, [&world, candidates, last] {
    const auto leaders = candidates->leaders();
    if (leaders.size() > 1) world.fail("two lead at once: " + leaders[0] + " and " + leaders[1]);
    if (leaders.size() == 1) *last = world.now();
  });
  // Between one that is done and the next one there may be some seconds.
  world.eventually("somebody has led of late", [&world, last] { return world.now() - *last < 5s; });
  world.run(3min);
}

}  // namespace
}  // namespace lookout
