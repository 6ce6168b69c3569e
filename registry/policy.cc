#include "lookout/registry/policy.h"

#include <utility>

#include "registry/mixing.h"

namespace lookout::registry {
namespace {

template <class Change>
BalancerPolicy changed(const BalancerPolicy& policy, Change change) {
  BalancerPolicy out = policy;
  change(out);
  return out;
}

}  // namespace

BalancerPolicy BalancerPolicy::of(Kind kind) {
  BalancerPolicy out;
  out.kind = kind;
  return out;
}

BalancerPolicy BalancerPolicy::weighted(std::string key, std::uint32_t default_weight) {
  BalancerPolicy out = of(Kind::kWeighted);
  out.weight_key = std::move(key);
  out.default_weight = default_weight;
  return out;
}

BalancerPolicy BalancerPolicy::zones(std::string local_zone) {
  BalancerPolicy out = of(Kind::kZones);
  out.local_zone = std::move(local_zone);
  return out;
}

BalancerPolicy BalancerPolicy::eject_after(unsigned failures) const {
  return changed(*this, [&](auto& policy) { policy.outliers.consecutive_failures = failures; });
}

BalancerPolicy BalancerPolicy::eject_after(unsigned failures,
                                           std::chrono::milliseconds base) const {
  return changed(*this, [&](auto& policy) {
    policy.outliers.consecutive_failures = failures;
    policy.outliers.base_ejection = base;
  });
}

BalancerPolicy BalancerPolicy::never_eject() const {
  return changed(*this, [](auto& policy) {
    policy.outliers.consecutive_failures = 0;
    policy.outliers.success_rate_deviations = 0;
  });
}

BalancerPolicy BalancerPolicy::slow_start_for(std::chrono::milliseconds time) const {
  return changed(*this, [&](auto& policy) { policy.slow_start = time; });
}

BalancerPolicy BalancerPolicy::subset(std::size_t size, std::string of) const {
  return changed(*this, [&](auto& policy) {
    policy.subset_size = size;
    policy.subset_of = std::move(of);
  });
}

BalancerPolicy BalancerPolicy::only_version(std::string version) const {
  return where([version = std::move(version)](const ServiceInstance& instance) {
    return instance.version == version;
  });
}

BalancerPolicy BalancerPolicy::where(std::string key, std::string value) const {
  return where([key = std::move(key), value = std::move(value)](const ServiceInstance& instance) {
    const auto it = instance.metadata.find(key);
    return it != instance.metadata.end() && it->second == value;
  });
}

BalancerPolicy BalancerPolicy::where(std::function<bool(const ServiceInstance&)> accepts) const {
  return changed(*this, [&](auto& policy) {
    if (!policy.filter) {
      policy.filter = std::move(accepts);
      return;
    }
    policy.filter = [first = std::move(policy.filter),
                     second = std::move(accepts)](const ServiceInstance& instance) {
      return first(instance) && second(instance);
    };
  });
}

BalancerPolicy BalancerPolicy::canary_version(std::string version, double share) const {
  return changed(*this, [&](auto& policy) {
    policy.canary = [version = std::move(version)](const ServiceInstance& instance) {
      return instance.version == version;
    };
    policy.canary_share = share;
  });
}

BalancerPolicy BalancerPolicy::prefer_zone(std::string zone, double callers) const {
  return changed(*this, [&](auto& policy) {
    policy.preferred_zone = std::move(zone);
    policy.caller_share = callers;
  });
}

BalancerPolicy BalancerPolicy::keep_last_for(std::chrono::milliseconds time) const {
  return changed(*this, [&](auto& policy) { policy.keep_last = time; });
}

BalancerPolicy BalancerPolicy::cold_start_from(std::string file) const {
  return changed(*this, [&](auto& policy) { policy.cold_start_file = std::move(file); });
}

BalancerPolicy BalancerPolicy::with_seed(std::uint64_t number) const {
  return changed(*this, [&](auto& policy) { policy.seed = number; });
}

BalancerPolicy BalancerPolicy::with_clock(std::shared_ptr<Clock> other) const {
  return changed(*this, [&](auto& policy) { policy.clock = std::move(other); });
}

std::uint64_t hash_of(std::string_view text) { return detail::hashed(text); }

}  // namespace lookout::registry
