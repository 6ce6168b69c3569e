// RoleAggregation: fills in the rules of aggregated ClusterRoles.
#pragma once

#include <functional>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::controllers {

/// Sets the rules of ClusterRoles with an aggregationRule: those of the selected roles, sorted by
/// role name, without duplicates (k8s.io/kubernetes/pkg/controller/clusterroleaggregation).
/// Thread-safe.
class RoleAggregation {
 public:
  using Written = std::function<void(const api::Object& role)>;
  /// Calls `written` with each changed role. `context`: see controllers::Context.
  RoleAggregation(Context context, Written written);

  /// Updates all aggregated roles.
  Awaitable<void> settle() const;
  /// Calls settle() after each change of a role. Returns when the storage's watch ends.
  Awaitable<void> follow() const;

 private:
  /// Whether a role was out of date.
  Awaitable<bool> settle_once() const;

  const Context context_;
  const Written written_;
  const resources::ServedResourcePtr roles_;
};

}  // namespace lookout::apiserver::controllers
