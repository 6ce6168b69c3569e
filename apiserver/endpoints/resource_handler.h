// ResourceHandler: handles requests for resources.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/admission/default_admission.h"
#include "apiserver/admission/user_admission.h"
#include "apiserver/admission/webhook_admission.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/authorizer.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/request_info.h"
#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/store.h"
#include "apiserver/stats.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

struct WatchLimits {
  /// A watch without timeoutSeconds lasts between this long and twice as long.
  std::chrono::milliseconds min_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds bookmark_interval{std::chrono::minutes(1)};
};

/// Notifies other parts of the server of a write, before the response is sent.
struct Consequences {
  /// An object was created, changed or, if `gone`, deleted.
  std::function<Awaitable<void>(const resources::ServedResourcePtr& resource,
                                const api::Object& object, bool gone)>
      written = nullptr;
};

/// Serves the verbs of all resources. Throws api::StatusError. Safe to use from many threads.
class ResourceHandler {
 public:
  /// All must outlive it.
  ResourceHandler(resources::ResourceRegistry& resources, const resources::Store& store,
                  const admission::Webhooks& webhooks, const auth::Authenticator& authenticator,
                  const auth::Authorizer& authorizer, Consequences consequences, WatchLimits limits,
                  bool managed_fields, std::shared_ptr<Counters> counters)
      : resources_(resources),
        store_(store),
        webhooks_(webhooks),
        authenticator_(authenticator),
        authorizer_(authorizer),
        consequences_(std::move(consequences)),
        limits_(limits),
        managed_fields_(managed_fields),
        counters_(std::move(counters)) {}

  /// Adds the warnings for the client to `warnings`, whether the request succeeds or fails.
  Awaitable<http::Response> handle(const http::Request& request, const RequestInfo& info,
                                   const auth::User& user,
                                   std::vector<std::string>& warnings) const;

 private:
  struct Call;

  /// The resource, if the path and the method are valid for it.
  resources::Target route(const http::Request& request, const RequestInfo& info) const;
  /// Like apiextensions-apiserver, which has its own routing: supports HEAD, and names missing objects.
  /// `target` has the resource.
  resources::Target route_custom(const http::Request& request, const RequestInfo& info,
                                 resources::Target target) const;
  Awaitable<http::Response> get(const Call& call) const;
  Awaitable<http::Response> list(const Call& call) const;
  Awaitable<http::Response> watch(const Call& call) const;
  Awaitable<http::Response> create(const Call& call) const;
  /// The review with managedFields for the fields that the client has set.
  api::Object owned_review(const Call& call, const api::Object& review) const;
  Awaitable<http::Response> create_subresource(const Call& call) const;
  Awaitable<http::Response> change(const Call& call) const;
  Awaitable<http::Response> remove(const Call& call) const;
  Awaitable<http::Response> remove_collection(const Call& call) const;
  /// Adds warnings, which clients show to their users.
  static void add_warnings(const std::vector<std::string>& warnings, const Call& call);
  /// The options of a deletion. Warns about its effect.
  static resources::DeleteOptions deletion_options(const Call& call);
  /// The object in the form that the client accepts.
  static http::Response respond(const Call& call, int code, const api::Object& object,
                                const OutputFormat& format);
  /// The admission webhooks for the request.
  admission::WebhookAdmission admission_of(const Call& call,
                                           admission::RequestOptions options) const;
  /// The built-in plugins around `next`, which must outlive it. `wanted` is the object of a creation.
  admission::DefaultAdmission default_admission_of(const Call& call, resources::Admission& next,
                                                   api::Object wanted,
                                                   admission::PodSecurity security) const;
  /// The admission that depends on the user, around `next`, which must outlive it.
  admission::UserAdmission user_admission_of(const Call& call, resources::Admission& next) const;
  /// Runs the work that must precede the response to a write; failures are only logged. Returns the
  /// object for the response.
  Awaitable<api::Object> after_write(const Call& call, api::Object object, bool gone) const;
  Awaitable<void> note(const Call& call, api::Object object, bool gone) const;
  /// Puts changed definitions and webhook configurations into effect.
  Awaitable<void> refresh_registries(const Call& call) const;

  resources::ResourceRegistry& resources_;
  const resources::Store& store_;
  const admission::Webhooks& webhooks_;
  const auth::Authenticator& authenticator_;
  const auth::Authorizer& authorizer_;
  const Consequences consequences_;
  const WatchLimits limits_;
  const bool managed_fields_;
  const std::shared_ptr<Counters> counters_;
};

}  // namespace lookout::apiserver::endpoints
