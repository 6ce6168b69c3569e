#include "registry/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "lookout/base/ascii.h"
#include "registry/mixing.h"

namespace lookout::registry {
namespace detail {
namespace {

constexpr std::uint32_t kMaxWeight = 65535;

/// The schemes by which the instance can be picked, in lower case.
std::set<std::string> schemes_of(const ServiceInstance& instance) {
  std::set<std::string> out;
  for (const Endpoint& endpoint : instance.endpoints) {
    if (endpoint.valid() && endpoint.announced()) out.insert(base::lower_case(endpoint.scheme()));
  }
  return out;
}

}  // namespace

// ------------------------------------------------------------------------------------ Plan

Pick Plan::pick(PlanPtr self, const PickOptions& options) {
  const Plan& plan = *self;
  Want want(options, *plan.health_, plan.nodes_.size(), plan.needs_time_);
  if (plan.expires_ != 0 && want.now() >= plan.expires_) {
    plan.health_->unserved.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  const Candidate* found = plan.chooser_->choose(want);
  while (found == nullptr && want.relax()) found = plan.chooser_->choose(want);
  if (found == nullptr) {
    plan.health_->unserved.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  const Endpoint* endpoint = found->instance->endpoint(options.scheme);
  return {std::move(self), found->instance, endpoint, found->node};
}

void Plan::report(const Node& node, Outcome outcome, Nanos latency) const {
  Health& health = *health_;
  const bool looks =
      health.outliers.success_rate_deviations > 0 && health.outliers.interval.count() > 0;
  const Nanos now = health.now();
  if (node.learn(outcome, latency, now, health)) {
    const std::lock_guard lock(health.ejecting);
    eject(node, now);
  }
  if (!looks) return;
  Nanos next = health.next_look.load(std::memory_order_relaxed);
  if (now < next) return;
  const Nanos after = now + nanos_of(health.outliers.interval);
  // One thread checks the success rates; the first time there are none yet.
  if (health.next_look.compare_exchange_strong(next, after, std::memory_order_relaxed) &&
      next != 0) {
    look_at_success_rates(now);
  }
}

void Plan::eject(const Node& node, Nanos now) const {
  // End expired ejections first.
  for (const auto& other : nodes_) other->come_back(now, *health_);
  node.eject(now, nodes_.size(), *health_);
}

void Plan::look_at_success_rates(Nanos now) const {
  struct Rate {
    const Node* node;
    double rate;
  };
  const OutlierOptions& rules = health_->outliers;
  std::vector<Rate> rates;
  for (const auto& node : nodes_) {
    const auto [ok, failed] = node->take_window();
    const std::uint64_t calls = ok + failed;
    if (calls == 0 || calls < rules.success_rate_calls) continue;
    rates.push_back({node.get(), static_cast<double>(ok) / static_cast<double>(calls)});
  }
  if (rates.empty() || rates.size() < rules.success_rate_instances) return;
  const auto count = static_cast<double>(rates.size());
  double mean = 0;
  for (const Rate& rate : rates) mean += rate.rate / count;
  double variance = 0;
  for (const Rate& rate : rates) variance += (rate.rate - mean) * (rate.rate - mean) / count;
  const double limit = mean - rules.success_rate_deviations * std::sqrt(variance);
  std::ranges::sort(rates, {}, &Rate::rate);
  const std::lock_guard lock(health_->ejecting);
  for (const Rate& rate : rates) {
    if (rate.rate >= limit) break;
    eject(*rate.node, now);
  }
}

// --------------------------------------------------------------------------------- Planner

Planner::Planner(BalancerPolicy policy, std::uint64_t seed)
    : policy_(std::move(policy)), health_(std::make_shared<Health>(policy_)) {
  memory_.seed = seed;
}

std::vector<const ServiceInstance*> Planner::usable(const InstanceSet& set) const {
  std::vector<const ServiceInstance*> out;
  for (const auto& instance : set) {
    if (!instance.ready || instance.endpoint() == nullptr) continue;
    if (policy_.filter && !accepts(policy_.filter, "filter", instance)) continue;
    out.push_back(&instance);
  }
  if (policy_.subset_size == 0 || out.size() <= policy_.subset_size) return out;
  // Rendezvous hashing: each caller has its own order, in which a change moves only changed instances.
  const std::uint64_t caller = hashed(policy_.subset_of);
  std::vector<std::pair<std::uint64_t, const ServiceInstance*>> ranks;
  ranks.reserve(out.size());
  for (const ServiceInstance* instance : out) {
    ranks.emplace_back(hashed(instance->key(), caller), instance);
  }
  std::ranges::sort(ranks, {}, &decltype(ranks)::value_type::first);
  out.clear();
  // Each scheme needs its instances: a pick by scheme finds no others.
  std::map<std::string, std::size_t> chosen;
  for (const auto& [rank, instance] : ranks) {
    const std::set<std::string> schemes = schemes_of(*instance);
    const bool needed = std::ranges::any_of(
        schemes, [&](const std::string& scheme) { return chosen[scheme] < policy_.subset_size; });
    if (!needed) continue;
    for (const std::string& scheme : schemes) ++chosen[scheme];
    out.push_back(instance);
  }
  std::ranges::sort(out, {}, &ServiceInstance::key);
  return out;
}

NodePtr Planner::node(const ServiceInstance& instance) {
  auto& zone = zones_[instance.zone];
  if (!zone) zone = std::make_shared<ZoneHealth>();
  // A pod that was replaced under the same name (StatefulSet) is another instance.
  const std::uint64_t address = hashed(instance.endpoint()->authority());
  const auto known = nodes_.find(instance.key());
  if (known != nodes_.end() && known->second->zone() == zone &&
      known->second->address() == address) {
    return known->second;
  }
  const bool ramps = started_ && policy_.slow_start.count() > 0;
  const Nanos from = ramps ? health_->now() : 0;
  if (ramps) health_->ramp_until.store(from + health_->slow_start, std::memory_order_relaxed);
  return std::make_shared<const Node>(instance.key(), address, zone, from);
}

std::uint32_t Planner::weight_of(const ServiceInstance& instance) const {
  const auto it = instance.metadata.find(policy_.weight_key);
  std::uint32_t weight = policy_.default_weight;
  if (it != instance.metadata.end()) {
    const char* const end = it->second.data() + it->second.size();
    std::uint32_t number = 0;
    const auto [rest, error] = std::from_chars(it->second.data(), end, number);
    if (error == std::errc{} && rest == end) weight = number;
  }
  return std::min(weight, kMaxWeight);
}

PlanPtr Planner::plan(const InstanceSetPtr& set) {
  const auto instances = usable(*set);
  if (!instances.empty()) {
    last_ = set;
    last_until_ = 0;
    return make(set, set, instances, 0);
  }
  if (policy_.keep_last.count() > 0 && last_) {
    const auto keep = nanos_of(policy_.keep_last);
    const Nanos now = health_->now();
    // The time starts with the first unusable set; further ones do not prolong it.
    if (last_until_ == 0) last_until_ = now + keep;
    if (now < last_until_) return make(last_, set, usable(*last_), last_until_);
    last_ = nullptr;
  }
  return make(set, set, instances, 0);
}

PlanPtr Planner::make(const InstanceSetPtr& set, const InstanceSetPtr& newest,
                      const std::vector<const ServiceInstance*>& instances, Nanos expires) {
  Candidates candidates;
  std::vector<NodePtr> nodes;
  std::map<std::string, NodePtr> present;
  for (const ServiceInstance* instance : instances) {
    nodes.push_back(node(*instance));
    present.emplace(instance->key(), nodes.back());
    candidates.push_back({instance, nodes.back().get(), weight_of(*instance)});
  }
  // A removed instance or zone starts afresh when it returns.
  present.swap(nodes_);
  std::erase_if(zones_, [](const auto& zone) { return zone.second.use_count() == 1; });
  std::erase_if(memory_.zone_uses, [&](const auto& use) {
    return std::ranges::none_of(candidates, [&](const Candidate& candidate) {
      return candidate.instance->zone == use.first;
    });
  });
  {
    // Removed instances no longer count as ejected.
    const std::lock_guard lock(health_->ejecting);
    for (const auto& [key, known] : present) {
      const auto now = nodes_.find(key);
      if (now == nodes_.end() || now->second != known) known->leave();
    }
    std::uint32_t out = 0;
    std::map<ZoneHealth*, std::uint32_t> out_here;
    for (const auto& known : nodes) {
      if (!known->is_out()) continue;
      ++out;
      ++out_here[known->zone().get()];
    }
    health_->ejected.store(out, std::memory_order_relaxed);
    for (const auto& [name, zone] : zones_) {
      zone->ejected.store(out_here[zone.get()], std::memory_order_relaxed);
    }
  }
  if (!candidates.empty()) started_ = true;
  const bool needs_time = expires != 0 || policy_.kind == BalancerPolicy::Kind::kP2cEwma;
  auto chooser = make_chooser(policy_, std::move(candidates), memory_);
  return {
      new Plan(set, newest, std::move(nodes), std::move(chooser), health_, needs_time, expires)};
}

}  // namespace detail

// ------------------------------------------------------------------------------------ Pick

Pick::Pick(boost::intrusive_ptr<const detail::PlanBase> plan, const ServiceInstance* instance,
           const Endpoint* endpoint, const detail::Node* node)
    : plan_(std::move(plan)),
      instance_(instance),
      endpoint_(endpoint),
      node_(node),
      in_flight_(true) {
  node_->take_off(this->plan().health());
}

Pick::Pick(const Pick& other)
    : plan_(other.plan_),
      instance_(other.instance_),
      endpoint_(other.endpoint_),
      node_(other.node_) {}

Pick& Pick::operator=(const Pick& other) {
  if (this != &other) *this = Pick(other);
  return *this;
}

Pick::Pick(Pick&& other) noexcept
    : plan_(std::move(other.plan_)),
      instance_(std::exchange(other.instance_, nullptr)),
      endpoint_(std::exchange(other.endpoint_, nullptr)),
      node_(std::exchange(other.node_, nullptr)),
      in_flight_(std::exchange(other.in_flight_, false)) {}

Pick& Pick::operator=(Pick&& other) noexcept {
  if (this != &other) {
    land();
    plan_ = std::move(other.plan_);
    instance_ = std::exchange(other.instance_, nullptr);
    endpoint_ = std::exchange(other.endpoint_, nullptr);
    node_ = std::exchange(other.node_, nullptr);
    in_flight_ = std::exchange(other.in_flight_, false);
  }
  return *this;
}

Pick::~Pick() { land(); }

const detail::Plan& Pick::plan() const { return static_cast<const detail::Plan&>(*plan_); }

void Pick::land() const {
  if (std::exchange(in_flight_, false)) node_->land(plan().health());
}

InstanceSetPtr Pick::set() const { return plan_ ? plan().set() : nullptr; }

void Pick::report(Outcome outcome, std::chrono::nanoseconds latency) const {
  // Copies are not calls, and reported picks have ended.
  if (!in_flight_) return;
  land();
  plan().report(*node_, outcome, latency.count());
}

}  // namespace lookout::registry
