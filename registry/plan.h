// Plan: a balancer's state for one set.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lookout/registry/counted.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/pick.h"
#include "registry/chooser.h"
#include "registry/node.h"

namespace lookout::registry::detail {

using NodePtr = std::shared_ptr<const Node>;
using PlanPtr = boost::intrusive_ptr<const Plan>;

/// Immutable except for the state of its nodes. Picks hold a reference.
class Plan : public PlanBase {
 public:
  /// `newest`: another set, if the plan expires because that one has no usable instance.
  Plan(InstanceSetPtr set, InstanceSetPtr newest, std::vector<NodePtr> nodes,
       std::unique_ptr<const Chooser> chooser, std::shared_ptr<Health> health, bool needs_time,
       Nanos expires)
      : set_(std::move(set)),
        newest_(std::move(newest)),
        nodes_(std::move(nodes)),
        chooser_(std::move(chooser)),
        health_(std::move(health)),
        needs_time_(needs_time),
        expires_(expires) {}

  const InstanceSetPtr& set() const { return set_; }
  const std::vector<NodePtr>& nodes() const { return nodes_; }
  Health& health() const { return *health_; }
  /// Afterwards, nothing is picked.
  bool has_expired() const { return expires_ != 0 && health_->now() >= expires_; }
  const InstanceSetPtr& set_now() const { return has_expired() ? newest_ : set_; }

  static Pick pick(PlanPtr self, const PickOptions& options);
  void report(const Node& node, Outcome outcome, Nanos latency) const;

 private:
  void look_at_success_rates(Nanos now) const;
  /// Call with Health::ejecting held.
  void eject(const Node& node, Nanos now) const;

  const InstanceSetPtr set_;
  const InstanceSetPtr newest_;
  const std::vector<NodePtr> nodes_;  // of the candidates
  const std::unique_ptr<const Chooser> chooser_;
  const std::shared_ptr<Health> health_;
  const bool needs_time_;
  const Nanos expires_;  // 0: never
};

/// Creates the plans of a balancer, and passes the nodes' state from one to the next. Not
/// thread-safe.
class Planner {
 public:
  Planner(BalancerPolicy policy, std::uint64_t seed);

  PlanPtr plan(const InstanceSetPtr& set);
  const std::shared_ptr<Health>& health() const { return health_; }

 private:
  std::vector<const ServiceInstance*> usable(const InstanceSet& set) const;
  /// The existing node, or a new one.
  NodePtr node(const ServiceInstance& instance);
  std::uint32_t weight_of(const ServiceInstance& instance) const;
  /// `instances`: the usable ones of the set.
  PlanPtr make(const InstanceSetPtr& set, const InstanceSetPtr& newest,
               const std::vector<const ServiceInstance*>& instances, Nanos expires);

  const BalancerPolicy policy_;
  const std::shared_ptr<Health> health_;
  Memory memory_;
  std::map<std::string, NodePtr> nodes_;
  std::map<std::string, std::shared_ptr<ZoneHealth>> zones_;
  InstanceSetPtr last_;   // the last set with a usable instance
  Nanos last_until_ = 0;  // when last_ expires; 0: it is the newest set
  bool started_ = false;
};

}  // namespace lookout::registry::detail
