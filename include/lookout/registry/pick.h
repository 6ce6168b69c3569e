// Pick: an instance that a balancer has chosen.
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

/// An instance that a balancer has chosen. Keeps its set alive.
///
/// A pick counts as a call in flight on its instance until it is reported or destroyed, which
/// load-based policies take into account. Copies do not count; moving a pick moves its count. For
/// one thread at a time.
class Pick {
 public:
  Pick() = default;
  Pick(const Pick& other);
  Pick& operator=(const Pick& other);
  Pick(Pick&& other) noexcept;
  Pick& operator=(Pick&& other) noexcept;
  ~Pick();

  /// False if there is no instance.
  explicit operator bool() const { return instance_ != nullptr; }
  const ServiceInstance& operator*() const LOOKOUT_LIFETIME_BOUND { return *instance_; }
  const ServiceInstance* operator->() const LOOKOUT_LIFETIME_BOUND { return instance_; }
  /// The first endpoint with the requested scheme. Requires an instance.
  const Endpoint& endpoint() const LOOKOUT_LIFETIME_BOUND { return *endpoint_; }
  /// Null if there is no instance.
  InstanceSetPtr set() const;

  /// Reports the result and the duration of the call, from which later picks learn. The call is
  /// then no longer in flight. Only the first report of a pick counts; reports of copies are ignored.
  /// Takes no lock unless it ejects an instance.
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

/// The requirements for a pick.
struct PickOptions {
  /// Excludes these instances, even if the set has changed since (keys identify instances).
  std::span<const Pick> exclude = {};
  /// Requires an endpoint with this scheme; empty: any.
  std::string_view scheme = {};
  /// For the consistent hash policy: hash_of() of the request's identity. Empty: a different number
  /// for each pick.
  std::optional<std::uint64_t> hash = {};
};

}  // namespace lookout::registry
