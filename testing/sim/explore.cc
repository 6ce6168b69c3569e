#include "lookout/testing/sim/explore.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "lookout/base/numbers.h"
#include "testing/sim/draw.h"
#include "testing/sim/ended.h"
#include "testing/sim/forked_call.h"
#include "testing/sim/kernel.h"
#include "testing/sim/logs_apart.h"
#include "testing/sim/random.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {
namespace {

using State = std::map<std::string, std::string>;

detail::Assertions& assertions() {
  static detail::Assertions out;
  return out;
}

/// Failed assertions of the test framework since construction, which are violations without an
/// exception.
class FailedAssertions {
 public:
  std::optional<std::string> first() const {
    if (assertions().failure == nullptr) return std::nullopt;
    std::string out = assertions().failure(before_);
    return out.empty() ? std::nullopt : std::optional(std::move(out));
  }

 private:
  const int before_ = assertions().count == nullptr ? 0 : assertions().count();
};

struct Run {
  const Scenario& scenario;
  const ExploreOptions& options;
  /// The final state of the run without faults; null: do not compare.
  const State* expected;
};

using OnStruck = std::function<void(const Fault&)>;

void fill(Ended& out, World& world, const ExploreOptions& options) {
  out.struck = world.struck();
  if (out.violation || options.twice) out.story = world.story(options.story);
  out.state = world.impl().final_state();
  out.digest = world.digest();
  out.requests = world.requests();
  out.simulated = world.now();
  out.trace = world.impl().trace();
}

Ended run_here(const Run& run, std::uint64_t seed, const FaultOptions& faults, const Plan& plan,
               const OnStruck& on_struck = {}) {
  Ended out;
  const FailedAssertions failed;
  World world(seed, run.options.world);
  world.impl().on_struck = on_struck;
  world.impl().have_only(faults, plan);
  world.impl().expect(run.expected);
  if (!run.options.stable) world.impl().forget_end();
  try {
    run.scenario(world);
    world.impl().conclude();
  } catch (const std::exception& e) {
    out.violation = e.what();
  } catch (...) {
    out.violation = "the scenario threw something that is not a std::exception";
  }
  if (!out.violation) out.violation = failed.first();
  fill(out, world, run.options);
  // Processes may report violations while they end.
  world.impl().end_processes();
  if (out.violation) return out;
  out.violation = world.impl().violation();
  if (!out.violation) out.violation = failed.first();
  if (out.violation) out.story = world.story(run.options.story);
  return out;
}

/// The same in a forked process: each world starts with the same memory, thread-local storage and
/// one-time initialisations, so a run does not depend on earlier runs; and a world that crashes does
/// not end this process. `prepare` is called first in the child.
Ended run_world(const Run& run, std::uint64_t seed, const FaultOptions& faults, const Plan& plan,
                void (*prepare)() = nullptr) {
  Kernel::prepare();
  SharedText struck;
  const ForkedCall call([&] {
    if (prepare != nullptr) prepare();
    return encode(
        run_here(run, seed, faults, plan, [&](const Fault& fault) { struck.add(encode(fault)); }));
  });
  if (const auto& died = call.why_it_died()) {
    Ended out;
    out.violation = *died;
    out.struck = decode_faults(struck.text());
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

/// With fewer earlier faults, a request gets another number. Maps each fault to the number of the
/// corresponding request in the other run: the one of the same kind nearest in time.
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

/// Removes faults as long as an oracle still fails (delta debugging): halves first, single faults last.
Ended shrink(const Run& run, std::uint64_t seed, Ended failure) {
  unsigned left = run.options.shrink;
  const auto attempt = [&](const Plan& plan) {
    --left;
    return run_world(run, seed, no_faults(), plan);
  };
  if (left == 0) return failure;
  // First, replay the same faults as a plan, without drawing.
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
  out +=
      fmt::format("Faults (reduced to {} of {} drawn):\n", failure.struck.size(), faults_at_first);
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
      if (last < options.first_seed)
        throw InvalidArgument(fmt::format("LOOKOUT_SIM_SEEDS is '{}': no seeds", text));
      options.seeds = std::max(last - options.first_seed, last - options.first_seed + 1);
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
  if (options.seeds == 0)
    throw InvalidArgument("there are no seeds to run (ExploreOptions::seeds)");
}

/// The seeds to run, up to the largest number.
class SeedsOf {
 public:
  explicit SeedsOf(const ExploreOptions& options)
      : next_(options.first_seed),
        left_(std::min(options.seeds - 1,
                       std::numeric_limits<std::uint64_t>::max() - options.first_seed)) {}

  std::optional<std::uint64_t> next() {
    if (over_) return std::nullopt;
    over_ = left_ == 0;
    --left_;
    return next_++;
  }

 private:
  std::uint64_t next_;
  std::uint64_t left_;  // after the next one
  bool over_ = false;
};

/// Appends a line for each world to the file $LOOKOUT_SIM_DIGESTS, for comparing the same seeds in
/// different programs, builds or on different machines.
void note_digest(const std::string& name, std::uint64_t seed, const Ended& ended) {
  const char* const path = std::getenv("LOOKOUT_SIM_DIGESTS");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app)
      << fmt::format("{} {} {:016x} {}\n", name, seed, ended.digest, ended.requests);
}

/// The result of the run without faults; its violation is a defect of the scenario or of the code.
Ended baseline_of(const Scenario& scenario, const ExploreOptions& options) {
  constexpr std::uint64_t kSeed = 0;
  return run_world({scenario, options, nullptr}, kSeed, no_faults(), {});
}

/// The plans that extend `plan` by one fault at each later request that it can strike.
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

std::string without_faults(const Ended& baseline) {
  return fmt::format("without any fault: {}\n\n{}", *baseline.violation, baseline.story);
}

Outcome without_faults(const std::string& name, const Ended& baseline) {
  Outcome out;
  out.passed = false;
  out.worlds = 1;
  out.violation = *baseline.violation;
  out.report = name + ": " + without_faults(baseline);
  return out;
}

/// Changes addresses and their order, so that a world that depends on addresses gives another
/// result.
void move_memory() {
  constexpr std::size_t kMoved = 1'000'003;
  constexpr std::size_t kSmallest = 24;
  constexpr std::size_t kLargest = 1000;
  constexpr std::size_t kStep = 16;
  constexpr int kChunks = 200;
  // Thread stacks are then placed after it.
  mmap(nullptr, kMoved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Random random(kMoved);
  std::vector<void*> kept{std::malloc(kMoved)};
  for (std::size_t size = kSmallest; size <= kLargest; size += kStep) {
    std::vector<void*> chunks;
    // The chunks in between stay allocated, so that the free ones are not merged.
    for (int i = 0; i < kChunks; ++i) {
      chunks.push_back(std::malloc(size));
      kept.push_back(std::malloc(kSmallest));
    }
    for (; !chunks.empty(); chunks.pop_back()) {
      std::swap(chunks[random.below(chunks.size())], chunks.back());
      std::free(chunks.back());
    }
  }
}

/// The violation if two runs with the same seed differ.
std::optional<std::string> difference(const Ended& one, const Ended& again) {
  if (one.digest == again.digest) return std::nullopt;
  std::string out =
      "two runs with this seed differ: something depends on more than the seed (a "
      "pointer's value, a real clock, a thread from outside the world)";
  const auto [first, second] = std::ranges::mismatch(one.trace, again.trace);
  const auto describe = [](const auto& trace, const auto& at) {
    if (at == trace.end()) return std::string("no request");
    return fmt::format("at {:.6f} s {}: {} {}", std::chrono::duration<double>(at->time).count(),
                       at->process, at->method, at->target);
  };
  if (first == one.trace.end() && second == again.trace.end())
    return out + "; their requests are the same";
  return out + fmt::format("; request {} is\n  {}\n  {}", first - one.trace.begin() + 1,
                           describe(one.trace, first), describe(again.trace, second));
}

/// The report of the first failure.
Outcome& fail(Outcome& out, const std::string& name, std::uint64_t seed, const Ended& failure,
              std::size_t faults_at_first) {
  out.passed = false;
  out.seed = seed;
  out.plan = failure.struck;
  out.violation = *failure.violation;
  out.report = report_of(name, seed, failure, faults_at_first);
  return out;
}

}  // namespace

bool detail::note_assertions(const Assertions& some) {
  assertions() = some;
  return true;
}

Outcome explore(const std::string& name, const Scenario& scenario, ExploreOptions options) {
  apply_environment(options);
  Outcome out;
  // Many worlds would log too much; a single one does not.
  const Quiet quiet(options.seeds > 1);
  const Ended baseline = baseline_of(scenario, options);
  if (baseline.violation) return without_faults(name, baseline);
  const Run run{scenario, options, options.stable ? &baseline.state : nullptr};
  for (SeedsOf seeds(options); const auto seed = seeds.next();) {
    // A single world runs in this process, for debuggers, if no other world ran here before.
    const bool here = options.seeds == 1 && !options.twice && !Kernel::has_been();
    Ended ended =
        here ? run_here(run, *seed, options.faults, {}) : run_world(run, *seed, options.faults, {});
    note_digest(name, *seed, ended);
    ++out.worlds;
    out.requests += ended.requests;
    out.simulated += ended.simulated;
    if (options.twice && !ended.violation)
      ended.violation = difference(ended, run_world(run, *seed, options.faults, {}, &move_memory));
    if (!ended.violation) continue;
    const std::size_t at_first = ended.struck.size();
    return fail(out, name, *seed, shrink(run, *seed, std::move(ended)), at_first);
  }
  return out;
}

Outcome explore_each(const std::string& name, const Scenario& scenario,
                     const std::vector<FaultKind>& kinds, ExploreOptions options) {
  if (std::ranges::any_of(kinds, &is_of_time))
    throw InvalidArgument("explore_each() takes request faults only, not timed faults");
  apply_environment(options);
  const Quiet quiet(true);
  const Ended baseline = baseline_of(scenario, options);
  if (baseline.violation) return without_faults(name, baseline);
  const Run run{scenario, options, options.stable ? &baseline.state : nullptr};
  Outcome out;
  std::deque<Plan> plans;
  const auto add = [&](const Plan& plan, const std::vector<Traced>& trace) {
    if (plan.size() < options.depth)
      std::ranges::copy(with_one_more(plan, trace, kinds), std::back_inserter(plans));
  };
  for (add({}, baseline.trace); !plans.empty(); plans.pop_front()) {
    const Plan plan = plans.front();
    for (SeedsOf seeds(options); const auto seed = seeds.next();) {
      Ended ended = run_world(run, *seed, no_faults(), plan);
      ++out.worlds;
      out.requests += ended.requests;
      out.simulated += ended.simulated;
      if (!ended.violation) {
        if (*seed == options.first_seed) add(plan, ended.trace);
        continue;
      }
      ended.struck = plan;
      return fail(out, name, *seed, ended, plan.size());
    }
  }
  if (out.worlds > 0) return out;
  out.passed = false;
  out.violation = "these faults can strike no request of the run without faults";
  out.report = name + ": " + out.violation;
  return out;
}

std::optional<std::string> replay(const Scenario& scenario, std::uint64_t seed, const Plan& plan,
                                  ExploreOptions options) {
  State expected;
  if (options.stable) {
    Ended baseline = baseline_of(scenario, options);
    if (baseline.violation) return without_faults(baseline);
    expected = std::move(baseline.state);
  }
  const Run run{scenario, options, options.stable ? &expected : nullptr};
  const Ended ended = run_world(run, seed, no_faults(), plan);
  if (ended.violation) return ended.violation;
  std::string missed;
  for (const Fault& fault : plan) {
    if (std::ranges::find(ended.struck, fault) == ended.struck.end())
      missed += "\n  " + describe(fault);
  }
  if (missed.empty()) return std::nullopt;
  return "the plan does not match the run: these faults did not strike:" + missed;
}

}  // namespace lookout::sim
