#include "apiserver/bootstrap/service_availability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "apiserver/controllers/beside.h"
#include "apiserver/controllers/own_writes.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/field_owners.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"
#include "lookout/base/base64.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::bootstrap {
namespace {

using api::detail::quote;
using resources::Condition;
using std::chrono::milliseconds;

constexpr const char* kServiceOfSlice = "kubernetes.io/service-name";
constexpr std::chrono::seconds kAnswerTime{5};
/// The intervals between checks: of all, and of those that failed.
constexpr std::chrono::seconds kResync{30};
constexpr milliseconds kFirstPause{100};
constexpr std::size_t kChecksAtOnce = 5;

Condition unavailable(const char* reason, std::string message) {
  return {"Available", false, reason, std::move(message)};
}

/// Whether a ready endpoint may have the port. Go's zero value of `ready` means ready.
bool has_endpoint(const Object& slice, std::string_view port_name) {
  const auto endpoints = slice["endpoints"].elements();
  const auto ports = slice["ports"].elements();
  const bool ready = std::any_of(endpoints.begin(), endpoints.end(), [](api::Value endpoint) {
    const api::Value is_ready = endpoint["conditions"]["ready"];
    return !is_ready.exists() || is_ready.as_bool();
  });
  return ready && std::any_of(ports.begin(), ports.end(), [&](api::Value port) {
           return port["name"].is_string() && port["name"].as_string() == port_name &&
                  port["port"].exists();
         });
}

bool has_condition(const Object& api_service, const Condition& wanted) {
  for (const api::Value one : api_service["status"]["conditions"].elements()) {
    if (one["type"].as_string() != wanted.type) continue;
    return one["status"].as_string() == (wanted.is_true ? "True" : "False") &&
           one["reason"].as_string() == wanted.reason &&
           one["message"].as_string() == wanted.message;
  }
  return false;
}

Object with_condition(const Object& api_service, const Condition& condition) {
  json::Document document = api_service.to_document();
  Allocator& allocator = document.GetAllocator();
  resources::set_condition(json::child(document, "status", allocator), condition, allocator);
  return Object::from(document);
}

/// Sets a flag for as long as it is in scope.
class Busy {
 public:
  explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool& flag_;
};

}  // namespace

ServiceAvailability::ServiceAvailability(const controllers::Context& context,
                                         webhooks::WebhookClient& client)
    : context_(context),
      client_(client),
      api_services_(
          context_.resources.table()->find("apiregistration.k8s.io", "v1", "apiservices")),
      services_(context_.resources.table()->find("", "v1", "services")),
      slices_(context_.resources.table()->find("discovery.k8s.io", "v1", "endpointslices")) {}

Awaitable<void> ServiceAvailability::follow_api_services() {
  storage::WatchOptions options;
  const auto watch = co_await api_services_->storage->watch("", true, std::move(options));
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, due_);
    if (!events.empty() || Clock::now() >= due_) co_await settle();
  }
}

Awaitable<void> ServiceAvailability::follow_services() { return follow(services_); }

Awaitable<void> ServiceAvailability::follow_endpoints() { return follow(slices_); }

Awaitable<void> ServiceAvailability::follow(resources::ServedResourcePtr resource) {
  storage::WatchOptions options;
  const auto watch = co_await resource->storage->watch("", true, std::move(options));
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, storage::Watch::TimePoint::max());
    const bool concerned =
        std::any_of(events.begin(), events.end(),
                    [this](const storage::Event& event) { return is_named(event.object); });
    if (concerned) co_await settle();
  }
}

bool ServiceAvailability::is_named(const Object& object) const {
  if (!object) return false;
  const std::string_view service = object.kind() == "EndpointSlice"
                                       ? object.labels()[kServiceOfSlice].as_string()
                                       : object.name();
  return named_.contains(std::pair(std::string(object.ns()), std::string(service)));
}

/// One check at a time, so that an earlier result does not replace a later one.
Awaitable<void> ServiceAvailability::settle() {
  again_ = true;
  if (busy_) co_return;
  const Busy busy(busy_);
  while (again_) {
    again_ = false;
    co_await check_all();
  }
}

Awaitable<void> ServiceAvailability::check_all() {
  const std::vector<Object> all = co_await controllers::list_all(api_services_);
  named_.clear();
  for (const Object& one : all) {
    const api::Value service = one["spec"]["service"];
    if (service.is_object())
      named_.emplace(service["namespace"].as_string(), service["name"].as_string());
  }
  failed_ = false;
  std::function<Awaitable<void>(std::size_t)> work = [&](std::size_t index) {
    return check(all[index]);
  };
  co_await controllers::run_beside(all.size(), kChecksAtOnce, std::move(work));
  pause_ = failed_ ? std::clamp<milliseconds>(pause_ * 2, kFirstPause, kResync) : milliseconds(0);
  due_ = failed_          ? Clock::now() + pause_
         : named_.empty() ? Clock::time_point::max()
                          : Clock::now() + kResync;
}

Awaitable<void> ServiceAvailability::check(Object api_service) {
  Object same = api_service;
  const Condition condition = co_await condition_of(std::move(same));
  if (has_condition(api_service, condition)) co_return;
  resources::Target target;
  target.resource = api_services_;
  target.name = api_service.name();
  std::optional<fields::FieldManager> owner;
  if (context_.managed_fields) {
    owner = resources::field_manager(std::string(controllers::kServerManager),
                                     context_.resources.table(), api_services_, "status");
  }
  target.fields = owner ? &*owner : nullptr;
  resources::Store::Change change = [changed = with_condition(api_service, condition)](
                                        const Object& /*present*/) { return changed; };
  storage::Preconditions none;
  try {
    co_await context_.store.update(std::move(target), std::move(change), resources::Part::kStatus,
                                   std::move(none));
  } catch (const StatusError& e) {
    // The watch reports a concurrent change.
    if (api::is_conflict(e) || api::is_not_found(e)) co_return;
    failed_ = true;
    log::warn("cannot set the condition of APIService {}: {}", api_service.name(), e.what());
  }
}

Awaitable<Condition> ServiceAvailability::condition_of(Object api_service) {
  const api::Value spec = api_service["spec"];
  const api::Value reference = spec["service"];
  if (!reference.is_object())
    co_return Condition{"Available", true, "Local", "Local APIServices are always available"};
  webhooks::Address address;
  address.service_namespace = reference["namespace"].as_string();
  address.service_name = reference["name"].as_string();
  address.service_port = static_cast<std::uint16_t>(reference["port"].as_int());
  std::string key = address.service_namespace + "/" + address.service_name;
  Object service = co_await services_->storage->get(std::move(key));
  if (!service) {
    co_return unavailable("ServiceNotFound",
                          fmt::format("service/{} in {} is not present", address.service_name,
                                      quote(address.service_namespace)));
  }
  if (service["spec"]["type"].as_string() == "ClusterIP") {
    Condition missing = co_await endpoints_of(std::move(service), address.service_port);
    if (!missing.reason.empty()) co_return missing;
  }
  const std::string_view group = spec["group"].as_string();
  const std::string_view version = spec["version"].as_string();
  address.path =
      group.empty() ? fmt::format("/api/{}", version) : fmt::format("/apis/{}/{}", group, version);
  address.ca = decode_base64(spec["caBundle"].as_string()).value_or("");
  address.insecure = spec["insecureSkipTLSVerify"].as_bool();
  std::string why;
  try {
    co_await client_.probe(std::move(address), kAnswerTime);
  } catch (const webhooks::CallError& e) {
    why = e.what();
  }
  if (why.empty()) co_return Condition{"Available", true, "Passed", "all checks passed"};
  failed_ = true;
  co_return unavailable("FailedDiscoveryCheck", std::move(why));
}

Awaitable<Condition> ServiceAvailability::endpoints_of(Object service, std::int64_t port) {
  const std::string name = fmt::format("service/{} in {}", service.name(), quote(service.ns()));
  std::optional<std::string> port_name;
  for (const api::Value one : service["spec"]["ports"].elements()) {
    if (!port_name && one["port"].as_int() == port) port_name = one["name"].as_string();
  }
  if (!port_name) {
    co_return unavailable("ServicePortError",
                          fmt::format("{} is not listening on port {}", name, port));
  }
  storage::ListOptions options;
  std::string prefix = std::string(service.ns()) + "/";
  storage::ListResult list =
      co_await slices_->storage->list(std::move(prefix), true, std::move(options));
  std::vector<Object> slices = co_await storage::read_all(std::move(list));
  std::erase_if(slices, [&](const Object& slice) {
    return slice.labels()[kServiceOfSlice].as_string() != service.name();
  });
  if (slices.empty()) {
    co_return unavailable("EndpointsNotFound",
                          fmt::format("cannot find endpointslices for {}", name));
  }
  const bool found = std::any_of(slices.begin(), slices.end(), [&](const Object& slice) {
    return has_endpoint(slice, *port_name);
  });
  if (!found) {
    co_return unavailable("MissingEndpoints",
                          fmt::format("endpointslices for {} have no addresses with port name {}",
                                      name, quote(*port_name)));
  }
  co_return Condition();
}

}  // namespace lookout::apiserver::bootstrap
