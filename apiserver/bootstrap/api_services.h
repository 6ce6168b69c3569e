// ApiServices: the APIService of each version of each group that the server serves itself.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::bootstrap {

/// Keeps the APIServices of built-in groups, which it creates at the start, and of custom resources,
/// which come and go with their definitions (k8s.io/kube-aggregator/pkg/controllers/autoregister).
/// Those with other labels than the server's are left alone.
class ApiServices {
 public:
  /// `context` as for controllers.
  explicit ApiServices(const controllers::Context& context);

  /// Creates those of built-in groups, and brings those up to date that have been there before.
  Awaitable<void> settle_builtin() const;
  /// Keeps those of custom resources after each change. Return when the storage's watch ends.
  Awaitable<void> follow_definitions() const { return follow(definitions_); }
  Awaitable<void> follow_services() const { return follow(services_); }

 private:
  Awaitable<void> follow(resources::ServedResourcePtr resource) const;
  Awaitable<void> settle_custom() const;
  /// Creates and changes what is wanted, and deletes what has the label and is not.
  Awaitable<void> settle(std::vector<api::Object> wanted, std::string_view label) const;
  resources::Target target_of(const api::Object& service) const;

  const controllers::Context context_;
  const resources::ServedResourcePtr services_;
  const resources::ServedResourcePtr definitions_;
};

}  // namespace lookout::apiserver::bootstrap
