// Requests to webhooks, of admission and of conversion.
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

/// Where a webhook is: at a URL, or behind a service.
struct Address {
  std::string url;
  std::string service_namespace;
  std::string service_name;
  std::uint16_t service_port = 443;
  /// Behind the service.
  std::string path;
  /// PEM; empty: the system's authorities.
  std::string ca;
};

/// From the WebhookClientConfig of a webhook.
Address address_of(api::Value client);

/// A webhook could not be asked, or its answer makes no sense.
class CallError : public Error {
 public:
  explicit CallError(const std::string& message, int code = 0) : Error(message), code_(code) {}
  /// The HTTP status of the error; 0 if there was no answer.
  int code() const { return code_; }

 private:
  int code_;
};

/// Where services and their endpoints are kept.
struct ServiceTables {
  resources::ServedResourcePtr services;
  resources::ServedResourcePtr slices;
};

/// Sends reviews to webhooks over HTTPS, from a thread of its own that is begun with the first one.
/// Connections are kept and used again. Safe to use from many threads.
class WebhookClient {
 public:
  /// `resolver` may be empty.
  WebhookClient(ServiceTables tables, ServiceResolver resolver);
  ~WebhookClient();
  WebhookClient(const WebhookClient&) = delete;
  WebhookClient& operator=(const WebhookClient&) = delete;

  /// Posts a review and returns the body of the answer. Throws CallError for whatever goes wrong,
  /// also if it takes longer than `timeout`, if `gone` is stopped, or if the answer is larger than
  /// `most_bytes`.
  Awaitable<std::string> post(Address address, std::string body, std::chrono::milliseconds timeout,
                              std::stop_token gone, std::size_t most_bytes);

  /// Ends what is under way; later calls fail. Waits for the thread. To be called while the
  /// executors of earlier callers are still there.
  void shutdown();

 private:
  /// A server as a transport has it: what connections are shared by.
  struct Origin {
    std::string url;
    std::string server_name;
    std::string ca;
    bool operator==(const Origin&) const = default;
  };
  using Transport = std::shared_ptr<rest::detail::HttpTransport>;

  Awaitable<std::string> locate(Address address);
  Awaitable<std::string> ready_endpoint(Address address, std::string port_name);
  Transport transport_to(Origin origin);

  const ServiceTables tables_;
  const ServiceResolver resolver_;
  std::mutex mutex_;
  bool closed_ = false;                                 // guarded by mutex_
  std::unique_ptr<EventLoop> loop_;                     // guarded by mutex_
  std::list<std::pair<Origin, Transport>> transports_;  // the latest used first; guarded by mutex_
};

}  // namespace lookout::apiserver::webhooks
