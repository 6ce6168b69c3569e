// The faults of a fleet.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "cmd/bench/fleet/fleet.h"
#include "lookout/api/error.h"
#include "lookout/registry/policy.h"

namespace lookout::cmd::bench::fleet {
namespace {

using namespace std::chrono_literals;

using Steady = std::chrono::steady_clock;

/// Returns false if the condition does not hold within a minute.
template <class Condition>
bool within_a_minute(Condition condition) {
  for (const auto deadline = Steady::now() + 1min; !condition(); std::this_thread::sleep_for(1ms)) {
    if (Steady::now() > deadline) return false;
  }
  return true;
}

void pause(const Fleet& fleet) { std::this_thread::sleep_for(fleet.options().duration); }

/// Counts the failed calls on the faulty instances since construction.
class Failures {
 public:
  explicit Failures(Fleet& fleet) {
    for (const auto& instance : fleet.faulty()) {
      const auto& calls = fleet.calls_on(*instance);
      counted_.push_back({calls, calls.failed});
    }
  }
  /// Waits until this many calls have failed on each instance, at most a minute: on a busy machine, it may
  /// take longer than the planned duration until calls reach an instance.
  void wait(std::uint64_t count) const {
    within_a_minute([&] {
      return std::ranges::all_of(counted_, [&](const Counted& counted) {
        return counted.calls.failed - counted.before >= count;
      });
    });
  }

 private:
  struct Counted {
    const Traffic::Calls& calls;
    std::uint64_t before;
  };
  std::vector<Counted> counted_;
};

void nothing(Fleet& fleet, Outcome&) { pause(fleet); }

void roll(Fleet& fleet, Outcome&) {
  const std::size_t all = fleet.options().instances;
  const std::size_t waves = std::min(fleet.options().waves, all);
  for (std::size_t wave = 0; wave < waves; ++wave) {
    const std::size_t count = all * (wave + 1) / waves - all * wave / waves;
    fleet.start(count);
    fleet.terminate(count);
  }
}

void drain(Fleet& fleet, Outcome&) {
  fleet.terminate(std::max<std::size_t>(1, fleet.options().instances / 10));
  pause(fleet);
}

void kill(Fleet& fleet, Outcome& outcome) {
  const Failures failures(fleet);
  for (const auto& instance : fleet.faulty()) {
    outcome.may_fail += fleet.calls_on(*instance).in_flight;
    instance->kill();
  }
  pause(fleet);
  failures.wait(outcome.may_fail + 1);
  fleet.remove(fleet.faulty().size());
}

void freeze(Fleet& fleet, Outcome& outcome) {
  const auto begun = Steady::now();
  const Failures failures(fleet);
  for (const auto& instance : fleet.faulty()) {
    outcome.faulty.insert(instance->port());
    instance->server().freeze();
  }
  std::this_thread::sleep_for(fleet.options().duration + fleet.options().per_try);
  failures.wait(1);
  // An ejected instance is tried again after this time.
  const auto ejection = registry::OutlierOptions().base_ejection;
  outcome.may_time_out = 1 + static_cast<std::uint64_t>((Steady::now() - begun) / ejection);
  fleet.remove(fleet.faulty().size());
}

void slow(Fleet& fleet, Outcome&) {
  const auto usual = fleet.options().answer_time;
  for (const auto& instance : fleet.faulty()) {
    instance->server().set_answer_time(std::min(50 * usual, fleet.options().per_try / 2));
  }
  pause(fleet);
  for (const auto& instance : fleet.faulty()) instance->server().set_answer_time(usual);
}

void misbehave(Fleet& fleet, Conduct conduct) {
  const Failures failures(fleet);
  for (const auto& instance : fleet.faulty()) instance->server().set_conduct(conduct);
  pause(fleet);
  failures.wait(1);
  for (const auto& instance : fleet.faulty()) instance->server().set_conduct(Conduct::kAnswers);
}

void fail(Fleet& fleet, Outcome&) { misbehave(fleet, Conduct::kFails); }

void reset(Fleet& fleet, Outcome&) { misbehave(fleet, Conduct::kResets); }

void flap(Fleet& fleet, Outcome&) {
  const auto end = Steady::now() + fleet.options().duration;
  const std::span all(fleet.instances());
  const auto half = all.first((all.size() + 1) / 2);
  for (bool ready = false; ready || Steady::now() < end; ready = !ready) {
    for (const auto& instance : half) fleet.cluster().set_ready(instance->name(), ready);
    std::this_thread::sleep_for(100ms);
  }
}

void wait_until_followed(const Fleet& fleet, bool live) {
  if (!within_a_minute([&] { return fleet.is_live() == live; })) {
    throw Error(live ? "the registry did not recover" : "the registry did not detect the outage");
  }
}

void outage(Fleet& fleet, Outcome&) {
  fleet.cluster().stop_server();
  wait_until_followed(fleet, false);
  std::this_thread::sleep_for(fleet.options().outage);
  fleet.cluster().start_server();
  wait_until_followed(fleet, true);
  // The registry must see changes again.
  fleet.start(1);
  fleet.terminate(1);
}

constexpr std::array kFaults{
    Fault{"none", "nothing goes wrong", nothing},
    Fault{"rolling", "all instances are replaced, in waves", roll},
    Fault{"drain", "a tenth of the instances gets a SIGTERM", drain},
    Fault{"kill", "instances get a SIGKILL; the cluster notices at the end", kill},
    Fault{"freeze", "instances stop answering; the cluster notices at the end", freeze},
    Fault{"slow", "instances take fifty times as long, or half an attempt's limit", slow},
    Fault{"error", "instances answer with errors", fail},
    Fault{"reset", "instances reset the connections of requests", reset},
    Fault{"flap", "half of the instances alternate between ready and not ready, and keep serving",
          flap},
    Fault{"outage", "the API server is unreachable; then an instance is added and one is removed",
          outage},
};

}  // namespace

std::span<const Fault> faults() { return kFaults; }

const Fault& fault_of(std::string_view name) {
  const auto found = std::ranges::find(kFaults, name, &Fault::name);
  if (found == kFaults.end()) throw Error(fmt::format("there is no fault \"{}\"", name));
  return *found;
}

}  // namespace lookout::cmd::bench::fleet
