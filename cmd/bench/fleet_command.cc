#include "cmd/bench/fleet_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cmd/bench/fleet/fleet.h"
#include "cmd/bench/result.h"
#include "cmd/columns.h"
#include "cmd/duration.h"

namespace lookout::cmd::bench {
namespace {

struct FleetFlags {
  fleet::FleetOptions options;
  std::vector<std::string> faults;
  std::string policies = "both";
  std::string output = "text";
};

Result figures(fleet::Policies policies, const fleet::Fault& fault,
               const fleet::FleetOptions& options, const fleet::Outcome& outcome) {
  const auto whole = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
  const fleet::Tally& tally = outcome.tally;
  std::uint64_t timeouts = 0;
  for (const auto& [port, count] : tally.timeouts) timeouts += count;
  Result out;
  out.set("job", "fleet");
  out.set("policies", fleet::to_string(policies));
  out.set("fault", std::string(fault.name));
  out.set("instances", whole(options.instances));
  out.set("callers", whole(options.callers));
  out.set("wall_s", outcome.took.count());
  out.set("calls", whole(tally.calls));
  out.set("calls_per_s", static_cast<double>(tally.calls) / outcome.took.count());
  out.set("failed", whole(tally.failed));
  out.set("may_fail", whole(outcome.may_fail));
  out.set("further_attempts", whole(outcome.further_attempts()));
  out.set("timed_out", whole(timeouts));
  out.set("timed_out_once_caller", whole(outcome.worst_timeouts()));
  out.set("may_time_out", whole(outcome.may_time_out));
  out.set("latency_p50_ms", tally.times.quantile_ms(0.5));
  out.set("latency_p99_ms", tally.times.quantile_ms(0.99));
  out.set("latency_max_ms", tally.times.max_ms());
  out.set("holds", outcome.holds() ? "yes" : "no");
  return out;
}

Row heading_row() {
  return {"POLICIES",  "FAULT",  "CALLS",  "A SECOND", "FAILED", "FURTHER ATTEMPTS",
          "TIMED OUT", "P50 MS", "P99 MS", "MAX MS",   "PROMISE"};
}

Row table_row(fleet::Policies policies, const fleet::Fault& fault, const Result& figures,
              const fleet::Outcome& outcome) {
  const auto whole = [&](const char* name) { return fmt::format("{:.0f}", figures.number(name)); };
  const auto ms = [&](const char* name) { return fmt::format("{:.1f}", figures.number(name)); };
  std::string promise = fmt::format("at most {} failed", outcome.may_fail);
  if (outcome.may_time_out > 0) {
    promise += fmt::format(", {} of {} timed out for each caller and instance",
                           outcome.worst_timeouts(), outcome.may_time_out);
  }
  promise += outcome.holds() ? ": held" : ": BROKEN";
  return {fleet::to_string(policies), std::string(fault.name), whole("calls"),
          whole("calls_per_s"),       whole("failed"),         whole("further_attempts"),
          whole("timed_out"),         ms("latency_p50_ms"),    ms("latency_p99_ms"),
          ms("latency_max_ms"),       std::move(promise)};
}

int run(const FleetFlags& flags) {
  StreamingTable table;
  const bool json = flags.output == "json";
  if (!json) fmt::print("{}", table.line(heading_row()));
  bool held = true;
  for (const auto policies : {fleet::Policies::kLookout, fleet::Policies::kKratos}) {
    const bool ours = policies == fleet::Policies::kLookout;
    if (flags.policies != "both" && (flags.policies == "lookout") != ours) continue;
    fleet::FleetOptions options = flags.options;
    options.policies = policies;
    fleet::Fleet under_test(options);
    for (const std::string& name : flags.faults) {
      const fleet::Fault& fault = fleet::fault_of(name);
      const auto outcome =
          under_test.under_load([&](fleet::Outcome& out) { fault.run(under_test, out); });
      const Result result = figures(policies, fault, options, outcome);
      fmt::print("{}", json ? result.json() + "\n"
                            : table.line(table_row(policies, fault, result, outcome)));
      std::fflush(stdout);
      // (kratos' policies have no guarantees; they are only compared.)
      held = held && (outcome.holds() || !ours);
    }
  }
  return held ? 0 : 1;
}

}  // namespace

void add_fleet(CLI::App& group, Action& action) {
  const auto flags = std::make_shared<FleetFlags>();
  std::vector<std::string> names;
  std::string descriptions;
  for (const fleet::Fault& fault : fleet::faults()) {
    names.emplace_back(fault.name);
    descriptions += fmt::format("  {:<8} {}\n", fault.name, fault.description);
  }
  flags->faults = names;

  CLI::App* command = group.add_subcommand(
      "fleet", "Services under load: calls that fail while instances or the API server fail");
  fleet::FleetOptions& options = flags->options;
  command->add_option("--instances", options.instances, "The number of instances")
      ->check(CLI::Range(3, 5000))
      ->capture_default_str();
  command->add_option("--callers", options.callers, "The number of callers, each with a balancer")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rate", options.rate, "Calls per second, of all callers together")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--fault", flags->faults, "Only these faults; default: all, one after another")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->type_name("NAME,...");
  command
      ->add_option(
          "--policies", flags->policies,
          "lookout, kratos (a port of the behaviour of kratos' callers and instances), or both")
      ->check(CLI::IsMember({"both", "lookout", "kratos"}))
      ->capture_default_str();
  command
      ->add_option("--faulty", options.faulty,
                   "The number of instances that are faulty at a time (a call makes three "
                   "attempts, so it survives two)")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--waves", options.waves, "The number of waves of a rolling update")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_duration(*command, "--for", options.duration,
               "The minimum duration of a fault, which ends once calls were affected: 10s");
  add_duration(*command, "--outage", options.outage, "How long the API server is unreachable: 60s");
  add_duration(*command, "--per-try", options.per_try, "The time limit of an attempt: 1s");
  add_duration(*command, "--answer-time", options.answer_time, "How long a request takes: 2ms");
  add_duration(*command, "--notice", options.notice,
               "How long an instance keeps serving after it has deregistered: 1s");
  command->add_option("-o,--output", flags->output, "text (a table) or json (a line for each)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Instances are threads with sockets, pods and an App each; the API server is in the same\n"
      "process. Faults:\n" +
      descriptions +
      "\nThe exit status is 1 if a guarantee to Lookout's callers is violated: no call fails, "
      "except\n"
      "those in flight on an instance that is killed, and each caller's attempts on a frozen\n"
      "instance time out only once.\n\n"
      "Examples:\n"
      "  lookout bench fleet --instances 200 --callers 50 --rate 10000\n"
      "  lookout bench fleet --fault kill,freeze --policies lookout");
  on_chosen(*command, action, [flags] { return run(*flags); });
}

}  // namespace lookout::cmd::bench
