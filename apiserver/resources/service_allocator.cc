#include "apiserver/resources/service_allocator.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/field_owners.h"
#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/node_port_map.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/error.h"
#include "lookout/api/validation.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::resources {
namespace {

/// The number of random attempts before a search for free addresses.
constexpr int kRandomTries = 16;

std::optional<std::uint32_t> parse_ipv4(const std::string& text) {
  const auto address = IpAddress::parse(text);
  if (!address || address->family != 4) return std::nullopt;
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | address->bytes[i];
  return out;
}

bool is_ipv6(const std::string& text) {
  const auto address = IpAddress::parse(text);
  return address && address->family == 6;
}

std::string ipv4_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 0xFF, (address >> 8) & 0xFF,
                     address & 0xFF);
}

std::uint32_t random_number(std::uint32_t below) {
  std::uint32_t number = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) != 1)
    throw Error("the system has no random numbers");
  return number % below;
}

StatusError invalid(std::string_view name, const std::string& field, const std::string& message) {
  return StatusError::invalid("", "Service", name, {{"FieldValueInvalid", message, field}});
}

/// The only address family is IPv4.
void check_families(std::string_view name, std::string_view policy, const json::Value* families) {
  std::vector<api::StatusCause> causes;
  const rapidjson::SizeType size =
      families != nullptr && families->IsArray() ? families->Size() : 0;
  if (policy == "SingleStack" && size > 1) {
    throw StatusError::invalid(
        "", "Service", name,
        {api::validation::invalid(
            "spec.ipFamilyPolicy", policy,
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP "
            "families are specified")});
  }
  if (policy == "RequireDualStack") {
    causes.push_back(api::validation::invalid(
        "spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services"));
  }
  for (rapidjson::SizeType i = 0; i < size; ++i) {
    const json::Value& family = (*families)[i];
    if (!family.IsString() || json::text_of(family) == "IPv4") continue;
    causes.push_back(api::validation::invalid(fmt::format("spec.ipFamilies[{}]", i),
                                              json::text_of(family),
                                              "not configured on this cluster"));
  }
  if (!causes.empty()) throw StatusError::invalid("", "Service", name, std::move(causes));
}

json::Value strings(const std::vector<std::string>& texts, Allocator& allocator) {
  json::Value out(rapidjson::kArrayType);
  for (const std::string& text : texts) out.PushBack(json::copy_text(text, allocator), allocator);
  return out;
}

bool has_elements(const json::Value& object, std::string_view name) {
  const json::Value* value = json::find(object, name);
  return value != nullptr &&
         ((value->IsArray() && !value->Empty()) || (value->IsObject() && !value->ObjectEmpty()));
}

/// The requested node port of a port with this number, or 0.
std::int64_t requested_node_port(const json::Value& ports, std::int64_t number) {
  for (const json::Value& port : ports.GetArray()) {
    if (json::integer(port, "port", 0) != number) continue;
    if (const auto wanted = json::integer(port, "nodePort", 0); wanted != 0) return wanted;
  }
  return 0;
}

bool needs_health_check(std::string_view type, std::string_view traffic_policy) {
  return type == "LoadBalancer" && traffic_policy == "Local";
}

}  // namespace

ServiceClaims claims_of(const Object& service) {
  ServiceClaims out;
  out.exists = true;
  const api::Value spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  if (type == "ExternalName") return out;
  const auto claim = [&](std::string_view address) {
    if (!address.empty() && address != "None") out.addresses.emplace(address);
  };
  for (const api::Value address : spec["clusterIPs"].elements()) claim(address.as_string());
  claim(spec["clusterIP"].as_string());
  for (const api::Value port : spec["ports"].elements()) {
    if (const auto number = port["nodePort"].as_int(); number != 0) out.node_ports.insert(number);
  }
  out.ports = out.node_ports;
  if (needs_health_check(type, spec["externalTrafficPolicy"].as_string())) {
    out.health_check_port = spec["healthCheckNodePort"].as_int();
    if (*out.health_check_port != 0) out.ports.insert(*out.health_check_port);
  }
  return out;
}

ServiceAllocator::ServiceAllocator(const Store& store, ServedResourcePtr addresses,
                                   storage::Interface& ranges, const std::string& range,
                                   bool managed_fields)
    : store_(store),
      addresses_(std::move(addresses)),
      ranges_(ranges),
      range_(range),
      managed_fields_(managed_fields) {
  const std::size_t slash = range.find('/');
  const auto base = parse_ipv4(range.substr(0, slash));
  const std::int64_t bits =
      slash == std::string::npos ? 0 : api::detail::parse_int(range.substr(slash + 1)).value_or(0);
  constexpr std::int64_t kWidest = 12;  // as kube-apiserver
  constexpr std::int64_t kNarrowest = 30;
  if (!base || bits < kWidest || bits > kNarrowest) {
    throw InvalidArgument(fmt::format(
        "{} is not a valid range for cluster IPs: expected an IPv4 range between /12 and /30",
        range));
  }
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - static_cast<unsigned>(bits));
  base_ = *base & mask;
  size_ = ~mask + 1;
}

bool ServiceAllocator::contains(std::uint32_t address) const {
  return address > base_ && address - base_ < size_ - 1;
}

bool ServiceAllocator::contains(const std::string& address) const {
  const auto number = parse_ipv4(address);
  return number && contains(*number);
}

Awaitable<bool> ServiceAllocator::take_address(std::string address, std::string ns,
                                               std::string name) const {
  Object object = Object::parse(fmt::format(
      R"({{"kind":"IPAddress","apiVersion":"networking.k8s.io/v1","metadata":{{"name":"{}",)"
      R"("labels":{{"ipaddress.kubernetes.io/ip-family":"IPv4",)"
      R"("ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}}}},)"
      R"("spec":{{"parentRef":{{"resource":"services","namespace":"{}","name":"{}"}}}}}})",
      address, ns, name));
  Target target;
  target.resource = addresses_;
  const fields::FieldManager owner = field_manager("kube-apiserver", addresses_->type.gvk(), {});
  if (managed_fields_) target.fields = &owner;
  try {
    co_await store_.create(std::move(target), std::move(object));
  } catch (const StatusError& e) {
    if (!api::is_already_exists(e)) throw;
    co_return false;
  }
  co_return true;
}

Awaitable<std::string> ServiceAllocator::take_any_address(Document& service, bool dry_run) const {
  const json::Value& metadata = *json::find(service, "metadata");
  const std::string ns(json::text(metadata, "namespace"));
  const std::string name(json::text(metadata, "name"));
  // The lower part is reserved for static allocation.
  const std::uint32_t reserved =
      std::min<std::uint32_t>(std::clamp<std::uint32_t>(size_ / 16, 16, 256), size_ / 2);
  const auto candidate = [&](std::uint32_t n) { return base_ + n; };
  for (int i = 0; i < kRandomTries; ++i) {
    const std::uint32_t address =
        candidate(reserved + random_number(std::max(size_ - 1 - reserved, 1u)));
    if (!contains(address)) continue;
    std::string text = ipv4_text(address);
    if (dry_run) {
      const Object present = co_await addresses_->storage->get(text);
      if (!present) co_return text;
    } else {
      const bool taken = co_await take_address(text, ns, name);
      if (taken) co_return text;
    }
  }
  for (std::uint32_t n = 0; n < size_; ++n) {
    const std::uint32_t address = candidate((reserved + n) % size_);
    // The address of the Service default/kubernetes.
    if (!contains(address) || address == base_ + 1) continue;
    std::string text = ipv4_text(address);
    const Object present = co_await addresses_->storage->get(text);
    if (present) continue;
    if (dry_run) co_return text;
    const bool taken = co_await take_address(text, ns, name);
    if (taken) co_return text;
  }
  throw StatusError::internal_error("failed to allocate a serviceIP: range is full");
}

Awaitable<ServiceAllocator::TakenPort> ServiceAllocator::take_port(std::int64_t wanted,
                                                                   Operation& operation) const {
  TakenPort out;
  if (wanted != 0 && !NodePortMap::covers(wanted)) {
    out.fault =
        fmt::format("provided port is not in the valid range. The range of valid ports is {}",
                    NodePortMap::kRange);
    co_return out;
  }
  storage::Interface::Update update = [&](const Object& present) {
    NodePortMap ports(present);
    for (const std::int64_t own : operation.ports) ports.set(own, true);
    const int port = wanted != 0 ? static_cast<int>(wanted)
                                 : ports.free_from(random_number(NodePortMap::kCount));
    out.number = ports.is_taken(port) ? 0 : port;
    ports.set(out.number, true);
    return ports.object();
  };
  if (operation.dry_run) {
    const Object present = co_await ranges_.get(NodePortMap::kKey);
    update(present);
  } else {
    storage::Preconditions none;
    co_await ranges_.guaranteed_update(NodePortMap::kKey, true, std::move(none), std::move(update));
  }
  if (out.number != 0) {
    operation.ports.insert(out.number);
    if (!operation.dry_run) operation.taken.ports.insert(out.number);
  } else {
    out.fault = wanted != 0 ? "provided port is already allocated" : "range is full";
  }
  co_return out;
}

Awaitable<Object> ServiceAllocator::complete(Object service, ServiceClaims had, bool dry_run,
                                             ServiceClaims& taken) const {
  Document document = service.to_document();
  json::Value* spec = json::find(document, "spec");
  if (spec == nullptr || !spec->IsObject()) co_return service;
  const std::string type(json::text(*spec, "type"));
  if (type == "ExternalName") {
    // Kubernetes validates the policy of such a service, but never returns it.
    json::erase(*spec, "internalTrafficPolicy");
    co_return Object::from(document);
  }
  Operation operation{had, dry_run, taken};
  co_await complete_addresses(document, operation);
  if (type == "NodePort" || type == "LoadBalancer")
    co_await complete_node_ports(document, operation);
  if (needs_health_check(type, json::text(*spec, "externalTrafficPolicy")))
    co_await complete_health_check(document, operation);
  co_return Object::from(document);
}

Awaitable<void> ServiceAllocator::complete_addresses(Document& service,
                                                     Operation& operation) const {
  const json::Value& metadata = *json::find(service, "metadata");
  const std::string name(json::text(metadata, "name"));
  const std::string ns(json::text(metadata, "namespace"));
  Allocator& allocator = service.GetAllocator();
  json::Value& spec = *json::find(service, "spec");
  std::string address(json::text(spec, "clusterIP"));
  if (const json::Value* all = json::find(spec, "clusterIPs");
      address.empty() && all != nullptr && all->IsArray() && !all->Empty() && (*all)[0].IsString())
    address = json::text_of((*all)[0]);
  const bool headless = address == "None";
  if (!address.empty() && !headless && !parse_ipv4(address)) {
    throw invalid(name, "spec.clusterIPs[0]",
                  is_ipv6(address)
                      ? fmt::format("Invalid value: [\"{}\"]: IPv6 is not configured on "
                                    "this cluster",
                                    address)
                      : fmt::format("Invalid value: {}: must be a valid IP address, "
                                    "(e.g. 10.9.8.7 or 2001:db8::ffff)",
                                    api::detail::quote(address)));
  }
  const bool both = headless && !has_elements(spec, "selector");
  const std::string policy(json::text(spec, "ipFamilyPolicy"));
  if (!both) check_families(name, policy, json::find(spec, "ipFamilies"));
  json::set_default(spec, "ipFamilyPolicy", both ? "RequireDualStack" : "SingleStack", allocator);
  if (!has_elements(spec, "ipFamilies"))
    json::set(spec, "ipFamilies", strings({"IPv4"}, allocator), allocator);
  json::Value& families = *json::find(spec, "ipFamilies");
  if (both && json::text(spec, "ipFamilyPolicy") != "SingleStack" && families.Size() == 1) {
    const bool first_is_4 = families[0].IsString() && json::text_of(families[0]) == "IPv4";
    families.PushBack(json::copy_text(first_is_4 ? "IPv6" : "IPv4", allocator), allocator);
  }
  if (!headless) {
    if (address.empty()) {
      address = co_await take_any_address(service, operation.dry_run);
      if (!operation.dry_run) operation.taken.addresses.insert(address);
    } else if (!operation.had.addresses.contains(address)) {
      const auto refuse = [&](const std::string& why) {
        return invalid(
            name, "spec.clusterIPs",
            fmt::format("Invalid value: [\"{0}\"]: failed to allocate IP {0}: {1}", address, why));
      };
      if (!contains(address)) throw refuse("the provided network does not match the current range");
      bool free = false;
      if (operation.dry_run) {
        const Object present = co_await addresses_->storage->get(address);
        free = !present;
      } else {
        free = co_await take_address(address, ns, name);
      }
      if (!free) throw refuse("provided IP is already allocated");
      if (!operation.dry_run) operation.taken.addresses.insert(address);
    }
  }
  json::set(spec, "clusterIP", address, allocator);
  json::set(spec, "clusterIPs", strings({address}, allocator), allocator);
}

/// In a new service, ports with the same number (and different protocols) share a node port. In an
/// existing one, only ports that request the same node port do.
Awaitable<void> ServiceAllocator::complete_node_ports(Document& service,
                                                      Operation& operation) const {
  const std::string name(json::text(*json::find(service, "metadata"), "name"));
  Allocator& allocator = service.GetAllocator();
  json::Value& spec = *json::find(service, "spec");
  json::Value* ports = json::find(spec, "ports");
  if (ports == nullptr || !ports->IsArray()) co_return;
  const json::Value* wish = json::find(spec, "allocateLoadBalancerNodePorts");
  const bool allocates =
      json::text(spec, "type") == "NodePort" || wish == nullptr || !wish->IsFalse();
  const ServiceClaims& had = operation.had;
  std::map<std::int64_t, std::int64_t> by_number;  // of a new service
  std::set<std::int64_t> requested;                // of an existing one
  for (rapidjson::SizeType i = 0; i < ports->Size(); ++i) {
    json::Value& port = (*ports)[i];
    if (!port.IsObject()) continue;
    std::int64_t wanted = json::integer(port, "nodePort", 0);
    if (wanted == 0 && !allocates) continue;
    const std::int64_t number = json::integer(port, "port", 0);
    if (had.exists) {
      if (had.node_ports.contains(wanted) || requested.contains(wanted)) continue;
    } else if (const auto found = by_number.find(number); found == by_number.end()) {
      if (wanted == 0) wanted = requested_node_port(*ports, number);
    } else if (wanted == 0 || wanted == found->second) {
      json::set(port, "nodePort", json::Value(found->second), allocator);
      continue;
    }
    const TakenPort taken = co_await take_port(wanted, operation);
    if (taken.number == 0 && wanted == 0)
      throw StatusError::internal_error("failed to allocate a nodePort: " + taken.fault);
    if (taken.number == 0) {
      throw invalid(name, fmt::format("spec.ports[{}].nodePort", i),
                    fmt::format("Invalid value: {}: {}", wanted, taken.fault));
    }
    if (wanted != 0) requested.insert(wanted);
    by_number.emplace(number, taken.number);
    json::set(port, "nodePort", json::Value(taken.number), allocator);
  }
}

Awaitable<void> ServiceAllocator::complete_health_check(Document& service,
                                                        Operation& operation) const {
  if (operation.had.health_check_port) co_return;
  json::Value& spec = *json::find(service, "spec");
  const std::int64_t wanted = json::integer(spec, "healthCheckNodePort", 0);
  const TakenPort taken = co_await take_port(wanted, operation);
  if (taken.number == 0) {
    throw StatusError::internal_error(
        fmt::format("failed to allocate {} HealthCheck NodePort {}: {}",
                    wanted != 0 ? "requested" : "a", wanted, taken.fault));
  }
  json::set(spec, "healthCheckNodePort", json::Value(taken.number), service.GetAllocator());
}

Awaitable<void> ServiceAllocator::release(ServiceClaims claims) const {
  for (const std::string& address : claims.addresses) {
    try {
      storage::Preconditions none;
      storage::Interface::Validate anything;
      co_await addresses_->storage->remove(address, std::move(none), std::move(anything));
    } catch (const storage::StorageError& e) {
      if (e.code() != storage::StorageError::Code::kKeyNotFound)
        log::warn("cannot release the cluster IP {}: {}", address, e.what());
    }
  }
  if (claims.ports.empty()) co_return;
  storage::Interface::Update update = [&](const Object& present) {
    NodePortMap ports(present);
    for (const std::int64_t port : claims.ports) ports.set(port, false);
    return ports.object();
  };
  try {
    storage::Preconditions none;
    co_await ranges_.guaranteed_update(NodePortMap::kKey, true, std::move(none), std::move(update));
  } catch (const storage::StorageError& e) {
    log::warn("cannot release node ports: {}", e.what());
  }
}

}  // namespace lookout::apiserver::resources
