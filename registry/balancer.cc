#include "lookout/registry/balancer.h"

#include <random>
#include <utility>

#include "lookout/base/clock.h"
#include "registry/balancer_state.h"

namespace lookout::registry {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uniform_int_distribution<std::uint64_t>()(device);
}

/// The set before the first data: the saved one if there is a file.
InstanceSetPtr first_set(Discovery& discovery, const std::string& service,
                         const BalancerPolicy& policy) {
  auto set = discovery.latest(service);
  if (set->version() > 0 || policy.cold_start_file.empty()) return set;
  auto saved = read_set_file(policy.cold_start_file, service);
  return saved ? saved : set;
}

}  // namespace

void Balancer::State::follow(const InstanceSetPtr& set) {
  // There is no data yet: keep the set from the file.
  if (set->version() == 0 && set->empty()) return;
  current.store(planner.plan(set));
  // (A waiting thread has checked before, or checks again.)
  { const std::lock_guard lock(mutex); }
  changed.notify_all();
}

Balancer::Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy) {
  // Not as an argument: the start of discovery also draws random numbers, and the evaluation order of
  // arguments depends on the compiler.
  const std::uint64_t seed = policy.seed ? *policy.seed : random_seed();
  state_ = std::make_unique<State>(service, first_set(discovery, service, policy), policy, seed);
  state_->subscription = discovery.follow(
      service, [state = state_.get()](const InstanceSetPtr& set) { state->follow(set); });
  if (!policy.cold_start_file.empty()) {
    state_->file = std::make_unique<SetFile>(discovery, service, policy.cold_start_file);
  }
}
Balancer::~Balancer() = default;
Balancer::Balancer(Balancer&&) noexcept = default;
Balancer& Balancer::operator=(Balancer&&) noexcept = default;

Pick Balancer::pick() const { return pick(PickOptions{}); }

Pick Balancer::pick(std::span<const Pick> tried) const {
  PickOptions options;
  options.exclude = tried;
  return pick(options);
}

Pick Balancer::pick(const PickOptions& options) const {
  return detail::Plan::pick(state_->current.load(), options);
}

InstanceSetPtr Balancer::load() const { return state_->current.load()->set_now(); }

bool Balancer::wait_for_change(const InstanceSet& from, std::chrono::milliseconds time,
                               std::stop_token stop) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::move(stop), Clock::limited(time),
                                  [&] { return load().get() != &from; });
}

bool Balancer::wait_for_instance(std::chrono::milliseconds time, std::stop_token stop) const {
  const auto end = std::chrono::steady_clock::now() + Clock::limited(time);
  for (;;) {
    const auto set = load();
    if (pick()) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || stop.stop_requested()) return false;
    wait_for_change(*set, left, stop);
  }
}

std::vector<Balancer::InstanceState> Balancer::instances() const {
  const auto plan = state_->current.load();
  const detail::Nanos now = state_->health->now();
  std::vector<InstanceState> out;
  if (plan->has_expired()) return out;
  out.reserve(plan->nodes().size());
  for (const auto& node : plan->nodes()) {
    out.push_back({.key = node->key(),
                   .ok = node->ok(),
                   .failed = node->failed(),
                   .in_flight = node->in_flight(),
                   .ejected = node->ejected(now, *state_->health)});
  }
  return out;
}

void Balancer::collect(std::vector<metrics::Sample>& out) const {
  const auto plan = state_->current.load();
  detail::Health& health = *state_->health;
  const detail::Nanos now = health.now();
  const auto nodes = plan->has_expired() ? std::vector<detail::NodePtr>() : plan->nodes();
  for (const auto& node : nodes) {
    metrics::Collector of_one(out, {{"service", state_->service}, {"instance", node->key()}});
    of_one.counter("lookout_registry_picks_total", "Picks of the instance.",
                   static_cast<double>(node->picks()));
    of_one.counter("lookout_registry_calls_ok_total", "Calls that were reported as successful.",
                   static_cast<double>(node->ok()));
    of_one.counter("lookout_registry_errors_total", "Calls that were reported as failed.",
                   static_cast<double>(node->failed()));
    of_one.gauge("lookout_registry_in_flight", "Calls in flight on the instance.",
                 static_cast<double>(node->in_flight()));
    of_one.gauge("lookout_registry_instance_ejected", "1 while the instance is ejected.",
                 node->ejected(now, health) ? 1 : 0);
  }
  metrics::Collector of_all(out, {{"service", state_->service}});
  of_all.gauge("lookout_registry_instances", "Instances that can be picked.",
               static_cast<double>(nodes.size()));
  of_all.gauge("lookout_registry_ejected", "Instances that are ejected.",
               health.ejected.load(std::memory_order_relaxed));
  of_all.counter("lookout_registry_ejections_total", "Ejections of instances.", health.ejections);
  of_all.counter("lookout_registry_unserved_picks_total", "Picks that found no instance.",
                 health.unserved);
  of_all.counter("lookout_registry_panic_picks_total",
                 "Picks that ignored ejections because too few instances were left.",
                 health.panics);
  of_all.counter("lookout_registry_calls_total", "Calls.", state_->calls);
  of_all.counter("lookout_registry_failed_calls_total", "Calls whose attempts all failed.",
                 state_->calls_failed);
  of_all.counter("lookout_registry_retries_total", "Attempts after the first of a call.",
                 state_->calls_retried);
  of_all.counter("lookout_registry_refused_retries_total", "Retries that the budget did not allow.",
                 state_->budget_spent);
  const Freshness fresh = plan->set_now()->freshness();
  of_all.gauge("lookout_registry_live", "1 while the set follows the cluster.", fresh.live ? 1 : 0);
  const std::chrono::duration<double> stale = std::chrono::system_clock::now() - fresh.since;
  of_all.gauge("lookout_registry_stale_seconds",
               "The time since the last answer of the API server, if the set does not follow it.",
               fresh.live ? 0 : stale.count());
}

}  // namespace lookout::registry
