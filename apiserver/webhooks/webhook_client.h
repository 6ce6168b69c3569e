// WebhookClient: requests to admission and conversion webhooks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/error.h"
#include "lookout/base/event_loop.h"
#include "lookout/rest/detail/http_transport.h"

namespace lookout::apiserver::webhooks {

/// The address of a webhook: a URL or a service.
struct Address {
  std::string url;
  std::string service_namespace;
  std::string service_name;
  std::uint16_t service_port = 443;
  /// The path after the service's address.
  std::string path;
  /// PEM; empty: the system's authorities.
  std::string ca;
  /// Accept any certificate.
  bool insecure = false;
};

/// From the WebhookClientConfig of a webhook.
Address address_of(api::Value client);

/// A call of a webhook failed, or its response is invalid.
class CallError : public Error {
 public:
  explicit CallError(const std::string& message, int code = 0) : Error(message), code_(code) {}
  /// The HTTP status of the error; 0 if there was no response.
  int code() const { return code_; }

 private:
  int code_;
};

/// The storage of services and their endpoints.
struct ServiceTables {
  resources::ServedResourcePtr services;
  resources::ServedResourcePtr slices;
};

/// Sends reviews to webhooks over HTTPS, from its own thread, which starts with the first review. Reuses
/// connections. Thread-safe.
class WebhookClient {
 public:
  /// `resolver` may be empty.
  WebhookClient(ServiceTables tables, ServiceResolver resolver);
  ~WebhookClient();
  WebhookClient(const WebhookClient&) = delete;
  WebhookClient& operator=(const WebhookClient&) = delete;

  /// Posts a review and returns the body of the response. Throws CallError on any failure, including a
  /// timeout, a stop of `gone`, and a response of more than `most_bytes`.
  Awaitable<std::string> post(Address address, std::string body, std::chrono::milliseconds timeout,
                              std::stop_token gone, std::size_t most_bytes);

  /// Gets the path of a service, as kube-aggregator does to find out whether another API server is
  /// available. Throws CallError, with kube-aggregator's message, unless the status is 2xx.
  Awaitable<void> probe(Address address, std::chrono::milliseconds timeout);

  /// Ends all calls; later ones fail. Waits for the thread. Call it while the executors of earlier
  /// callers still exist.
  void shutdown();

 private:
  /// The key for sharing connections: a server as seen by the transport.
  struct Origin {
    std::string url;
    std::string server_name;
    std::string ca;
    bool insecure = false;
    bool operator==(const Origin&) const = default;
  };
  using Transport = std::shared_ptr<rest::detail::HttpTransport>;

  /// The server of a service.
  Awaitable<Origin> origin_of(Address service);
  Awaitable<std::string> locate(Address address);
  Awaitable<std::string> ready_endpoint(Address address, std::string port_name);
  Transport transport_to(Origin origin);

  const ServiceTables tables_;
  const ServiceResolver resolver_;
  std::mutex mutex_;
  bool closed_ = false;              // guarded by mutex_
  std::unique_ptr<EventLoop> loop_;  // guarded by mutex_
  std::list<std::pair<Origin, Transport>>
      transports_;  // most recently used first; guarded by mutex_
};

}  // namespace lookout::apiserver::webhooks
