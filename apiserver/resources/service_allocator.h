// Cluster IPs and node ports of services.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "apiserver/json.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The addresses and ports that a service owns exclusively.
struct ServiceClaims {
  std::set<std::string> addresses = {};
  std::set<int> ports = {};
};

ServiceClaims claims_of(const api::Object& service);

/// Hands out cluster IPs and node ports (k8s.io/kubernetes/pkg/registry/core/service). What is
/// taken is in the storage, so that servers that share one do not hand out anything twice:
/// addresses as objects of networking.k8s.io/v1 IPAddress, ports as a bitmap in a RangeAllocation.
/// Safe to use from many threads.
class ServiceAllocator {
 public:
  /// `range` is an IPv4 range such as "10.0.0.0/16"; throws InvalidArgument. All must outlive it.
  ServiceAllocator(const Store& store, ServedResourcePtr addresses, storage::Interface& ranges,
                   const std::string& range, bool managed_fields);

  /// The service with all that it needs, what it `had` before included; what has been taken for it
  /// comes in `taken`, also when an api::StatusError is thrown. A dry run takes nothing.
  Awaitable<api::Object> complete(api::Object service, ServiceClaims had, bool dry_run,
                                  ServiceClaims& taken) const;

  Awaitable<void> release(ServiceClaims claims) const;

  const std::string& range() const { return range_; }

 private:
  Awaitable<std::string> take_any_address(json::Document& service, bool dry_run) const;
  Awaitable<bool> take_address(std::string address, std::string ns, std::string name) const;
  /// One that is asked for, or, with 0, any.
  Awaitable<int> take_port(int wanted, bool dry_run) const;
  bool contains(std::uint32_t address) const;

  const Store& store_;
  const ServedResourcePtr addresses_;
  storage::Interface& ranges_;
  const std::string range_;
  /// Whether addresses say who has written them.
  const bool managed_fields_;
  std::uint32_t base_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace lookout::apiserver::resources
