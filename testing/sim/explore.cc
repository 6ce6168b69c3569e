#include "lookout/testing/sim/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "lookout/base/numbers.h"
#include "testing/sim/draw.h"
#include "testing/sim/ended.h"
#include "testing/sim/forked_call.h"
#include "testing/sim/kernel.h"
#include "testing/sim/logs_apart.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {
namespace {

using State = std::map<std::string, std::string>;

Ended run_here(const Scenario& scenario, std::uint64_t seed, const ExploreOptions& options,
               const FaultOptions& faults, const Plan& plan, const State* expected) {
  Ended out;
  World world(seed, options.world);
  world.impl().have_only(faults, plan);
  world.impl().expect(expected);
  if (!options.stable) world.impl().forget_end();
  try {
    scenario(world);
  } catch (const std::exception& e) {
    out.violation = e.what();
  }
  out.struck = world.struck();
  if (out.violation) out.story = world.story(options.story);
  out.state = world.impl().final_state();
  out.digest = world.digest();
  out.requests = world.requests();
  out.simulated = world.now();
  out.trace = world.impl().trace();
  return out;
}

/// The same in a process of its own: each world finds memory, thread-local storage and everything
/// that is made only once as this process has left them, so that a seed tells the same story
/// whatever has run before it; and a world that crashes ends alone.
Ended run_world(const Scenario& scenario, std::uint64_t seed, const ExploreOptions& options,
                const FaultOptions& faults, const Plan& plan, const State* expected) {
  Kernel::prepare();
  const ForkedCall call(
      [&] { return encode(run_here(scenario, seed, options, faults, plan, expected)); });
  if (const auto& died = call.why_it_died()) {
    Ended out;
    out.violation = *died;
    out.struck = plan;
    return out;
  }
  return decode(call.result());
}

RequestNote note_of(const Traced& traced) {
  RequestNote out;
  out.process = traced.process;
  out.number = traced.number;
  out.method = traced.method;
  out.target = traced.target;
  return out;
}

/// With fewer faults before it, a request has another number. Gives each fault the number that the
/// request that it struck in one run has in the other: there, the one of its kind that comes at the
/// nearest time.
Plan renumbered(Plan plan, const std::vector<Traced>& run, const std::vector<Traced>& other) {
  for (Fault& fault : plan) {
    if (is_of_time(fault.kind) || !fault.call.empty()) continue;
    const auto struck = std::ranges::find_if(run, [&](const Traced& each) {
      return each.process == fault.process && each.number == fault.at;
    });
    if (struck == run.end()) continue;
    const RequestNote note = note_of(*struck);
    std::optional<Time> nearest;
    for (const Traced& each : other) {
      const RequestNote candidate = note_of(each);
      if (candidate.process != note.process || candidate.method != note.method ||
          candidate.path() != note.path() || candidate.watches() != note.watches())
        continue;
      const Time distance = std::chrono::abs(each.time - struck->time);
      if (nearest && *nearest <= distance) continue;
      nearest = distance;
      fault.at = each.number;
    }
  }
  return plan;
}

/// Drops faults as long as an oracle still objects (delta debugging): halves at first, single ones
/// in the end.
Ended shrink(const Scenario& scenario, std::uint64_t seed, const ExploreOptions& options,
             Ended failure, const State* expected) {
  unsigned left = options.shrink;
  const auto attempt = [&](const Plan& plan) {
    --left;
    return run_world(scenario, seed, options, no_faults(), plan, expected);
  };
  if (left == 0) return failure;
  // Without the draws, the same faults have to do it.
  Ended best = attempt(failure.struck);
  if (!best.violation) return failure;
  best.struck = failure.struck;
  for (std::size_t size = best.struck.size() / 2; size > 0 && left > 0;) {
    bool smaller = false;
    for (std::size_t from = 0; from < best.struck.size() && left > 0;) {
      Plan plan = best.struck;
      const std::size_t to = std::min(plan.size(), from + size);
      plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(from),
                 plan.begin() + static_cast<std::ptrdiff_t>(to));
      Ended next = attempt(plan);
      if (!next.violation && left > 0) {
        Plan moved = renumbered(plan, best.trace, next.trace);
        if (moved != plan) {
          next = attempt(moved);
          plan = std::move(moved);
        }
      }
      if (next.violation) {
        next.struck = std::move(plan);
        best = std::move(next);
        smaller = true;
      } else {
        from = to;
      }
    }
    if (size == 1 && !smaller) break;
    size = std::max<std::size_t>(size / 2, 1);
    if (best.struck.size() <= 1 && size == 1 && !smaller) break;
  }
  return best;
}

std::string report_of(const std::string& name, std::uint64_t seed, const Ended& failure,
                      std::size_t faults_at_first) {
  std::string out = fmt::format("{}: seed {}: {}\n\n", name, seed, *failure.violation);
  out += fmt::format("Faults ({} of {} that the seed draws are enough):\n", failure.struck.size(),
                     faults_at_first);
  for (const Fault& fault : failure.struck) out += "  " + describe(fault) + "\n";
  out += "\n" + failure.story;
  out += fmt::format(
      "\nTo run this world again: LOOKOUT_SIM_SEED={} (and the filter of this test)\n", seed);
  return out;
}

std::uint64_t demand_number(std::string_view text, const char* variable) {
  const auto out = base::parse_number<std::uint64_t>(text);
  if (!out)
    throw InvalidArgument(
        fmt::format("{} is '{}', which is not a number or a range like 1-1000", variable, text));
  return *out;
}

void apply_environment(ExploreOptions& options) {
  if (const char* seeds = std::getenv("LOOKOUT_SIM_SEEDS")) {
    const std::string_view text = seeds;
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) {
      options.seeds = demand_number(text, "LOOKOUT_SIM_SEEDS");
    } else {
      options.first_seed = demand_number(text.substr(0, dash), "LOOKOUT_SIM_SEEDS");
      const std::uint64_t last = demand_number(text.substr(dash + 1), "LOOKOUT_SIM_SEEDS");
      options.seeds = last < options.first_seed ? 0 : last - options.first_seed + 1;
    }
  }
  if (const char* seed = std::getenv("LOOKOUT_SIM_SEED")) {
    options.first_seed = demand_number(seed, "LOOKOUT_SIM_SEED");
    options.seeds = 1;
  }
  if (const char* twice = std::getenv("LOOKOUT_SIM_TWICE"))
    options.twice = std::string_view(twice) != "0";
  if (const char* lines = std::getenv("LOOKOUT_SIM_STORY"))
    options.story = demand_number(lines, "LOOKOUT_SIM_STORY");
}

/// $LOOKOUT_SIM_DIGESTS names a file that gets a line for each world: to compare what two programs,
/// builds or machines make of the same seeds.
void note_digest(const std::string& name, std::uint64_t seed, const Ended& ended) {
  const char* const path = std::getenv("LOOKOUT_SIM_DIGESTS");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app)
      << fmt::format("{} {} {:016x} {}\n", name, seed, ended.digest, ended.requests);
}

/// The end without faults; its violation is a defect of the scenario or of the code.
Ended baseline_of(const Scenario& scenario, const ExploreOptions& options) {
  constexpr std::uint64_t kSeed = 0;
  return run_world(scenario, kSeed, options, no_faults(), {}, nullptr);
}

/// One more fault, wherever a kind of fault can strike behind those of a plan.
std::vector<Plan> with_one_more(const Plan& plan, const std::vector<Traced>& trace,
                                const std::vector<FaultKind>& kinds) {
  auto from = trace.begin();
  if (!plan.empty()) {
    from = std::find_if(trace.begin(), trace.end(), [&](const Traced& traced) {
      return traced.process == plan.back().process && traced.number == plan.back().at;
    });
    if (from != trace.end()) ++from;
  }
  std::vector<Plan> out;
  for (; from != trace.end(); ++from) {
    const RequestNote request = note_of(*from);
    for (const FaultKind kind : kinds) {
      if (!fits(kind, request)) continue;
      out.push_back(plan);
      out.back().push_back(typical(kind, request));
    }
  }
  return out;
}

Outcome without_faults(const std::string& name, const Ended& baseline) {
  Outcome out;
  out.passed = false;
  out.worlds = 1;
  out.violation = *baseline.violation;
  out.report =
      fmt::format("{}: without any fault: {}\n\n{}", name, *baseline.violation, baseline.story);
  return out;
}

}  // namespace

Outcome explore(const std::string& name, const Scenario& scenario, ExploreOptions options) {
  apply_environment(options);
  Outcome out;
  // Many worlds would fill a screen with what they log; one does not.
  const Quiet quiet(options.seeds > 1);
  const Ended baseline = baseline_of(scenario, options);
  if (baseline.violation) return without_faults(name, baseline);
  const State* const expected = options.stable ? &baseline.state : nullptr;
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    // A single one runs in this process, where a debugger is, if no other one has left its traces.
    const bool here = options.seeds == 1 && !options.twice && !Kernel::has_been();
    const auto run = here ? &run_here : &run_world;
    Ended ended = run(scenario, seed, options, options.faults, {}, expected);
    note_digest(name, seed, ended);
    ++out.worlds;
    out.requests += ended.requests;
    out.simulated += ended.simulated;
    if (options.twice) {
      // Elsewhere in memory, so that a story that depends on addresses differs.
      const auto moved = std::make_unique<std::array<char, 1'000'003>>();
      const Ended again = run_world(scenario, seed, options, options.faults, {}, expected);
      if (again.digest != ended.digest && !ended.violation) {
        ended.violation =
            "two runs with this seed differ: something in it depends on more than the seed (a "
            "pointer's value, a real clock, a thread from outside the world)";
      }
    }
    if (!ended.violation) continue;
    out.passed = false;
    out.seed = seed;
    const std::size_t at_first = ended.struck.size();
    const Ended smallest = shrink(scenario, seed, options, std::move(ended), expected);
    out.plan = smallest.struck;
    out.violation = *smallest.violation;
    out.report = report_of(name, seed, smallest, at_first);
    return out;
  }
  return out;
}

Outcome explore_each(const std::string& name, const Scenario& scenario,
                     const std::vector<FaultKind>& kinds, ExploreOptions options) {
  apply_environment(options);
  const Quiet quiet(true);
  const Ended baseline = baseline_of(scenario, options);
  if (baseline.violation) return without_faults(name, baseline);
  const State* const expected = options.stable ? &baseline.state : nullptr;
  Outcome out;
  std::deque<Plan> plans;
  const auto add = [&](const Plan& plan, const std::vector<Traced>& trace) {
    if (plan.size() < options.depth)
      std::ranges::copy(with_one_more(plan, trace, kinds), std::back_inserter(plans));
  };
  for (add({}, baseline.trace); !plans.empty(); plans.pop_front()) {
    const Plan plan = plans.front();
    for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds;
         ++seed) {
      Ended ended = run_world(scenario, seed, options, no_faults(), plan, expected);
      ++out.worlds;
      out.requests += ended.requests;
      out.simulated += ended.simulated;
      if (!ended.violation) {
        if (seed == options.first_seed) add(plan, ended.trace);
        continue;
      }
      out.passed = false;
      out.seed = seed;
      out.plan = plan;
      out.violation = *ended.violation;
      ended.struck = plan;
      out.report = report_of(name, seed, ended, plan.size());
      return out;
    }
  }
  return out;
}

std::optional<std::string> replay(const Scenario& scenario, std::uint64_t seed, const Plan& plan,
                                  ExploreOptions options) {
  State expected;
  if (options.stable) expected = baseline_of(scenario, options).state;
  return run_world(scenario, seed, options, no_faults(), plan, options.stable ? &expected : nullptr)
      .violation;
}

}  // namespace lookout::sim
