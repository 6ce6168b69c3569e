// ServiceAllocator::repair(), as kube-apiserver's repair controllers
// (pkg/registry/core/service/{ipallocator,portallocator}/controller).
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/node_port_map.h"
#include "apiserver/resources/service_allocator.h"
#include "lookout/api/time.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::resources {
namespace {

/// A service is created within this time after the allocation of its addresses: kube-apiserver's
/// --request-timeout.
constexpr std::chrono::seconds kCreation{60};
constexpr int kRepairsToRelease = 3;

Awaitable<std::vector<Object>> stored_objects(ServedResourcePtr resource) {
  std::string everywhere;
  storage::ListOptions options;
  storage::ListResult list =
      co_await resource->storage->list(std::move(everywhere), true, std::move(options));
  co_return co_await storage::read_all(std::move(list));
}

bool is_recent(const Object& address) {
  const auto created = api::parse_time(address["metadata"]["creationTimestamp"].as_string());
  return created && std::chrono::system_clock::now() - *created < kCreation;
}

/// The key of the service that an IPAddress refers to; empty if it refers to something else.
std::string service_of(const Object& address) {
  const api::Value parent = address["spec"]["parentRef"];
  if (!parent["group"].as_string().empty() || parent["resource"].as_string() != "services")
    return {};
  return fmt::format("{}/{}", parent["namespace"].as_string(), parent["name"].as_string());
}

bool is_allocated_by_a_server(const Object& address) {
  return address.labels()["ipaddress.kubernetes.io/managed-by"].as_string() == "ipallocator.k8s.io";
}

}  // namespace

struct ServiceAllocator::Stored {
  /// By key.
  std::map<std::string, ServiceClaims> services = {};
  /// By name.
  std::map<std::string, Object> addresses = {};

  bool has(const std::string& service, const std::string& address) const {
    const auto found = services.find(service);
    return found != services.end() && found->second.addresses.contains(address);
  }
};

Awaitable<ServiceAllocator::Stored> ServiceAllocator::read_stored(
    ServedResourcePtr services) const {
  Stored out;
  // In this order: an address that is not in the second list is not that of a service in the first one,
  // unless both have been deleted.
  const std::vector<Object> all = co_await stored_objects(std::move(services));
  for (const Object& service : all) out.services.emplace(service.key(), claims_of(service));
  ServedResourcePtr of_addresses = addresses_;
  const std::vector<Object> allocated = co_await stored_objects(std::move(of_addresses));
  for (const Object& address : allocated) out.addresses.emplace(address.name(), address);
  co_return out;
}

Awaitable<bool> ServiceAllocator::remove_address(Object address) const {
  std::string name(address.name());
  storage::Preconditions same;
  same.uid = std::string(address.uid());
  storage::Interface::Validate anything;
  try {
    co_await addresses_->storage->remove(std::move(name), std::move(same), std::move(anything));
  } catch (const storage::StorageError& e) {
    using Code = storage::StorageError::Code;
    if (e.code() != Code::kKeyNotFound && e.code() != Code::kInvalidObject) throw;
    co_return false;
  }
  co_return true;
}

Awaitable<std::set<std::string>> ServiceAllocator::mark_addresses(const Stored& stored,
                                                                  std::string key) const {
  std::set<std::string> added;
  const std::size_t slash = key.find('/');
  for (const std::string& address : stored.services.at(key).addresses) {
    if (!contains(address)) continue;
    if (const auto found = stored.addresses.find(address); found != stored.addresses.end()) {
      const std::string owner = service_of(found->second);
      if (owner == key) continue;
      if (stored.has(owner, address)) {
        log::warn("the services {} and {} have the same cluster IP {}: create one of them again",
                  owner, key, address);
        continue;
      }
      if (is_recent(found->second)) continue;
      Object of_another = found->second;
      const bool removed = co_await remove_address(std::move(of_another));
      if (!removed) continue;
    }
    std::string text = address;
    std::string ns = key.substr(0, slash);
    std::string name = key.substr(slash + 1);
    const bool taken = co_await take_address(std::move(text), std::move(ns), std::move(name));
    if (taken) added.insert(address);
  }
  co_return added;
}

Awaitable<std::set<std::int64_t>> ServiceAllocator::mark_ports(
    std::set<std::int64_t> wanted) const {
  std::set<std::int64_t> added;
  storage::Interface::Update update = [&](const Object& present) {
    NodePortMap ports(present);
    added.clear();
    for (const std::int64_t port : wanted) {
      if (!NodePortMap::covers(port) || ports.is_taken(port)) continue;
      ports.set(port, true);
      added.insert(port);
    }
    return added.empty() && present ? present : ports.object();
  };
  const Object present = co_await ranges_.get(NodePortMap::kKey);
  update(present);
  if (added.empty()) co_return added;
  storage::Preconditions none;
  co_await ranges_.guaranteed_update(NodePortMap::kKey, true, std::move(none), std::move(update));
  co_return added;
}

Awaitable<void> ServiceAllocator::release_addresses(const Stored& stored,
                                                    ServedResourcePtr services) const {
  for (const auto& [name, address] : stored.addresses) {
    if (!contains(name) || !is_allocated_by_a_server(address) || is_recent(address)) continue;
    const std::string owner = service_of(address);
    if (stored.has(owner, name)) continue;
    // The service may have got the address since the list.
    Object now;
    if (!owner.empty()) now = co_await services->storage->get(owner);
    if (now && claims_of(now).addresses.contains(name)) continue;
    Object same = address;
    const bool removed = co_await remove_address(std::move(same));
    if (removed) log::warn("released the cluster IP {}, which no service has", name);
  }
}

Awaitable<void> ServiceAllocator::release_ports(const Stored& stored, LeakedPorts& leaked) const {
  std::set<std::int64_t> used;
  for (const auto& [key, claims] : stored.services)
    used.insert(claims.ports.begin(), claims.ports.end());
  const Object present = co_await ranges_.get(NodePortMap::kKey);
  LeakedPorts still;
  ServiceClaims unused;
  for (const std::int64_t port : NodePortMap(present).taken()) {
    if (used.contains(port)) continue;
    const auto before = leaked.find(port);
    const int repairs = before == leaked.end() ? 1 : before->second + 1;
    if (repairs < kRepairsToRelease) {
      still.emplace(port, repairs);
    } else {
      unused.ports.insert(port);
    }
  }
  leaked = std::move(still);
  if (unused.ports.empty()) co_return;
  log::warn("released {} node ports, which no service has", unused.ports.size());
  co_await release(std::move(unused));
}

Awaitable<void> ServiceAllocator::repair(ServedResourcePtr services, LeakedPorts& leaked) const {
  ServedResourcePtr same = services;
  const Stored stored = co_await read_stored(std::move(same));
  std::set<std::int64_t> wanted;
  for (const auto& [key, claims] : stored.services)
    wanted.insert(claims.ports.begin(), claims.ports.end());
  const std::set<std::int64_t> ports = co_await mark_ports(std::move(wanted));
  for (const auto& [key, claims] : stored.services) {
    ServiceClaims taken;
    std::string of_service = key;
    taken.addresses = co_await mark_addresses(stored, std::move(of_service));
    for (const std::int64_t port : claims.ports) {
      if (ports.contains(port)) taken.ports.insert(port);
    }
    if (taken.addresses.empty() && taken.ports.empty()) continue;
    log::warn("allocated {} addresses and {} ports of the service {}, which were not allocated",
              taken.addresses.size(), taken.ports.size(), key);
    // Another server may have released them since the list.
    const Object now = co_await services->storage->get(key);
    const ServiceClaims kept = now ? claims_of(now) : ServiceClaims();
    for (const std::string& address : kept.addresses) taken.addresses.erase(address);
    for (const std::int64_t port : kept.ports) taken.ports.erase(port);
    co_await release(std::move(taken));
  }
  co_await release_addresses(stored, services);
  co_await release_ports(stored, leaked);
}

}  // namespace lookout::apiserver::resources
