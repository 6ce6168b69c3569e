// Leader election: never two leaders, and a new leader soon after all faults.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/testing/sim/gtest.h"
#include "lookout/tools/leaderelection/leader_elector.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

using k8s::coordination::v1::Lease;

constexpr std::string_view kUser = "user";

struct Leader {
  std::string identity;
  leaderelection::Leadership leadership;
};

/// The candidates that consider themselves leaders.
struct Candidates {
  std::mutex mutex;
  std::map<std::string, Leader> leading;  // by process
  // Set after a user has taken the lease: the leader at that time, which may not have noticed yet,
  // and the expiry.
  std::string taken_from;
  sim::Time taken_until{0};

  std::vector<std::string> leaders() {
    const std::lock_guard lock(mutex);
    std::vector<std::string> out;
    for (const auto& [name, leader] : leading) {
      if (leader.leadership.valid()) out.push_back(leader.identity);
    }
    return out;
  }
};

/// The user takes the lease and never renews it. The leader does not take it back; the others wait
/// until it expires.
void take_by_hand(sim::World& world, Candidates& candidates) {
  constexpr std::chrono::seconds kDuration{15};
  const auto leases = world.admin().resource<Lease>("default");
  const Lease before = leases.get("shared");
  const auto change = before.edit();
  const sim::Time begin = world.now();
  change.spec().set_holder_identity(kUser).set_lease_duration_seconds(kDuration.count());
  change.spec().set_renew_time(
      std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()));
  rest::PatchOptions options;
  options.if_unchanged = true;
  leases.patch(change, options);
  const std::lock_guard lock(candidates.mutex);
  if (before.spec().holder_identity() != kUser)
    candidates.taken_from = before.spec().holder_identity();
  candidates.taken_until = begin + kDuration;
}

void check_leaders(sim::World& world, Candidates& candidates) {
  const auto leaders = candidates.leaders();
  if (leaders.size() > 1) world.fail("two lead at once: " + leaders[0] + " and " + leaders[1]);
  const std::lock_guard lock(candidates.mutex);
  for (const std::string& leader : leaders) {
    if (world.now() < candidates.taken_until && leader != candidates.taken_from)
      world.fail(leader + " leads, although a user has taken the lease");
  }
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out;
  out.seeds = test::kSeeds;
  // The final leader differs from run to run.
  out.stable = false;
  out.world.settle = 60s;
  out.faults.per_request = 0.05;
  // Edits of the lease are as frequent as all other faults together.
  out.faults.kinds.insert(out.faults.kinds.end(), 10, sim::FaultKind::kEdit);
  return out;
}

/// Renewals dominate the cost of a world, so these worlds are shorter.
sim::ExploreOptions short_faults() {
  sim::ExploreOptions out = test::shortened(faults());
  out.world.settle = 30s;
  out.world.rest = 5s;
  return out;
}

void elect(sim::World& world, std::chrono::seconds duration) {
  auto candidates = std::make_shared<Candidates>();
  for (const char* name : {"one", "two", "three"}) {
    world.start(name, [candidates](sim::Process& p) {
      const std::string identity = p.name() + "-" + std::to_string(p.life());
      leaderelection::LeaderElector elector(
          p.client(), {.name = "shared", .ns = "default", .identity = identity});
      elector.run(
          [&](const leaderelection::Leadership& leadership) {
            // A later life replaces a crashed earlier one.
            {
              const std::lock_guard lock(candidates->mutex);
              candidates->leading.insert_or_assign(p.name(), Leader{identity, leadership});
            }
            // Some leaders finish after a while and release the lease.
            if (p.life() % 2 == 1) {
              test::wait_for_stop(leadership.stop());
            } else {
              test::wait_for_stop(leadership.stop(), 25s);
            }
          },
          p.stop());
      // Lost or stopped: the next life is a candidate again.
    });
  }
  const auto leases = world.admin().resource<Lease>("default");
  world.edit("labels the lease", [&world, leases] {
    const auto change = leases.get("shared").edit();
    change.metadata().labels().set("seen", std::to_string(world.now() / 1ms));
    leases.patch(change);
  });
  world.edit("takes the lease by hand", [&world, candidates] { take_by_hand(world, *candidates); });
  auto last = std::make_shared<sim::Time>();
  test::every(world, 100ms, duration + 2min, [&world, candidates, last] {
    check_leaders(world, *candidates);
    if (!candidates->leaders().empty()) *last = world.now();
  });
  // There may be some seconds between two leaders.
  world.eventually("somebody has led of late", [&world, last] { return world.now() - *last < 5s; });
  world.run(duration);
}

LOOKOUT_SIM_TEST(ElectionWorlds, ThereIsAtMostOneLeaderAndOneInTheEnd, faults()) {
  elect(world, 3min);
}

LOOKOUT_SIM_TEST(ShortElectionWorlds, ThereIsAtMostOneLeaderAndOneInTheEnd, short_faults()) {
  elect(world, 30s);
}

}  // namespace
}  // namespace lookout
