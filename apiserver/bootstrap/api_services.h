// ApiServices: the APIServices of the groups and versions that the server serves.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::bootstrap {

/// Manages the APIServices of built-in groups, which it creates at the start, and of custom
/// resources, which exist as long as their definitions
/// (k8s.io/kube-aggregator/pkg/controllers/autoregister). Ignores APIServices without the server's
/// label.
class ApiServices {
 public:
  /// `context`: see controllers::Context.
  explicit ApiServices(const controllers::Context& context);

  /// Creates or updates the APIServices of built-in groups.
  Awaitable<void> settle_builtin() const;
  /// Update the APIServices of custom resources after each change. Return when the storage's watch
  /// ends.
  Awaitable<void> follow_definitions() const { return follow(definitions_); }
  Awaitable<void> follow_services() const { return follow(services_); }

 private:
  Awaitable<void> follow(resources::ServedResourcePtr resource) const;
  Awaitable<void> settle_custom() const;
  /// Creates and updates the wanted APIServices, and deletes others with the label.
  Awaitable<void> settle(std::vector<api::Object> wanted, std::string_view label) const;

  const controllers::Context context_;
  const resources::ServedResourcePtr services_;
  const resources::ServedResourcePtr definitions_;
};

}  // namespace lookout::apiserver::bootstrap
