// Choosing an instance for each request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// The current set of a service for those who need it all the time: load() takes no lock and
/// allocates nothing, however many threads call it and whatever changes meanwhile.
///
/// Must not outlive the Discovery's loop; a closed registry leaves it with the last set.
class Feed {
 public:
  /// Throws as Discovery::subscribe().
  Feed(Discovery& discovery, const std::string& service);
  ~Feed();
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;

  /// Never null; empty until there is data. Begins with what the Discovery knows.
  InstanceSetPtr load() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An instance that was chosen. Keeps the set that it is of.
class Pick {
 public:
  Pick() = default;
  Pick(InstanceSetPtr set, const ServiceInstance* instance)
      : set_(std::move(set)), instance_(instance) {}

  /// False: there is no instance to choose.
  explicit operator bool() const { return instance_ != nullptr; }
  const ServiceInstance& operator*() const { return *instance_; }
  const ServiceInstance* operator->() const { return instance_; }
  const InstanceSetPtr& set() const { return set_; }

 private:
  InstanceSetPtr set_;
  const ServiceInstance* instance_ = nullptr;
};

/// How a Balancer chooses.
struct BalancerPolicy {
  enum class Kind {
    /// One after the other.
    kRoundRobin,
    /// In proportion to the weights, spread evenly: of as many picks as the weights are together,
    /// each instance gets exactly its weight.
    kWeighted,
    /// The zone that has not been used for longest, and in it one after the other: zones get equal
    /// shares, however many instances they have. With a `local_zone`, that zone alone as long as it
    /// has an instance.
    kZones
  };
  Kind kind = Kind::kRoundRobin;
  /// kWeighted: the metadata key of the weight, a whole number up to 65535. Instances without one,
  /// or with one that cannot be read, weigh `default_weight` (100, as in kratos and dubbo); those
  /// that weigh 0 are not chosen.
  std::string weight_key = "weight";
  std::uint32_t default_weight = 100;
  /// kZones: the zone that is preferred.
  std::string local_zone = {};
  /// Where it begins. By default anywhere, so that programs that pick only once do not all pick the
  /// same instance; tests give a number.
  std::optional<std::uint64_t> seed = {};

  static BalancerPolicy round_robin() { return {}; }
  static BalancerPolicy weighted(std::string key = "weight", std::uint32_t default_weight = 100) {
    return {
        .kind = Kind::kWeighted, .weight_key = std::move(key), .default_weight = default_weight};
  }
  static BalancerPolicy zones(std::string local_zone = {}) {
    return {.kind = Kind::kZones, .local_zone = std::move(local_zone)};
  }
};

/// Chooses among the instances of a service that are ready and have an endpoint. pick() takes no
/// lock and allocates nothing; what a policy needs is worked out when the set changes.
///
///     registry::Balancer balancer(registry, "web", registry::BalancerPolicy::zones("sh001"));
///     if (const auto pick = balancer.pick()) call(pick->endpoints.front());
class Balancer {
 public:
  Balancer(Discovery& discovery, const std::string& service, BalancerPolicy policy = {});
  ~Balancer();
  Balancer(Balancer&&) noexcept;
  Balancer& operator=(Balancer&&) noexcept;

  /// From any thread. Threads that share a balancer share its order: what one thread picks next is
  /// not what comes after its last pick.
  Pick pick() const;
  /// One that is none of `tried`, whatever the set has become since (instances are told apart by
  /// their keys); nothing if there is no other. For calls that ask another instance when one has
  /// failed. With a local zone of which all have been tried, one of another zone.
  Pick pick(std::span<const Pick> tried) const;
  /// The set that picks are made of.
  InstanceSetPtr load() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lookout::registry
