// explore(): runs a scenario with many seeds and reports the first failure.
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

/// Fills a world: creates objects, starts processes, declares invariants, and calls World::run().
/// Called once for each world; it must not keep state between calls.
using Scenario = std::function<void(World& world)>;

struct ExploreOptions {
  /// If $LOOKOUT_SIM_SEED is set, it is the only seed; $LOOKOUT_SIM_SEEDS ("200" or "1000-1999")
  /// replaces these two.
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 100;
  LOOKOUT_OPTION FaultOptions faults = all_faults();
  LOOKOUT_OPTION WorldOptions world = {};
  /// The final state must equal that of the run without faults (World::snapshot()).
  bool stable = true;
  /// Runs each world twice and compares the runs. $LOOKOUT_SIM_TWICE=1 enables it.
  bool twice = false;
  /// explore_each(): the maximum number of faults in a world.
  unsigned depth = 1;
  /// The maximum number of worlds to run to reduce the plan of a failure.
  unsigned shrink = 60;
  /// The maximum number of story lines in a report. $LOOKOUT_SIM_STORY overrides it.
  std::size_t story = 80;
};

struct Outcome {
  bool passed = true;
  std::uint64_t worlds = 0;
  std::uint64_t requests = 0;
  /// Simulated time.
  Time simulated{0};
  // The first failure:
  std::uint64_t seed = 0;
  Plan plan = {};
  std::string violation = {};
  /// For people: the seed, the plan, the violation and the story.
  std::string report = {};
};

/// Runs the scenario once without faults and then with faults for each seed, until an oracle fails;
/// then reduces the plan to few faults that still cause the failure. No other code of the program
/// may run meanwhile.
Outcome explore(const std::string& name, const Scenario& scenario, ExploreOptions options = {});

/// Runs the scenario once without faults, and then once for each request that a fault of these kinds can
/// strike: "a crash after each write", "a stale read instead of each list". The run without faults
/// determines these requests; if there are none, the outcome has not passed. With `options.depth` 2, the
/// run with each fault determines the later requests that a second fault can strike, and so on. Runs
/// `options.seeds` worlds for each plan; ignores `options.faults`. Throws InvalidArgument for kinds of
/// timed faults.
Outcome explore_each(const std::string& name, const Scenario& scenario,
                     const std::vector<FaultKind>& kinds, ExploreOptions options = {});

/// Runs one world with exactly these faults. Returns the violation, or a message if some faults did not
/// strike (a change of the code may change the numbers of requests); empty if the world passed.
std::optional<std::string> replay(const Scenario& scenario, std::uint64_t seed, const Plan& plan,
                                  ExploreOptions options = {});

namespace detail {

/// Assertions of a test framework, which count their failures instead of throwing.
struct Assertions {
  /// The number of results so far.
  int (*count)() = nullptr;
  /// The message of the first failure after the first `from` results; empty if there is none.
  std::string (*failure)(int from) = nullptr;
};

/// Makes failed assertions in a world violations. For lookout/testing/sim/gtest.h; returns true.
bool note_assertions(const Assertions& assertions);

}  // namespace detail

}  // namespace lookout::sim
