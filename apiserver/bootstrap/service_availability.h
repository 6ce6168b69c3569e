// ServiceAvailability: the condition Available of APIServices.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "apiserver/controllers/controllers.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/webhooks/webhook_client.h"

namespace lookout::apiserver::bootstrap {

/// Sets the condition Available of APIServices (k8s.io/kube-aggregator/pkg/controllers/status). An
/// APIService of another server is available if its service has endpoints and serves the group and
/// version. This server does not pass requests on to it.
///
/// All functions run on the controllers' thread.
class ServiceAvailability {
 public:
  /// `context`: see controllers::Context. `client` must outlive it.
  ServiceAvailability(const controllers::Context& context, webhooks::WebhookClient& client);

  /// Check the APIServices after each change of one of them, of their services, and of the services'
  /// endpoints. The first function also checks at regular intervals. Return when the storage's watch
  /// ends.
  Awaitable<void> follow_api_services();
  Awaitable<void> follow_services();
  Awaitable<void> follow_endpoints();

 private:
  using Clock = std::chrono::steady_clock;

  Awaitable<void> follow(resources::ServedResourcePtr resource);
  /// Whether an APIService names the service, or the service of these endpoints.
  bool is_named(const api::Object& object) const;
  Awaitable<void> settle();
  Awaitable<void> check_all();
  Awaitable<void> check(api::Object api_service);
  Awaitable<resources::Condition> condition_of(api::Object api_service);
  /// The condition of an APIService whose service has no cluster IP, or no endpoints; one without a
  /// reason if that is not so.
  Awaitable<resources::Condition> endpoints_of(api::Object service, std::int64_t port);

  const controllers::Context context_;
  webhooks::WebhookClient& client_;
  const resources::ServedResourcePtr api_services_;
  const resources::ServedResourcePtr services_;
  const resources::ServedResourcePtr slices_;
  /// The namespaces and names of the services of other servers.
  std::set<std::pair<std::string, std::string>, std::less<>> named_;
  /// When to check again.
  Clock::time_point due_ = Clock::time_point::max();
  std::chrono::milliseconds pause_{0};
  /// A check must be repeated soon: a service did not answer, or a condition could not be written.
  bool failed_ = false;
  bool busy_ = false;
  bool again_ = false;
};

}  // namespace lookout::apiserver::bootstrap
