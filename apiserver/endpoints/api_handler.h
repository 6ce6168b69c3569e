// The whole API: who asks, what for, and the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apiserver/auth/authenticator.h"
#include "apiserver/endpoints/health.h"
#include "apiserver/endpoints/resource_handler.h"
#include "apiserver/http/connection.h"
#include "apiserver/openapi/documents.h"
#include "apiserver/stats.h"

namespace lookout::apiserver::endpoints {

/// Answers every request. Safe to use from many threads.
class ApiHandler {
 public:
  /// All must outlive it.
  ApiHandler(registry::ResourceRegistry& resources, const ResourceHandler& handler,
             const auth::Authenticator& authenticator, const Health& health,
             std::size_t max_body_bytes, std::shared_ptr<Counters> counters)
      : resources_(resources),
        handler_(handler),
        authenticator_(authenticator),
        health_(health),
        max_body_bytes_(max_body_bytes),
        counters_(std::move(counters)) {}

  /// To be called before the first request.
  void set_server_address(std::string address) { server_address_ = std::move(address); }

  http::Awaitable<http::Response> handle(http::Request request) const;

  /// The answer to what is no request.
  http::Response broken_request(int status, const std::string& message) const;

 private:
  http::Awaitable<http::Response> answer(const http::Request& request,
                                         const RequestInfo& info) const;
  /// In the text format of Prometheus.
  http::Awaitable<http::Response> metrics() const;
  http::Response answer_other(const http::Request& request) const;

  registry::ResourceRegistry& resources_;
  const ResourceHandler& handler_;
  const auth::Authenticator& authenticator_;
  const Health& health_;
  const std::size_t max_body_bytes_;
  const std::shared_ptr<Counters> counters_;
  std::string server_address_;
  const std::unique_ptr<openapi::DocumentCache> documents_ =
      std::make_unique<openapi::DocumentCache>();
};

}  // namespace lookout::apiserver::endpoints
