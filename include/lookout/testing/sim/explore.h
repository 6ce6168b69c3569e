// Many worlds of one scenario, and what a failure tells.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/testing/sim/world.h"

namespace lookout::sim {

/// Fills a world: makes objects, starts processes, names what must hold, and calls run(). Called
/// once for each world; it must not keep anything from one call to the next.
using Scenario = std::function<void(World& world)>;

struct ExploreOptions {
  /// $LOOKOUT_SIM_SEED, if it is set, is the only seed; $LOOKOUT_SIM_SEEDS ("200" or "1000-1999")
  /// replaces these two.
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 100;
  LOOKOUT_OPTION FaultOptions faults = all_faults();
  LOOKOUT_OPTION WorldOptions world = {};
  /// The end must be that of the run without faults (see World::snapshot()).
  bool stable = true;
  /// Each world is run twice, and both must do the same. $LOOKOUT_SIM_TWICE=1 switches it on.
  bool twice = false;
  /// explore_each(): how many faults a world has at most.
  unsigned depth = 1;
  /// Worlds to spend on making the plan of a failure smaller.
  unsigned shrink = 60;
  /// The lines of the story in a report. $LOOKOUT_SIM_STORY replaces it.
  std::size_t story = 80;
};

struct Outcome {
  bool passed = true;
  std::uint64_t worlds = 0;
  std::uint64_t requests = 0;
  /// Simulated time.
  Time simulated{0};
  // About the first failure:
  std::uint64_t seed = 0;
  Plan plan = {};
  std::string violation = {};
  /// For people: the seed, the plan, the violation and the story.
  std::string report = {};
};

/// Runs the scenario once without faults and then for each seed with them, until an oracle objects;
/// then finds the fewest faults that still make it object. Nothing else of the program may run
/// meanwhile.
Outcome explore(const std::string& name, const Scenario& scenario, ExploreOptions options = {});

/// Runs the scenario once without faults, and then once for each place where one of the kinds of
/// faults of requests can strike: "a crash after each write", "a stale read in place of each list".
/// What a run without faults shows decides which places there are; if there is none, the outcome has
/// not passed. Throws InvalidArgument for kinds of faults of time. With `options.depth` 2, the run with
/// each of these faults shows where a second one can strike behind it, and so on. `options.seeds` worlds
/// for each plan; the faults of `options` are not drawn.
Outcome explore_each(const std::string& name, const Scenario& scenario,
                     const std::vector<FaultKind>& kinds, ExploreOptions options = {});

/// One world with exactly these faults. Returns what an oracle has found, or that some of the faults
/// have not struck (as requests have other numbers when the code has changed); nothing if all is well.
std::optional<std::string> replay(const Scenario& scenario, std::uint64_t seed, const Plan& plan,
                                  ExploreOptions options = {});

namespace detail {

/// Assertions of a test framework, which count their failures instead of throwing.
struct Assertions {
  /// How many results there are so far.
  int (*count)() = nullptr;
  /// What the first failure behind so many of them says; empty if there is none.
  std::string (*failure)(int from) = nullptr;
};

/// Has a failed assertion in a world be a violation. For lookout/testing/sim/gtest.h; returns true.
bool note_assertions(const Assertions& assertions);

}  // namespace detail

}  // namespace lookout::sim
