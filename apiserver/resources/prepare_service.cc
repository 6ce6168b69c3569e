// Changes that the server makes to a service before it stores it, except allocations
// (k8s.io/kubernetes/pkg/registry/core/service).
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;

// These functions take the spec of a service.

bool has_address(const json::Value& spec) { return json::text(spec, "type") != "ExternalName"; }

bool has_balancer(const json::Value& spec) { return json::text(spec, "type") == "LoadBalancer"; }

bool has_node_ports(const json::Value& spec) {
  return has_balancer(spec) || json::text(spec, "type") == "NodePort";
}

bool has_health_check(const json::Value& spec) {
  return has_balancer(spec) && json::text(spec, "externalTrafficPolicy") == "Local";
}

bool is_unset(const json::Value& spec, std::string_view field) {
  const json::Value* value = json::find(spec, field);
  return value == nullptr || value->IsNull() || (value->IsArray() && value->Empty()) ||
         (value->IsString() && value->GetStringLength() == 0);
}

bool is_unchanged(const json::Value& spec, const json::Value& old, std::string_view field) {
  if (is_unset(spec, field) || is_unset(old, field))
    return is_unset(spec, field) == is_unset(old, field);
  return *json::find(spec, field) == *json::find(old, field);
}

std::set<std::int64_t> node_ports_of(const json::Value& spec) {
  std::set<std::int64_t> out;
  json::for_each(spec, "ports", [&](const json::Value& port) {
    if (const auto number = json::integer(port, "nodePort", 0); number != 0) out.insert(number);
  });
  return out;
}

void set_addresses(json::Value& spec, std::string_view only, Allocator& allocator) {
  json::Value addresses(rapidjson::kArrayType);
  addresses.PushBack(json::copy_text(only, allocator), allocator);
  json::set(spec, "clusterIPs", std::move(addresses), allocator);
}

/// Sets clusterIPs to clusterIP if it is empty.
void list_address(json::Value& spec, Allocator& allocator) {
  if (!is_unset(spec, "clusterIP") && is_unset(spec, "clusterIPs"))
    set_addresses(spec, std::string(json::text(spec, "clusterIP")), allocator);
}

/// Old clients set only clusterIP, not clusterIPs.
void unite_addresses(json::Value& spec, const json::Value& old, Allocator& allocator) {
  const std::string address(json::text(spec, "clusterIP"));
  const bool is_kept = is_unchanged(spec, old, "clusterIP");
  if (is_kept && is_unset(spec, "clusterIPs")) json::take(spec, old, "clusterIPs", allocator);
  if (!is_kept && is_unchanged(spec, old, "clusterIPs")) {
    if (address.empty()) {
      json::erase(spec, "clusterIPs");
    } else {
      set_addresses(spec, address, allocator);
    }
  }
  // The old service may have no clusterIPs.
  if (has_address(spec)) list_address(spec, allocator);
}

/// A port keeps the node port of the old port with its name, unless another port requests that.
void keep_node_ports(json::Value& spec, const json::Value& old, Allocator& allocator) {
  const std::set<std::int64_t> requested = node_ports_of(spec);
  std::map<std::string_view, std::int64_t> before;
  json::for_each(old, "ports", [&](const json::Value& port) {
    before[json::text(port, "name")] = json::integer(port, "nodePort", 0);
  });
  json::for_each(spec, "ports", [&](json::Value& port) {
    if (!port.IsObject() || json::integer(port, "nodePort", 0) != 0) return;
    const auto found = before.find(json::text(port, "name"));
    if (found != before.end() && found->second != 0 && !requested.contains(found->second))
      json::set(port, "nodePort", json::Value(found->second), allocator);
  });
}

/// Keeps allocated values that the client omits (patchAllocatedValues).
void keep_allocated(json::Value& spec, const json::Value& old, Allocator& allocator) {
  if (has_address(spec) && has_address(old)) {
    for (const char* field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      if (is_unset(spec, field)) json::take(spec, old, field, allocator);
    }
  }
  if (has_node_ports(spec) && has_node_ports(old)) keep_node_ports(spec, old, allocator);
  if (has_health_check(spec) && has_health_check(old) &&
      json::integer(spec, "healthCheckNodePort", 0) == 0)
    json::take(spec, old, "healthCheckNodePort", allocator);
}

/// Drops values that the new type does not have, unless the client has changed them, which validation
/// rejects (dropTypeDependentFields).
void drop_unused(json::Value& spec, const json::Value& old) {
  const auto drop = [&](std::string_view field) {
    if (is_unchanged(spec, old, field)) json::erase(spec, field);
  };
  if (has_address(old) && !has_address(spec)) {
    if (is_unchanged(spec, old, "clusterIP") && is_unchanged(spec, old, "clusterIPs")) {
      json::erase(spec, "clusterIP");
      json::erase(spec, "clusterIPs");
    }
    drop("ipFamilies");
    drop("ipFamilyPolicy");
  }
  if (has_node_ports(old) && !has_node_ports(spec)) {
    // The ports may be in another order.
    const std::set<std::int64_t> now = node_ports_of(spec);
    const std::set<std::int64_t> before = node_ports_of(old);
    if (std::includes(before.begin(), before.end(), now.begin(), now.end())) {
      json::for_each(spec, "ports", [](json::Value& port) { json::erase(port, "nodePort"); });
    }
  }
  if (has_health_check(old) && !has_health_check(spec)) drop("healthCheckNodePort");
  if (has_balancer(old) && !has_balancer(spec)) {
    drop("allocateLoadBalancerNodePorts");
    drop("loadBalancerClass");
  }
  if (is_externally_accessible(old) && !is_externally_accessible(spec))
    drop("externalTrafficPolicy");
}

}  // namespace

void prepare_service(json::Value& service, Allocator& allocator) {
  if (json::Value* spec = json::find(service, "spec"); spec != nullptr && spec->IsObject())
    list_address(*spec, allocator);
  json::child(json::child(service, "status", allocator), "loadBalancer", allocator);
}

void prepare_service_update(json::Value& service, const json::Value& old_service,
                            Allocator& allocator) {
  json::Value* spec = json::find(service, "spec");
  const json::Value* old = json::find(old_service, "spec");
  if (spec == nullptr || old == nullptr || !spec->IsObject() || !old->IsObject()) return;
  keep_allocated(*spec, *old, allocator);
  unite_addresses(*spec, *old, allocator);
  drop_unused(*spec, *old);
  if (has_balancer(*spec)) return;
  json::set(json::child(service, "status", allocator), "loadBalancer", json::object(), allocator);
}

}  // namespace lookout::apiserver::resources
