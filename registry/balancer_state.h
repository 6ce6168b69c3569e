// The parts of a Balancer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lookout/registry/balancer.h"
#include "lookout/registry/set_file.h"
#include "registry/atomic_ref.h"
#include "registry/plan.h"
#include "registry/retry_budget.h"

namespace lookout::registry {

struct Balancer::State {
  State(std::string name, const InstanceSetPtr& first, const BalancerPolicy& policy,
        std::uint64_t seed)
      : service(std::move(name)),
        planner(policy, seed),
        health(planner.health()),
        retries(policy.retries),
        current(planner.plan(first)) {}

  /// Called by the subscription, one call at a time.
  void follow(const InstanceSetPtr& set);

  const std::string service;
  detail::Planner planner;
  const std::shared_ptr<detail::Health> health;
  detail::RetryAccount retries;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> calls_failed{0};
  std::atomic<std::uint64_t> calls_retried{0};  // attempts after the first
  std::atomic<std::uint64_t> budget_spent{0};   // retries that the budget refused
  detail::AtomicRef<detail::Plan> current;

  mutable std::mutex mutex;  // for waiting threads
  mutable std::condition_variable_any changed;

  Subscription subscription;  // last: destroyed before the other members
  std::unique_ptr<SetFile> file;
};

}  // namespace lookout::registry
