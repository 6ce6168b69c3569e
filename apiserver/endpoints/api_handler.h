// ApiHandler: handles all requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/audit/audit_log.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/endpoints/health.h"
#include "apiserver/endpoints/in_flight.h"
#include "apiserver/endpoints/resource_handler.h"
#include "apiserver/openapi/documents.h"
#include "apiserver/stats.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/attributes.h"
#include "lookout/base/http/connection.h"

namespace lookout::apiserver::endpoints {

/// Limits and records of requests.
struct RequestPolicy {
  std::size_t max_body_bytes = 0;
  LOOKOUT_OPTION std::vector<std::string> allowed_hosts = {};
  /// The maximum number of concurrent requests of a user, until their responses are sent; 0: no limit.
  std::size_t max_requests_per_user = 0;
  /// The same for one address.
  std::size_t max_requests_per_address = 0;
  /// Null: there is none. It must outlive the handler.
  audit::AuditLog* audit_log = nullptr;
  /// See ServerOptions.
  LOOKOUT_OPTION RequestFunction before_request = nullptr;
  LOOKOUT_OPTION RequestFunction after_request = nullptr;
};

/// Handles every request. Thread-safe.
class ApiHandler {
 public:
  /// All must outlive it.
  ApiHandler(resources::ResourceRegistry& resources, const ResourceHandler& handler,
             const auth::Authenticator& authenticator, const auth::Authorizer& authorizer,
             const Health& health, RequestPolicy policy, std::shared_ptr<Counters> counters)
      : resources_(resources),
        handler_(handler),
        authenticator_(authenticator),
        authorizer_(authorizer),
        health_(health),
        policy_(std::move(policy)),
        counters_(std::move(counters)),
        impersonator_(std::make_unique<auth::Impersonator>(authorizer)) {}

  /// Call it before the first request, with "https" or "http", and an address with a port.
  void set_server_address(std::string scheme, std::string address) {
    server_url_ = std::move(scheme) + "://" + address;
    server_address_ = std::move(address);
  }

  /// The handler must outlive the response.
  Awaitable<http::Response> handle(http::Request request) const;

  /// The response to a request whose body need not be read; nullopt if it must be handled. Uses only
  /// the request's head.
  std::optional<http::Response> refuse(const http::Request& head) const;
  /// Updates the metrics that need a request to the storage. Call it periodically.
  Awaitable<void> count_objects() const;

  /// The response to a malformed request.
  http::Response broken_request(int status, const std::string& message) const;

 private:
  /// Throws api::StatusError (401) for invalid credentials, and 403 or 415 for a web page's request.
  auth::Identity identify(const http::Request& request) const;
  /// The user of a request, if known.
  struct Caller {
    std::optional<auth::User> user = {};
    std::optional<auth::Impersonated> impersonated = {};
    /// The authorizer's decision.
    auth::Decision decision = {};

    const auth::User& acting() const { return impersonated ? impersonated->user : *user; }
  };
  /// When a request was received, and its Audit-Id.
  struct Receipt {
    api::Time time;
    std::string id;
  };
  /// Sets the rest of the caller. Throws api::StatusError (403) if the request is not allowed.
  void authorize(const http::Request& request, const RequestInfo& info, Caller& caller) const;
  void log_request(const http::Request& request, const RequestInfo& info, const Caller& caller,
                   const Receipt& receipt, int code) const;
  /// The response to an exception; call it in the catch block.
  http::Response failure(const http::Request& request) const;
  Awaitable<http::Response> answer(const http::Request& request, const RequestInfo& info,
                                   const auth::User& user,
                                   std::vector<std::string>& warnings) const;
  /// In Prometheus' text format. Needs no storage, so it works while the storage is unavailable.
  http::Response metrics() const;
  http::Response answer_other(const http::Request& request) const;

  resources::ResourceRegistry& resources_;
  const ResourceHandler& handler_;
  const auth::Authenticator& authenticator_;
  const auth::Authorizer& authorizer_;
  const Health& health_;
  const RequestPolicy policy_;
  const std::shared_ptr<Counters> counters_;
  const std::unique_ptr<auth::Impersonator> impersonator_;
  std::string server_address_;
  std::string server_url_;
  const std::unique_ptr<InFlight> users_in_flight_ = std::make_unique<InFlight>();
  const std::unique_ptr<InFlight> addresses_in_flight_ = std::make_unique<InFlight>();
  const std::unique_ptr<openapi::DocumentCache> documents_ =
      std::make_unique<openapi::DocumentCache>();
};

}  // namespace lookout::apiserver::endpoints
