// The whole API: who asks, what for, and the answer.
#pragma once

#include <functional>
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
#include "lookout/base/attributes.h"
#include "lookout/base/http/connection.h"

namespace lookout::apiserver::endpoints {

/// Limits and records of requests.
struct RequestPolicy {
  std::size_t max_body_bytes = 0;
  LOOKOUT_OPTION std::vector<std::string> allowed_hosts = {};
  /// How many requests of one user may run at the same time, until their answers have been sent; 0:
  /// any number.
  std::size_t max_requests_per_user = 0;
  /// And of one address.
  std::size_t max_requests_per_address = 0;
  /// Null: there is none. It must outlive the handler.
  audit::AuditLog* audit_log = nullptr;
};

/// Answers every request. Safe to use from many threads.
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

  /// To be called before the first request, with "https" or "http", and an address with a port.
  void set_server_address(std::string scheme, std::string address) {
    server_url_ = std::move(scheme) + "://" + address;
    server_address_ = std::move(address);
  }

  /// The handler must outlive the response.
  Awaitable<http::Response> handle(http::Request request) const;

  /// The answer to a request whose body need not be read; nothing if it is to be handled. Only the
  /// head is looked at.
  std::optional<http::Response> refuse(const http::Request& head) const;
  /// Asks the storage for the counts in the metrics that nobody knows without: to be called now and
  /// then.
  Awaitable<void> count_objects() const;

  /// The answer to what is no request.
  http::Response broken_request(int status, const std::string& message) const;

 private:
  /// Throws api::StatusError (401) for wrong credentials, and 403 or 415 for a web page's request.
  auth::Identity identify(const http::Request& request) const;
  /// The user of a request, as far as it is known.
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
  /// The answer to an exception; call it in the exception's handler.
  http::Response failure(const http::Request& request) const;
  Awaitable<http::Response> answer(const http::Request& request, const RequestInfo& info,
                                   const auth::User& user,
                                   std::vector<std::string>& warnings) const;
  /// In the text format of Prometheus. Nobody is asked for it: it is there when the storage is not.
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
