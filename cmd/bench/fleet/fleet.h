// Fleet: instances under load and faults.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
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
  /// Calls per second of all callers together.
  std::size_t rate = 10'000;
  /// The duration of each fault. A fault that makes calls fail lasts until some have failed, at most a
  /// minute longer.
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds outage{60'000};
  /// The time limit of an attempt.
  std::chrono::milliseconds per_try{1'000};
  std::chrono::milliseconds answer_time{2};
  /// How long a leaving instance still serves, with Lookout's policies.
  std::chrono::milliseconds notice{1'000};
  /// The number of waves of a rolling update.
  std::size_t waves = 10;
  /// The number of instances that are faulty at a time. With three attempts, a call survives two
  /// faulty instances.
  std::size_t faulty = 2;
};

/// The calls during one fault, and their guarantees.
struct Outcome {
  Tally tally = {};
  std::chrono::duration<double> took{};
  /// The number of calls that may fail: those in flight on killed instances.
  std::uint64_t may_fail = 0;
  /// The faulty instances, and how many attempts of a caller on one of them may time out.
  std::set<std::uint16_t> faulty = {};
  std::uint64_t may_time_out = 0;

  /// The number of retries.
  std::uint64_t further_attempts() const { return tally.attempts - tally.calls; }
  /// The maximum number of timeouts of a caller on one of the faulty instances.
  std::uint64_t worst_timeouts() const;
  bool holds() const;
};

/// The instances, behind an API server of this process, and the registry that callers share. For one
/// thread.
class Fleet : public base::Pinned {
 public:
  /// Returns when all instances are announced. Throws lookout::Error if that fails.
  explicit Fleet(const FleetOptions& options);

  /// Runs calls with new callers while `fault` runs, and counts them. Afterwards the fleet is restored
  /// to its initial state.
  Outcome under_load(const std::function<void(Outcome&)>& fault);

  const FleetOptions& options() const { return options_; }
  Cluster& cluster() { return cluster_; }
  /// True if the registry currently follows the API server.
  bool is_live() const { return registry_->freshness().live; }
  /// Oldest first.
  std::vector<std::unique_ptr<Instance>>& instances() { return instances_; }
  /// The instances that become faulty: the first ones.
  std::span<const std::unique_ptr<Instance>> faulty() const;
  Traffic::Calls& calls_on(const Instance& instance) { return traffic_.on(instance.port()); }

  /// Starts instances and waits until they are announced.
  void start(std::size_t count);
  /// Sends a SIGTERM to the oldest instances and waits for their end.
  void terminate(std::size_t count);
  /// The cluster detects that the first `count` instances have failed: removes their pods.
  void remove(std::size_t count);

 private:
  const FleetOptions options_;
  Cluster cluster_;
  std::unique_ptr<registry::kratos::Registry> registry_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::size_t next_name_ = 0;
  Traffic traffic_;
};

/// A fault of the fleet.
struct Fault {
  std::string_view name;
  std::string_view description;
  void (*run)(Fleet& fleet, Outcome& outcome);
};
/// "none", "rolling", "drain", "kill", "freeze", "slow", "error", "reset", "flap", "outage"
std::span<const Fault> faults();
/// The fault with this name. Throws lookout::Error if there is none.
const Fault& fault_of(std::string_view name);

}  // namespace lookout::cmd::bench::fleet
