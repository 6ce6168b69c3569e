// An instance that was chosen.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lookout/base/attributes.h"
#include "lookout/registry/counted.h"
#include "lookout/registry/endpoint.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/policy.h"

namespace lookout::registry {

namespace detail {
class Plan;
class Node;

/// The state behind a pick.
class PlanBase : public Counted {
 public:
  virtual ~PlanBase() = default;
};
}  // namespace detail

/// An instance that was chosen. Keeps the set that it is of.
///
/// A pick counts as a call in flight on its instance as long as it lives, or until it is reported;
/// the policies that go by load look at that. A copy does not count; moving takes the count along.
/// For one thread at a time.
class Pick {
 public:
  Pick() = default;
  Pick(const Pick& other);
  Pick& operator=(const Pick& other);
  Pick(Pick&& other) noexcept;
  Pick& operator=(Pick&& other) noexcept;
  ~Pick();

  /// False: there is no instance to choose.
  explicit operator bool() const { return instance_ != nullptr; }
  const ServiceInstance& operator*() const LOOKOUT_LIFETIME_BOUND { return *instance_; }
  const ServiceInstance* operator->() const LOOKOUT_LIFETIME_BOUND { return instance_; }
  /// Where to call it: the first endpoint of the scheme that was asked for. Only if there is an
  /// instance.
  const Endpoint& endpoint() const LOOKOUT_LIFETIME_BOUND { return *endpoint_; }
  /// Null if there is no instance.
  InstanceSetPtr set() const;

  /// How the call on it ended, and how long it took: what later picks learn from. Ends its time in
  /// flight. The first report of a pick counts, as does one of a copy; takes no lock unless an
  /// instance is ejected.
  void report(Outcome outcome, std::chrono::nanoseconds latency) const;

 private:
  friend class detail::Plan;
  friend class Balancer;
  Pick(boost::intrusive_ptr<const detail::PlanBase> plan, const ServiceInstance* instance,
       const Endpoint* endpoint, const detail::Node* node);
  void land() const;

  const detail::Plan& plan() const;

  boost::intrusive_ptr<const detail::PlanBase> plan_;
  const ServiceInstance* instance_ = nullptr;
  const Endpoint* endpoint_ = nullptr;
  const detail::Node* node_ = nullptr;
  mutable bool in_flight_ = false;
};

/// The demands on a pick.
struct PickOptions {
  /// None of these, whatever the set has become since (instances are told apart by their keys).
  std::span<const Pick> exclude = {};
  /// With an endpoint of this scheme; empty: of any.
  std::string_view scheme = {};
  /// For the policy that hashes: hash_of() of what identifies the request. Without it, a number of
  /// its own for each pick.
  std::optional<std::uint64_t> hash = {};
};

}  // namespace lookout::registry
