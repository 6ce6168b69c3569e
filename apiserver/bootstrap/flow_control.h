// FlowControl: the objects of API priority and fairness that every cluster has.
#pragma once

#include <vector>

#include "apiserver/controllers/controllers.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::bootstrap {

/// Manages the flow schemas and priority levels of flow_control.yaml
/// (k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer), and sets the status condition of all flow
/// schemas for missing priority levels. The server does not use them to classify requests.
class FlowControl {
 public:
  /// `context`: see controllers::Context.
  explicit FlowControl(const controllers::Context& context);

  /// Creates missing objects and updates the others.
  Awaitable<void> settle() const;
  /// Call settle() after changes, and once a minute. Return when the storage's watch ends.
  Awaitable<void> follow_schemas() const { return follow(schemas_); }
  Awaitable<void> follow_levels() const { return follow(levels_); }

 private:
  Awaitable<void> follow(resources::ServedResourcePtr resource) const;
  /// Creates and updates the objects of one resource, and deletes those that other server versions
  /// created.
  Awaitable<void> keep(resources::ServedResourcePtr resource) const;
  Awaitable<void> settle_statuses() const;
  Awaitable<void> apply_status(api::Object status) const;

  const controllers::Context context_;
  const resources::ServedResourcePtr schemas_;
  const resources::ServedResourcePtr levels_;
  /// The objects of flow_control.yaml, of both resources.
  const std::vector<api::Object> wanted_;
};

}  // namespace lookout::apiserver::bootstrap
