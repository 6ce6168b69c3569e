#include "lookout/registry/balancer.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "registry/atomic_ref.h"

namespace lookout::registry {
namespace {

using detail::AtomicRef;

constexpr std::uint32_t kMaxWeight = 65535;

using Tried = std::span<const Pick>;

bool was_tried(const ServiceInstance& instance, Tried tried) {
  return std::ranges::any_of(
      tried, [&](const Pick& pick) { return pick && pick->key() == instance.key(); });
}

/// Spreads numbers that are close to each other (the finalizer of splitmix64).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// How a policy goes through one set. What counts picks is shared with the plan before, so that a
/// change does not begin anew.
class Plan : public detail::Counted {
 public:
  explicit Plan(InstanceSetPtr set) : set_(std::move(set)) {}
  virtual ~Plan() = default;
  const InstanceSetPtr& set() const { return set_; }
  /// Null if there is none that has not been tried.
  virtual const ServiceInstance* pick(Tried tried) const = 0;

 private:
  const InstanceSetPtr set_;
};

using Instances = std::vector<const ServiceInstance*>;

/// Those that can be called.
Instances usable(const InstanceSet& set) {
  Instances out;
  for (const auto& instance : set) {
    if (instance.ready && !instance.endpoints.empty()) out.push_back(&instance);
  }
  return out;
}

/// The next from the place `first` on that has not been tried.
const ServiceInstance* next_of(const Instances& instances, std::uint64_t first, Tried tried) {
  if (instances.empty()) return nullptr;
  // The one after an instance that fails must not get all of its calls.
  if (!tried.empty()) first = mixed(first);
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const ServiceInstance* instance = instances[(first % instances.size() + i) % instances.size()];
    if (!was_tried(*instance, tried)) return instance;
  }
  return nullptr;
}

/// A counter that threads share.
using Counter = std::shared_ptr<std::atomic<std::uint64_t>>;

std::uint64_t advance(const Counter& counter) {
  return counter->fetch_add(1, std::memory_order_relaxed);
}

class RoundRobinPlan : public Plan {
 public:
  RoundRobinPlan(InstanceSetPtr set, Counter counter)
      : Plan(std::move(set)), instances_(usable(*this->set())), counter_(std::move(counter)) {}

  const ServiceInstance* pick(Tried tried) const override {
    return next_of(instances_, advance(counter_), tried);
  }

 private:
  const Instances instances_;
  const Counter counter_;
};

class WeightedPlan : public Plan {
 public:
  WeightedPlan(InstanceSetPtr set, Counter counter, const BalancerPolicy& policy)
      : Plan(std::move(set)), counter_(std::move(counter)) {
    for (const ServiceInstance* instance : usable(*this->set())) {
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

  const ServiceInstance* pick(Tried tried) const override {
    if (instances_.empty()) return nullptr;
    const std::uint64_t number = advance(counter_);
    if (!tried.empty()) return pick_other(mixed(number), tried);
    const std::uint64_t place = number % total_ * step_ % total_;
    const auto at = std::ranges::upper_bound(ends_, place);
    return instances_[static_cast<std::size_t>(at - ends_.begin())];
  }

 private:
  const ServiceInstance* pick_other(std::uint64_t number, Tried tried) const {
    std::uint64_t left = 0;
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      if (!was_tried(*instances_[i], tried)) left += weight(i);
    }
    if (left == 0) return nullptr;
    std::uint64_t place = number % left;
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      if (was_tried(*instances_[i], tried)) continue;
      if (place < weight(i)) return instances_[i];
      place -= weight(i);
    }
    return nullptr;
  }
  std::uint64_t weight(std::size_t i) const { return ends_[i] - (i == 0 ? 0 : ends_[i - 1]); }

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

/// The use of a zone. It is carried over from one set to the next.
struct ZoneUse {
  explicit ZoneUse(std::uint64_t first) : picks(first) {}
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> picks;
};
using ZoneUses = std::map<std::string, std::shared_ptr<ZoneUse>>;

class ZonePlan : public Plan {
 public:
  ZonePlan(InstanceSetPtr set, Counter clock, ZoneUses& uses, const BalancerPolicy& policy,
           std::uint64_t seed)
      : Plan(std::move(set)), clock_(std::move(clock)) {
    std::map<std::string, Instances> by_zone;
    for (const ServiceInstance* instance : usable(*this->set())) {
      by_zone[instance->zone].push_back(instance);
    }
    const bool local_only = !policy.local_zone.empty() && by_zone.contains(policy.local_zone);
    for (auto& [name, instances] : by_zone) {
      auto& use = uses[name];
      if (!use) use = std::make_shared<ZoneUse>(mixed(seed + std::hash<std::string>()(name)));
      auto& zones = local_only && name != policy.local_zone ? elsewhere_ : zones_;
      zones.push_back({std::move(instances), use});
    }
    // Which comes first of those that have never been used.
    for (auto* zones : {&zones_, &elsewhere_}) {
      if (zones->empty()) continue;
      const auto first = static_cast<std::ptrdiff_t>(seed % zones->size());
      std::rotate(zones->begin(), zones->begin() + first, zones->end());
    }
  }

  const ServiceInstance* pick(Tried tried) const override {
    const ServiceInstance* instance = pick_of(zones_, tried);
    return instance == nullptr && !tried.empty() ? pick_of(elsewhere_, tried) : instance;
  }

 private:
  struct Zone {
    Instances instances;
    std::shared_ptr<ZoneUse> use;

    bool has_other(Tried tried) const {
      return tried.empty() || std::ranges::any_of(instances, [&](const ServiceInstance* instance) {
               return !was_tried(*instance, tried);
             });
    }
  };

  const ServiceInstance* pick_of(const std::vector<Zone>& zones, Tried tried) const {
    const std::uint64_t now = advance(clock_) + 1;
    const Zone* zone = nullptr;
    for (;;) {
      std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
      for (const Zone& candidate : zones) {
        const auto last = candidate.use->last.load(std::memory_order_relaxed);
        if (last < oldest && candidate.has_other(tried)) {
          oldest = last;
          zone = &candidate;
        }
      }
      if (zone == nullptr) return nullptr;
      // A thread that loses the race looks again: by then another zone is the oldest.
      if (zone->use->last.compare_exchange_weak(oldest, now, std::memory_order_relaxed)) break;
    }
    return next_of(zone->instances, zone->use->picks.fetch_add(1, std::memory_order_relaxed),
                   tried);
  }

  std::vector<Zone> zones_;
  std::vector<Zone> elsewhere_;  // for when all of the local zone have been tried
  const Counter clock_;
};

std::uint64_t random_seed() {
  std::random_device device;
  return std::uniform_int_distribution<std::uint64_t>()(device);
}

}  // namespace

// ------------------------------------------------------------------------------------ Feed

struct Feed::State {
  explicit State(InstanceSetPtr first) : current(std::move(first)) {}

  AtomicRef<InstanceSet> current;
  Subscription subscription;  // ends first
};

Feed::Feed(Discovery& discovery, const std::string& service)
    : state_(std::make_unique<State>(discovery.latest(service))) {
  state_->subscription = discovery.follow(
      service, [state = state_.get()](const InstanceSetPtr& set) { state->current.store(set); });
}
Feed::~Feed() = default;
Feed::Feed(Feed&&) noexcept = default;
Feed& Feed::operator=(Feed&&) noexcept = default;

InstanceSetPtr Feed::load() const { return state_->current.load(); }

// -------------------------------------------------------------------------------- Balancer

struct Balancer::State {
  State(const InstanceSetPtr& first, BalancerPolicy chosen)
      : policy(std::move(chosen)),
        seed(policy.seed ? *policy.seed : random_seed()),
        // (The clock of zones begins at 0 for all: it is compared with what is remembered of them.)
        counter(std::make_shared<std::atomic<std::uint64_t>>(
            policy.kind == BalancerPolicy::Kind::kZones ? 0 : seed)),
        current(plan(first)) {}

  boost::intrusive_ptr<const Plan> plan(const InstanceSetPtr& set) {
    switch (policy.kind) {
      case BalancerPolicy::Kind::kWeighted:
        return new WeightedPlan(set, counter, policy);
      case BalancerPolicy::Kind::kZones:
        // A zone that has gone begins anew when it comes back.
        std::erase_if(uses, [&](const auto& use) {
          return std::ranges::none_of(*set, [&](const auto& i) { return i.zone == use.first; });
        });
        return new ZonePlan(set, counter, uses, policy, seed);
      case BalancerPolicy::Kind::kRoundRobin:
        break;
    }
    return new RoundRobinPlan(set, counter);
  }

  const BalancerPolicy policy;
  const std::uint64_t seed;
  const Counter counter;
  ZoneUses uses;  // of whoever makes the plans: one callback at a time
  AtomicRef<Plan> current;
  Subscription subscription;  // ends first
};

Balancer::Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy)
    : state_(std::make_unique<State>(discovery.latest(service), std::move(policy))) {
  state_->subscription =
      discovery.follow(service, [state = state_.get()](const InstanceSetPtr& set) {
        state->current.store(state->plan(set));
      });
}
Balancer::~Balancer() = default;
Balancer::Balancer(Balancer&&) noexcept = default;
Balancer& Balancer::operator=(Balancer&&) noexcept = default;

Pick Balancer::pick() const { return pick({}); }

Pick Balancer::pick(std::span<const Pick> tried) const {
  const auto plan = state_->current.load();
  const ServiceInstance* instance = plan->pick(tried);
  return instance == nullptr ? Pick() : Pick(plan->set(), instance);
}

InstanceSetPtr Balancer::load() const { return state_->current.load()->set(); }

}  // namespace lookout::registry
