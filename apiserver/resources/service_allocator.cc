#include "apiserver/resources/service_allocator.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/field_owners.h"
#include "apiserver/resources/ip_address.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/error.h"
#include "lookout/api/validation.h"
#include "lookout/base/base64.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::resources {
namespace {

constexpr int kFirstPort = 30000;
constexpr int kPorts = 2768;
constexpr std::string_view kPortRange = "30000-32767";
constexpr const char* kPortsKey = "servicenodeports";
/// How many addresses are tried at random before somebody looks which ones are free.
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

/// There is one family of addresses, IPv4.
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

/// The ports that are taken, a bit each.
class PortMap {
 public:
  explicit PortMap(std::string_view base64) : bits_(decode_base64(base64).value_or(std::string())) {
    bits_.resize((kPorts + 7) / 8);
  }
  bool is_taken(int port) const { return (byte(port) >> bit(port) & 1) != 0; }
  void set(int port, bool taken) {
    const auto mask = static_cast<unsigned char>(1u << bit(port));
    const auto old = byte(port);
    bits_[index(port)] = static_cast<char>(taken ? old | mask : old & ~mask);
  }
  int any_free() const {
    const auto start = static_cast<int>(random_number(kPorts));
    for (int i = 0; i < kPorts; ++i) {
      const int port = kFirstPort + (start + i) % kPorts;
      if (!is_taken(port)) return port;
    }
    return 0;
  }
  Object object() const {
    return Object::parse(fmt::format(
        R"({{"kind":"RangeAllocation","apiVersion":"v1","metadata":{{"name":"{}"}},"range":"{}",)"
        R"("data":"{}"}})",
        kPortsKey, kPortRange, encode_base64(bits_)));
  }

 private:
  static std::size_t index(int port) { return static_cast<std::size_t>(port - kFirstPort) / 8; }
  static unsigned bit(int port) { return static_cast<unsigned>(port - kFirstPort) % 8; }
  unsigned char byte(int port) const { return static_cast<unsigned char>(bits_[index(port)]); }

  std::string bits_;
};

}  // namespace

ServiceClaims claims_of(const Object& service) {
  ServiceClaims out;
  const api::Value spec = service["spec"];
  if (spec["type"].as_string() == "ExternalName") return out;
  for (const api::Value address : spec["clusterIPs"].elements()) {
    if (address.as_string() != "None") out.addresses.emplace(address.as_string());
  }
  if (const auto address = spec["clusterIP"].as_string(); !address.empty() && address != "None")
    out.addresses.emplace(address);
  for (const api::Value port : spec["ports"].elements()) {
    if (const auto number = port["nodePort"].as_int(); number != 0)
      out.ports.insert(static_cast<int>(number));
  }
  if (const auto number = spec["healthCheckNodePort"].as_int(); number != 0)
    out.ports.insert(static_cast<int>(number));
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
  // The lower part is left to those who ask for an address of their own.
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
  for (std::uint32_t n = 1; n < size_; ++n) {
    const std::uint32_t address = candidate((reserved + n) % size_);
    // The API server's own.
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

Awaitable<int> ServiceAllocator::take_port(int wanted, bool dry_run) const {
  int taken = 0;
  bool conflict = false;
  storage::Interface::Update update = [&](const Object& present) {
    PortMap ports(present ? present["data"].as_string() : std::string_view());
    taken = wanted != 0 ? wanted : ports.any_free();
    conflict = taken == 0 || ports.is_taken(taken);
    if (!conflict) ports.set(taken, true);
    return ports.object();
  };
  if (dry_run) {
    const Object present = co_await ranges_.get(kPortsKey);
    update(present);
  } else {
    storage::Preconditions none;
    co_await ranges_.guaranteed_update(kPortsKey, true, std::move(none), std::move(update));
  }
  co_return conflict ? 0 : taken;
}

Awaitable<Object> ServiceAllocator::complete(Object service, ServiceClaims had, bool dry_run,
                                             ServiceClaims& taken) const {
  const std::string name(service.name());
  const std::string ns(service.ns());
  Document document = service.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value* found = json::find(document, "spec");
  if (found == nullptr || !found->IsObject()) co_return service;
  json::Value& spec = *found;
  const std::string type(json::text(spec, "type"));
  if (type == "ExternalName") co_return service;

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
      address = co_await take_any_address(document, dry_run);
      if (!dry_run) taken.addresses.insert(address);
    } else if (!had.addresses.contains(address)) {
      const auto refuse = [&](const std::string& why) {
        return invalid(
            name, "spec.clusterIPs",
            fmt::format("Invalid value: [\"{0}\"]: failed to allocate IP {0}: {1}", address, why));
      };
      if (!contains(*parse_ipv4(address)))
        throw refuse("the provided network does not match the current range");
      bool free = false;
      if (dry_run) {
        const Object present = co_await addresses_->storage->get(address);
        free = !present;
      } else {
        free = co_await take_address(address, ns, name);
      }
      if (!free) throw refuse("provided IP is already allocated");
      if (!dry_run) taken.addresses.insert(address);
    }
  }
  json::set(spec, "clusterIP", address, allocator);
  json::set(spec, "clusterIPs", strings({address}, allocator), allocator);

  const json::Value* without_ports = json::find(spec, "allocateLoadBalancerNodePorts");
  const bool for_balancer =
      type == "LoadBalancer" && (without_ports == nullptr || !without_ports->IsFalse());
  json::Value* ports = json::find(spec, "ports");
  if (ports != nullptr && ports->IsArray()) {
    std::set<int> own;
    for (rapidjson::SizeType i = 0; i < ports->Size(); ++i) {
      json::Value& port = (*ports)[i];
      if (!port.IsObject()) continue;
      const auto wanted = static_cast<int>(json::integer(port, "nodePort", 0));
      if (wanted == 0 && type != "NodePort" && !for_balancer) continue;
      // One number may serve two protocols of the same service.
      if (wanted != 0 && (had.ports.contains(wanted) || own.contains(wanted))) continue;
      const std::string field = fmt::format("spec.ports[{}].nodePort", i);
      if (wanted != 0 && (wanted < kFirstPort || wanted >= kFirstPort + kPorts)) {
        throw invalid(name, field,
                      fmt::format("Invalid value: {}: provided port is not in the valid range. The "
                                  "range of valid ports is {}",
                                  wanted, kPortRange));
      }
      const int number = co_await take_port(wanted, dry_run);
      if (number == 0 && wanted != 0) {
        throw invalid(name, field,
                      fmt::format("Invalid value: {}: provided port is already allocated", wanted));
      }
      if (number == 0)
        throw StatusError::internal_error("failed to allocate a nodePort: range is full");
      if (!dry_run) taken.ports.insert(number);
      own.insert(number);
      json::set(port, "nodePort", json::Value(number), allocator);
    }
  }
  if (type == "LoadBalancer" && json::text(spec, "externalTrafficPolicy") == "Local") {
    const auto wanted = static_cast<int>(json::integer(spec, "healthCheckNodePort", 0));
    if (wanted == 0 || !had.ports.contains(wanted)) {
      const int number = co_await take_port(wanted, dry_run);
      if (number == 0) {
        throw invalid(name, "spec.healthCheckNodePort",
                      fmt::format("Invalid value: {0}: failed to allocate requested "
                                  "HealthCheck NodePort {0}: provided port is already allocated",
                                  wanted));
      }
      if (!dry_run) taken.ports.insert(number);
      json::set(spec, "healthCheckNodePort", json::Value(number), allocator);
    }
  }
  co_return Object::from(document);
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
    PortMap ports(present ? present["data"].as_string() : std::string_view());
    for (const int port : claims.ports) {
      if (port >= kFirstPort && port < kFirstPort + kPorts) ports.set(port, false);
    }
    return ports.object();
  };
  try {
    storage::Preconditions none;
    co_await ranges_.guaranteed_update(kPortsKey, true, std::move(none), std::move(update));
  } catch (const storage::StorageError& e) {
    log::warn("cannot release node ports: {}", e.what());
  }
}

}  // namespace lookout::apiserver::resources
