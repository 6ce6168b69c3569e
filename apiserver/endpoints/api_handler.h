// The whole API: who asks, what for, and the answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "apiserver/endpoints/health.h"
#include "apiserver/endpoints/resource_handler.h"
#include "apiserver/openapi/documents.h"
#include "apiserver/stats.h"
#include "lookout/base/http/connection.h"

namespace lookout::apiserver::endpoints {

/// Answers every request. Safe to use from many threads.
class ApiHandler {
 public:
  /// All must outlive it.
  ApiHandler(resources::ResourceRegistry& resources, const ResourceHandler& handler,
             const auth::Authenticator& authenticator, const Health& health,
             std::size_t max_body_bytes, std::vector<std::string> allowed_hosts,
             std::shared_ptr<Counters> counters)
      : resources_(resources),
        handler_(handler),
        authenticator_(authenticator),
        health_(health),
        max_body_bytes_(max_body_bytes),
        allowed_hosts_(std::move(allowed_hosts)),
        counters_(std::move(counters)) {}

  /// To be called before the first request.
  void set_server_address(std::string address) { server_address_ = std::move(address); }

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
  /// Authenticates a request; throws api::StatusError if it is not allowed.
  auth::User admit(const http::Request& request, const RequestInfo& info) const;
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
  const Health& health_;
  const std::size_t max_body_bytes_;
  const std::vector<std::string> allowed_hosts_;
  const std::shared_ptr<Counters> counters_;
  std::string server_address_;
  const std::unique_ptr<openapi::DocumentCache> documents_ =
      std::make_unique<openapi::DocumentCache>();
};

}  // namespace lookout::apiserver::endpoints
