// Requests about resources: from HTTP to the store and back.
#pragma once

#include <chrono>
#include <memory>

#include "apiserver/auth/authenticator.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/request_info.h"
#include "apiserver/http/message.h"
#include "apiserver/registry/resource_registry.h"
#include "apiserver/registry/store.h"
#include "apiserver/stats.h"

namespace lookout::apiserver::endpoints {

struct WatchLimits {
  /// A watch without timeoutSeconds lasts between this long and twice as long.
  std::chrono::milliseconds min_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds bookmark_interval{std::chrono::minutes(1)};
};

/// Serves the verbs of all resources. Throws api::StatusError. Safe to use from many threads.
class ResourceHandler {
 public:
  /// All must outlive it.
  ResourceHandler(registry::ResourceRegistry& resources, const registry::Store& store,
                  const auth::Authenticator& authenticator, WatchLimits limits,
                  std::shared_ptr<Counters> counters)
      : resources_(resources),
        store_(store),
        authenticator_(authenticator),
        limits_(limits),
        counters_(std::move(counters)) {}

  http::Awaitable<http::Response> handle(const http::Request& request, const RequestInfo& info,
                                         const auth::User& user) const;

 private:
  struct Call;

  /// The resource, provided that the path and the method make sense for it.
  registry::Target route(const http::Request& request, const RequestInfo& info) const;
  http::Awaitable<http::Response> get(const Call& call) const;
  http::Awaitable<http::Response> list(const Call& call) const;
  http::Awaitable<http::Response> watch(const Call& call) const;
  http::Awaitable<http::Response> create(const Call& call) const;
  http::Awaitable<http::Response> create_subresource(const Call& call) const;
  http::Awaitable<http::Response> change(const Call& call) const;
  http::Awaitable<http::Response> remove(const Call& call) const;
  http::Awaitable<http::Response> remove_collection(const Call& call) const;
  /// The object in the form that the client wants it in.
  static http::Response respond(const Call& call, int code, const api::Object& object,
                                const OutputFormat& format);
  /// Definitions that have changed are served from now on.
  http::Awaitable<void> after_write(const Call& call) const;

  registry::ResourceRegistry& resources_;
  const registry::Store& store_;
  const auth::Authenticator& authenticator_;
  const WatchLimits limits_;
  const std::shared_ptr<Counters> counters_;
};

}  // namespace lookout::apiserver::endpoints
