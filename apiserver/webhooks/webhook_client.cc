#include "apiserver/webhooks/webhook_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/error.h"
#include "lookout/base/base64.h"
#include "lookout/rest/error.h"

namespace lookout::apiserver::webhooks {
namespace {

using api::Object;
using api::Value;
using rest::TransportError;
using rest::detail::HttpExchange;
using rest::detail::HttpHead;

/// The maximum number of servers with kept connections.
constexpr std::size_t kMaxTransports = 32;
constexpr int kOk = 200;
constexpr int kRedirection = 300;
constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

std::string host_port(std::string_view host, std::int64_t port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// "https://host:port" and the rest of the URL.
std::pair<std::string, std::string> split(const std::string& url) {
  const std::size_t authority = url.find("://");
  if (authority == std::string::npos) return {url, ""};
  const std::size_t path = url.find('/', authority + 3);
  if (path == std::string::npos) return {url, ""};
  return {url.substr(0, path), url.substr(path)};
}

/// The reason of a failure, as Go's HTTP client words it.
std::string reason_of(const TransportError& error, std::string_view method,
                      const std::string& url) {
  std::string_view why = error.what();
  // The message starts with the method and the resolved address.
  if (const std::size_t end = why.find(": "); end != std::string_view::npos)
    why = why.substr(end + 2);
  if (error.kind() == TransportError::Kind::kTimeout) why = "context deadline exceeded";
  if (error.kind() == TransportError::Kind::kCancelled) why = "context canceled";
  return fmt::format("{} {}: {}", method, api::detail::quote(url), why);
}

/// The error for an invalid response.
CallError failure_of(const HttpHead& head, const std::string& body) {
  try {
    const auto status = api::Status::from(Object::parse(body));
    if (status && status->status != "Success" && !status->message.empty())
      return CallError(status->message, head.status);
  } catch (const Error&) {
    // The body is not a Status.
  }
  return CallError(api::StatusError::generic(head.status, "POST", "", "", "", body, 0, true).what(),
                   head.status);
}

/// Cancels an exchange for as long as it is in scope.
class CancelWith {
 public:
  CancelWith(const std::stop_token& stop, std::shared_ptr<HttpExchange> exchange)
      : callback_(stop, Cancel{std::move(exchange)}) {}

 private:
  struct Cancel {
    std::shared_ptr<HttpExchange> exchange;
    void operator()() const { exchange->cancel(); }
  };
  std::stop_callback<Cancel> callback_;
};

/// The address of a ready endpoint of a slice, and the port of that name.
std::optional<std::string> endpoint_in(const Object& slice, std::string_view port_name) {
  std::optional<std::int64_t> port;
  for (const Value one : slice["ports"].elements()) {
    if (one["name"].as_string() == port_name) port = one["port"].to_int();
  }
  if (!port) return std::nullopt;
  for (const Value endpoint : slice["endpoints"].elements()) {
    const Value ready = endpoint["conditions"]["ready"];
    const Value addresses = endpoint["addresses"];
    // Absent means ready.
    if (addresses.empty() || (ready.exists() && !ready.as_bool())) continue;
    return host_port(addresses[std::size_t{0}].as_string(), *port);
  }
  return std::nullopt;
}

}  // namespace

Address address_of(Value client) {
  Address out;
  out.url = client["url"].as_string();
  out.ca = decode_base64(client["caBundle"].as_string()).value_or("");
  if (const Value service = client["service"]; service.is_object()) {
    constexpr std::int64_t kHttps = 443;
    out.service_namespace = service["namespace"].as_string();
    out.service_name = service["name"].as_string();
    out.service_port = static_cast<std::uint16_t>(service["port"].to_int().value_or(kHttps));
    out.path = service["path"].as_string();
  }
  return out;
}

WebhookClient::WebhookClient(ServiceTables tables, ServiceResolver resolver)
    : tables_(std::move(tables)), resolver_(std::move(resolver)) {}

WebhookClient::~WebhookClient() { shutdown(); }

void WebhookClient::shutdown() {
  std::unique_ptr<EventLoop> loop;
  std::list<std::pair<Origin, Transport>> transports;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    loop = std::move(loop_);
    transports.swap(transports_);
  }
  for (const auto& [origin, transport] : transports) transport->shutdown();
  // The transports must end before the loop, which drops their pending work.
  transports.clear();
}

WebhookClient::Transport WebhookClient::transport_to(Origin origin) {
  Transport evicted;
  const std::lock_guard lock(mutex_);
  if (closed_) throw CallError("the server is shutting down");
  const auto known = std::find_if(transports_.begin(), transports_.end(),
                                  [&](const auto& entry) { return entry.first == origin; });
  if (known != transports_.end()) {
    transports_.splice(transports_.begin(), transports_, known);
    return transports_.front().second;
  }
  if (loop_ == nullptr) loop_ = std::make_unique<EventLoop>(1);
  rest::detail::HttpServer server;
  server.url = origin.url;
  server.ca = origin.ca;
  server.insecure = origin.insecure;
  server.server_name = origin.server_name;
  server.user_agent = "kube-apiserver-admission";
  // A hook's timeout is at most half a minute, so dead connections are detected soon enough.
  server.keepalive.probe_after = std::chrono::milliseconds(0);
  Transport made = rest::detail::HttpTransport::create(loop_->context(), std::move(server));
  transports_.emplace_front(std::move(origin), made);
  if (transports_.size() > kMaxTransports) {
    // Pending work keeps the transport alive.
    evicted = std::move(transports_.back().second);
    transports_.pop_back();
  }
  return made;
}

Awaitable<std::string> WebhookClient::post(Address address, std::string body,
                                           std::chrono::milliseconds timeout, std::stop_token gone,
                                           std::size_t most_bytes) {
  Origin origin;
  origin.ca = address.ca;
  std::string path;
  std::string shown;
  if (address.service_name.empty()) {
    std::tie(origin.url, path) = split(address.url);
    shown = origin.url;
  } else {
    path = address.path;
    Address service = address;
    origin = co_await origin_of(std::move(service));
    shown = fmt::format("https://{}:{}", origin.server_name, address.service_port);
  }
  if (path.empty()) path = "/";
  // The hook receives its timeout in whole seconds.
  path += fmt::format("?timeout={}s", std::chrono::ceil<std::chrono::seconds>(timeout).count());
  shown += path;
  rest::detail::HttpRequest request;
  request.method = "POST";
  request.target = path;
  request.headers = {"Content-Type: application/json", "Accept: application/json, */*"};
  request.body = std::move(body);
  request.timeout = timeout;
  const auto executor = co_await boost::asio::this_coro::executor;
  const Transport transport = transport_to(std::move(origin));
  const auto exchange = transport->start(std::move(request), executor);
  const CancelWith cancel(gone, exchange);
  HttpHead head;
  std::string answer;
  try {
    head = co_await exchange->head();
    for (;;) {
      const std::string piece = co_await exchange->read();
      if (piece.empty()) break;
      answer += piece;
      if (answer.size() > most_bytes)
        throw CallError(fmt::format("Post {}: the response is larger than {} bytes",
                                    api::detail::quote(shown), most_bytes));
    }
  } catch (const TransportError& e) {
    throw CallError(reason_of(e, "Post", shown));
  }
  constexpr int kPartial = 206;
  if (head.status < kOk || head.status > kPartial) throw failure_of(head, answer);
  co_return answer;
}

Awaitable<WebhookClient::Origin> WebhookClient::origin_of(Address service) {
  Origin origin;
  origin.ca = service.ca;
  origin.insecure = service.insecure;
  origin.server_name = fmt::format("{}.{}.svc", service.service_name, service.service_namespace);
  const std::string place = co_await locate(std::move(service));
  origin.url = "https://" + place;
  co_return origin;
}

Awaitable<void> WebhookClient::probe(Address address, std::chrono::milliseconds timeout) {
  rest::detail::HttpRequest request;
  request.target = address.path;
  // Such a server trusts these headers if it knows the client's certificate, which is not sent.
  request.headers = {"X-Remote-User: system:kube-aggregator", "X-Remote-Group: system:masters"};
  request.timeout = timeout;
  Origin origin = co_await origin_of(std::move(address));
  const std::string url = origin.url + request.target;
  const auto executor = co_await boost::asio::this_coro::executor;
  const Transport transport = transport_to(std::move(origin));
  const auto exchange = transport->start(std::move(request), executor);
  std::string why;
  try {
    const HttpHead head = co_await exchange->head();
    if (head.status < kOk || head.status >= kRedirection)
      why = fmt::format("bad status from {}: {}", url, head.status);
  } catch (const TransportError& e) {
    why = reason_of(e, "Get", url);
  }
  exchange->cancel();
  if (!why.empty())
    throw CallError(fmt::format("failing or missing response from {}: {}", url, why));
}

/// "host:port" of a service.
Awaitable<std::string> WebhookClient::locate(Address address) {
  const std::string& ns = address.service_namespace;
  const std::string& name = address.service_name;
  Object service;
  try {
    if (resolver_) {
      if (auto place = resolver_(ns, name, address.service_port)) co_return *std::move(place);
    }
    service = co_await tables_.services->storage->get(ns + "/" + name, 1);
  } catch (const std::exception& e) {
    throw CallError(e.what());
  }
  if (!service) throw CallError(fmt::format("service {} not found", api::detail::quote(name)));
  const Value spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  if (type == "ExternalName")
    co_return host_port(spec["externalName"].as_string(), address.service_port);
  std::optional<std::string> port_name;
  for (const Value port : spec["ports"].elements()) {
    if (port["port"].as_int() == address.service_port)
      port_name = std::string(port["name"].as_string());
  }
  if (!port_name) {
    throw CallError(fmt::format("no service port {} found for service {}", address.service_port,
                                api::detail::quote(name)));
  }
  const std::string place = co_await ready_endpoint(address, *port_name);
  if (!place.empty()) co_return place;
  const std::string_view ip = spec["clusterIP"].as_string();
  if (ip.empty() || ip == "None")
    throw CallError(fmt::format("no endpoints available for service {}", api::detail::quote(name)));
  co_return host_port(ip, address.service_port);
}

/// "host:port" of a ready endpoint of a service; empty if there is none.
Awaitable<std::string> WebhookClient::ready_endpoint(Address address, std::string port_name) {
  storage::ListOptions options;
  options.match = storage::VersionMatch::kNotOlderThan;
  try {
    storage::ListResult list = co_await tables_.slices->storage->list(
        address.service_namespace + "/", true, std::move(options));
    std::vector<Object> some;
    for (;;) {
      const bool more = co_await list.objects->next(some, 100);
      if (!more) break;
      for (const Object& slice : some) {
        if (slice.labels()[kServiceLabel].as_string() != address.service_name) continue;
        if (auto found = endpoint_in(slice, port_name)) co_return *std::move(found);
      }
    }
  } catch (const std::exception& e) {
    throw CallError(e.what());
  }
  co_return std::string();
}

}  // namespace lookout::apiserver::webhooks
