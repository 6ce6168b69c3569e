// A fleet of instances under load, and what goes wrong in it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/bench/fleet/caller.h"
#include "cmd/bench/fleet/cluster.h"
#include "cmd/bench/fleet/instance.h"
#include "lookout/base/pinned.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::bench::fleet {

struct FleetOptions {
  Policies policies = Policies::kLookout;
  std::size_t instances = 200;
  std::size_t callers = 50;
  /// Calls a second, of all callers together.
  std::size_t rate = 10'000;
  /// How long each fault lasts. One that makes calls fail lasts until some have, but at most a
  /// minute longer.
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds outage{60'000};
  /// The time limit of an attempt.
  std::chrono::milliseconds per_try{1'000};
  std::chrono::milliseconds answer_time{2};
  /// How long a leaving instance still serves, with Lookout's policies.
  std::chrono::milliseconds notice{1'000};
  /// Of a rolling update.
  std::size_t waves = 10;
  /// Instances that are faulty at a time. With three attempts a call survives two
  /// in a row.
  std::size_t faulty = 2;
};

/// The calls during one fault, and what was promised of them.
struct Outcome {
  Tally tally = {};
  std::chrono::duration<double> took{};
  /// At most so many calls may fail: those in flight on instances that were killed.
  std::uint64_t may_fail = 0;
  /// The faulty instances, and how often each caller's attempts on one may time out.
  std::set<std::uint16_t> faulty = {};
  std::uint64_t may_time_out = 0;

  /// The attempts that were made because others had failed.
  std::uint64_t further_attempts() const { return tally.attempts - tally.calls; }
  /// The most that a caller had on one of the faulty instances.
  std::uint64_t worst_timeouts() const;
  bool holds() const;
};

/// The instances, behind an API server of this process, and the registry that callers share. For one
/// thread.
class Fleet : public base::Pinned {
 public:
  /// Returns when all instances are announced. Throws lookout::Error if that fails.
  explicit Fleet(const FleetOptions& options);

  /// Calls as long as `fault` runs, with callers that know nothing yet, and counts. The fleet is
  /// then as it was at the beginning.
  Outcome under_load(const std::function<void(Outcome&)>& fault);

  const FleetOptions& options() const { return options_; }
  Cluster& cluster() { return cluster_; }
  /// Whether the registry follows the API server now.
  bool is_live() const { return registry_->freshness().live; }
  /// Oldest first.
  std::vector<std::unique_ptr<Instance>>& instances() { return instances_; }
  /// The first instances, as many as are to be faulty.
  std::span<const std::unique_ptr<Instance>> faulty() const;
  Traffic::Calls& calls_on(const Instance& instance) { return traffic_.on(instance.port()); }

  /// Starts so many, and waits until they are announced.
  void start(std::size_t count);
  /// The oldest get a SIGTERM, all at once; returns when they have ended.
  void terminate(std::size_t count);
  /// The cluster notices that the first `count` are not well: their pods go.
  void remove(std::size_t count);

 private:
  const FleetOptions options_;
  Cluster cluster_;
  std::unique_ptr<registry::kratos::Registry> registry_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::size_t next_name_ = 0;
  Traffic traffic_;
};

/// A fault that a fleet is put through.
struct Fault {
  std::string_view name;
  std::string_view description;
  void (*run)(Fleet& fleet, Outcome& outcome);
};
/// "none", "rolling", "drain", "kill", "freeze", "slow", "error", "reset", "flap", "outage"
std::span<const Fault> faults();
/// The one of that name. Throws lookout::Error if there is none.
const Fault& fault_of(std::string_view name);

}  // namespace lookout::cmd::bench::fleet
