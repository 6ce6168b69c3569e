// Cluster IPs and node ports of services.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "apiserver/json.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The addresses and ports that a service owns exclusively.
struct ServiceClaims {
  std::set<std::string> addresses = {};
  std::set<std::int64_t> ports = {};
  /// The elements of `ports` that belong to the service's ports.
  std::set<std::int64_t> node_ports = {};
  /// The health check port in `ports`; set, possibly to 0, if the service needs one.
  std::optional<std::int64_t> health_check_port = {};
  /// False for a new service.
  bool exists = false;
};

/// The claims of a stored service. They may be outside of this server's ranges.
ServiceClaims claims_of(const api::Object& service);

/// Allocates cluster IPs and node ports (k8s.io/kubernetes/pkg/registry/core/service). Allocations are
/// in the storage, so that several servers can share it: addresses as networking.k8s.io/v1 IPAddress
/// objects, ports as a bitmap in a RangeAllocation. Thread-safe.
class ServiceAllocator {
 public:
  /// `range` is an IPv4 range such as "10.0.0.0/16"; throws InvalidArgument. All must outlive it.
  ServiceAllocator(const Store& store, ServedResourcePtr addresses, storage::Interface& ranges,
                   const std::string& range, bool managed_fields);

  /// Returns the service with its addresses and ports, including those that it `had` before. `taken`
  /// receives the new allocations, also if an api::StatusError is thrown. A dry run allocates nothing.
  /// The service must be valid.
  Awaitable<api::Object> complete(api::Object service, ServiceClaims had, bool dry_run,
                                  ServiceClaims& taken) const;

  Awaitable<void> release(ServiceClaims claims) const;

  /// For each node port that no service has, the number of consecutive repairs that have found it
  /// allocated.
  using LeakedPorts = std::map<std::int64_t, int>;
  /// Allocates what stored services have in this server's ranges, so that no other service gets it, and
  /// releases what no service has: addresses after a minute, ports in the third repair, because a
  /// service may be about to be created. Call it periodically, with the same `leaked`.
  Awaitable<void> repair(ServedResourcePtr services, LeakedPorts& leaked) const;

  const std::string& range() const { return range_; }

 private:
  /// One call of complete().
  struct Operation {
    const ServiceClaims& had;
    bool dry_run;
    ServiceClaims& taken;
    /// The allocations so far; in a dry run, they are not in the storage.
    std::set<std::int64_t> ports = {};
  };
  /// A port, or 0 and the reason.
  struct TakenPort {
    int number = 0;
    std::string fault = {};
  };

  Awaitable<void> complete_addresses(json::Document& service, Operation& operation) const;
  Awaitable<void> complete_node_ports(json::Document& service, Operation& operation) const;
  Awaitable<void> complete_health_check(json::Document& service, Operation& operation) const;
  Awaitable<std::string> take_any_address(json::Document& service, bool dry_run) const;
  Awaitable<bool> take_address(std::string address, std::string ns, std::string name) const;
  /// The requested port; 0: any.
  Awaitable<TakenPort> take_port(std::int64_t wanted, Operation& operation) const;
  bool contains(std::uint32_t address) const;
  bool contains(const std::string& address) const;

  // service_repair.cc
  struct Stored;
  Awaitable<Stored> read_stored(ServedResourcePtr services) const;
  /// Allocates the addresses that the service should have. Returns those that were not allocated.
  Awaitable<std::set<std::string>> mark_addresses(const Stored& stored, std::string key) const;
  /// Allocates these and returns those of them that were not allocated.
  Awaitable<std::set<std::int64_t>> mark_ports(std::set<std::int64_t> wanted) const;
  Awaitable<void> release_addresses(const Stored& stored, ServedResourcePtr services) const;
  Awaitable<void> release_ports(const Stored& stored, LeakedPorts& leaked) const;
  /// Deletes an IPAddress. False if it has been deleted or replaced.
  Awaitable<bool> remove_address(api::Object address) const;

  const Store& store_;
  const ServedResourcePtr addresses_;
  storage::Interface& ranges_;
  const std::string range_;
  /// Whether addresses have managedFields.
  const bool managed_fields_;
  std::uint32_t base_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace lookout::apiserver::resources
