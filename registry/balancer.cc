#include "lookout/registry/balancer.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "registry/atomic_ref.h"

namespace lookout::registry {
namespace {

using detail::AtomicRef;

constexpr std::uint32_t kMaxWeight = 65535;

/// How a policy goes through one set. What counts picks is shared with the plan before, so that a
/// change does not begin anew.
class Plan : public detail::Counted {
 public:
  explicit Plan(InstanceSetPtr set) : set_(std::move(set)) {}
  virtual ~Plan() = default;
  const InstanceSetPtr& set() const { return set_; }
  virtual const ServiceInstance* pick() const = 0;

 private:
  const InstanceSetPtr set_;
};

using Instances = std::vector<const ServiceInstance*>;

Instances ready(const InstanceSet& set) {
  Instances out;
  for (const auto& instance : set) {
    if (instance.ready) out.push_back(&instance);
  }
  return out;
}

/// A counter that threads share.
using Counter = std::shared_ptr<std::atomic<std::uint64_t>>;

std::uint64_t advance(const Counter& counter) {
  return counter->fetch_add(1, std::memory_order_relaxed);
}

class RoundRobinPlan : public Plan {
 public:
  RoundRobinPlan(InstanceSetPtr set, Counter counter)
      : Plan(std::move(set)), instances_(ready(*this->set())), counter_(std::move(counter)) {}

  const ServiceInstance* pick() const override {
    return instances_.empty() ? nullptr : instances_[advance(counter_) % instances_.size()];
  }

 private:
  const Instances instances_;
  const Counter counter_;
};

class WeightedPlan : public Plan {
 public:
  WeightedPlan(InstanceSetPtr set, Counter counter, const BalancerPolicy& policy)
      : Plan(std::move(set)), counter_(std::move(counter)) {
    for (const ServiceInstance* instance : ready(*this->set())) {
      const std::uint32_t weight = weight_of(*instance, policy);
      if (weight == 0 || total_ > std::numeric_limits<std::uint32_t>::max() - weight) continue;
      total_ += weight;
      instances_.push_back(instance);
      ends_.push_back(total_);
    }
    // Steps of about the golden section spread evenly; without a common divisor with the total they
    // come to every place before they come to one again.
    step_ = std::max<std::uint64_t>(1, total_ * 618 / 1000);
    while (total_ > 0 && std::gcd(step_, total_) != 1) ++step_;
  }

  const ServiceInstance* pick() const override {
    if (instances_.empty()) return nullptr;
    const std::uint64_t place = advance(counter_) % total_ * step_ % total_;
    const auto at = std::ranges::upper_bound(ends_, place);
    return instances_[static_cast<std::size_t>(at - ends_.begin())];
  }

 private:
  static std::uint32_t weight_of(const ServiceInstance& instance, const BalancerPolicy& policy) {
    const auto it = instance.metadata.find(policy.weight_key);
    std::uint32_t weight = policy.default_weight;
    if (it != instance.metadata.end()) {
      const char* const end = it->second.data() + it->second.size();
      std::uint32_t number = 0;
      const auto [rest, error] = std::from_chars(it->second.data(), end, number);
      if (error == std::errc{} && rest == end) weight = number;
    }
    return std::min(weight, kMaxWeight);
  }

  Instances instances_;
  std::vector<std::uint64_t> ends_;  // of each instance's places among all
  std::uint64_t total_ = 0;
  std::uint64_t step_ = 1;
  const Counter counter_;
};

/// What is remembered of a zone, from one set to the next.
struct ZoneUse {
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> picks{0};
};
using ZoneUses = std::map<std::string, std::shared_ptr<ZoneUse>>;

class ZonePlan : public Plan {
 public:
  ZonePlan(InstanceSetPtr set, Counter clock, ZoneUses& uses, const BalancerPolicy& policy)
      : Plan(std::move(set)), clock_(std::move(clock)) {
    std::map<std::string, Instances> by_zone;
    for (const ServiceInstance* instance : ready(*this->set())) {
      by_zone[instance->zone].push_back(instance);
    }
    if (const auto local = by_zone.find(policy.local_zone);
        !policy.local_zone.empty() && local != by_zone.end()) {
      by_zone = {{local->first, local->second}};
    }
    for (auto& [name, instances] : by_zone) {
      auto& use = uses[name];
      if (!use) use = std::make_shared<ZoneUse>();
      zones_.push_back({std::move(instances), use});
    }
  }

  const ServiceInstance* pick() const override {
    if (zones_.empty()) return nullptr;
    const std::uint64_t now = advance(clock_) + 1;
    const Zone* zone = nullptr;
    for (;;) {
      std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
      for (const Zone& candidate : zones_) {
        const auto last = candidate.use->last.load(std::memory_order_relaxed);
        if (last < oldest) {
          oldest = last;
          zone = &candidate;
        }
      }
      // Whoever comes second looks again: by then another zone is the oldest.
      if (zone->use->last.compare_exchange_weak(oldest, now, std::memory_order_relaxed)) break;
    }
    const auto pick = zone->use->picks.fetch_add(1, std::memory_order_relaxed);
    return zone->instances[pick % zone->instances.size()];
  }

 private:
  struct Zone {
    Instances instances;
    std::shared_ptr<ZoneUse> use;
  };
  std::vector<Zone> zones_;
  const Counter clock_;
};

}  // namespace

// ------------------------------------------------------------------------------------ Feed

struct Feed::State {
  explicit State(InstanceSetPtr first) : current(std::move(first)) {}

  AtomicRef<InstanceSet> current;
  Subscription subscription;  // ends first
};

Feed::Feed(Discovery& discovery, const std::string& service)
    : state_(std::make_unique<State>(discovery.latest(service))) {
  state_->subscription = discovery.subscribe(
      service, [state = state_.get()](const InstanceSetPtr& set) { state->current.store(set); });
}
Feed::~Feed() = default;
Feed::Feed(Feed&&) noexcept = default;
Feed& Feed::operator=(Feed&&) noexcept = default;

InstanceSetPtr Feed::load() const { return state_->current.load(); }

// -------------------------------------------------------------------------------- Balancer

struct Balancer::State {
  State(const InstanceSetPtr& first, BalancerPolicy chosen)
      : policy(std::move(chosen)), current(plan(first)) {}

  boost::intrusive_ptr<const Plan> plan(const InstanceSetPtr& set) {
    switch (policy.kind) {
      case BalancerPolicy::Kind::kWeighted:
        return new WeightedPlan(set, counter, policy);
      case BalancerPolicy::Kind::kZones:
        // A zone that has gone begins anew when it comes back.
        std::erase_if(uses, [&](const auto& use) {
          return std::ranges::none_of(*set, [&](const auto& i) { return i.zone == use.first; });
        });
        return new ZonePlan(set, counter, uses, policy);
      case BalancerPolicy::Kind::kRoundRobin:
        break;
    }
    return new RoundRobinPlan(set, counter);
  }

  const BalancerPolicy policy;
  const Counter counter = std::make_shared<std::atomic<std::uint64_t>>(0);
  ZoneUses uses;  // of whoever makes the plans: one callback at a time
  AtomicRef<Plan> current;
  Subscription subscription;  // ends first
};

Balancer::Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy)
    : state_(std::make_unique<State>(discovery.latest(service), std::move(policy))) {
  state_->subscription =
      discovery.subscribe(service, [state = state_.get()](const InstanceSetPtr& set) {
        state->current.store(state->plan(set));
      });
}
Balancer::~Balancer() = default;
Balancer::Balancer(Balancer&&) noexcept = default;
Balancer& Balancer::operator=(Balancer&&) noexcept = default;

Pick Balancer::pick() const {
  const auto plan = state_->current.load();
  const ServiceInstance* instance = plan->pick();
  return instance == nullptr ? Pick() : Pick(plan->set(), instance);
}

InstanceSetPtr Balancer::load() const { return state_->current.load()->set(); }

}  // namespace lookout::registry
