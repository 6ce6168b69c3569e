#include "registry/services/slice_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/k8s/discovery/v1.h"
#include "lookout/registry/services/registry.h"

namespace lookout::registry::services {
namespace {

std::string protocol_of(const k8s::discovery::v1::EndpointPort& port) {
  // "kubernetes.io/h2c", "example.com/rpc": drop the domain.
  std::string_view protocol = port.app_protocol();
  protocol.remove_prefix(protocol.rfind('/') + 1);
  if (!protocol.empty()) return std::string(protocol);
  const std::string_view name = port.name();
  if (!name.empty()) return std::string(name.substr(0, name.find('-')));
  return std::string(port.protocol().empty() ? "TCP" : port.protocol());
}

/// The instances of a SliceReader, until choose() has selected those that are announced.
struct SliceInstance : ServiceInstance {
  bool serves_to_the_end = false;  // it terminates, but still serves
};

/// `instance` comes from SliceReader::read() or merged().
const SliceInstance& details(const InstancePtr& instance) {
  return static_cast<const SliceInstance&>(*instance);
}

bool is_ready(const k8s::discovery::v1::Endpoint& endpoint) {
  const auto conditions = endpoint.conditions();
  return conditions.ready().value_or(true) && !conditions.terminating().value_or(false);
}

bool serves_to_the_end(const k8s::discovery::v1::Endpoint& endpoint) {
  const auto conditions = endpoint.conditions();
  return conditions.terminating().value_or(false) && conditions.serving().value_or(true);
}

}  // namespace

const api::Projection& SliceReader::projection() {
  static const auto kProjection =
      api::Projection::keep({"metadata.labels['kubernetes.io/service-name']", "endpoints.addresses",
                             "endpoints.conditions", "endpoints.hostname", "endpoints.nodeName",
                             "endpoints.zone", "endpoints.targetRef.kind",
                             "endpoints.targetRef.name", "endpoints.targetRef.namespace", "ports"});
  return kProjection;
}

void SliceReader::services_of(const api::Object& slice, cache::IndexValues& services) const {
  const std::string_view name = slice.labels()[kServiceNameLabel].as_string();
  if (name.empty()) return;
  if (qualified_) {
    services.add(fmt::format("{}/{}", slice.ns(), name));
  } else {
    services.add(name);
  }
}

bool SliceReader::read(const api::Object& object, std::string_view,
                       std::vector<InstancePtr>& instances) const {
  const k8s::discovery::v1::EndpointSlice slice(object);
  for (const auto endpoint : slice.endpoints()) {
    const bool ready = is_ready(endpoint);
    const bool leaves = serves_to_the_end(endpoint);
    if ((!ready && !leaves && !include_unready_) || endpoint.addresses().empty()) continue;
    SliceInstance instance;
    instance.serves_to_the_end = leaves;
    instance.name = object.labels()[kServiceNameLabel].as_string();
    instance.ready = ready;
    instance.zone = endpoint.zone();
    // An endpoint's addresses are interchangeable; kube-proxy uses the first, too.
    const std::string_view address = endpoint.addresses()[0];
    const auto target = endpoint.target_ref();
    if (target.kind() == "Pod" && !target.name().empty()) {
      instance.id = target.name();
      const std::string_view ns = target.namespace_();
      instance.origin = fmt::format("{}/{}", ns.empty() ? object.ns() : ns, target.name());
    } else {
      instance.id = address;
      instance.origin = fmt::format("{}/{}", object.ns(), address);
    }
    if (!endpoint.node_name().empty()) instance.metadata["node"] = endpoint.node_name();
    if (!endpoint.hostname().empty()) instance.metadata["hostname"] = endpoint.hostname();
    for (const auto port : slice.ports()) {
      if (!port.port()) continue;  // "all ports" is not an endpoint
      if (*port.port() < 1 || *port.port() > 65535) continue;
      instance.endpoints.emplace_back(protocol_of(port), address,
                                      static_cast<std::uint16_t>(*port.port()));
    }
    instances.push_back(std::make_shared<const SliceInstance>(std::move(instance)));
  }
  return true;
}

InstancePtr SliceReader::merged(const InstancePtr& a, const InstancePtr& b) const {
  SliceInstance out = details(a);
  for (const auto& endpoint : b->endpoints) {
    if (std::ranges::find(out.endpoints, endpoint) == out.endpoints.end()) {
      out.endpoints.push_back(endpoint);
    }
  }
  // Slices are unordered.
  std::ranges::sort(out.endpoints);
  out.metadata.insert(b->metadata.begin(), b->metadata.end());
  if (out.zone.empty()) out.zone = b->zone;
  out.ready = a->ready || b->ready;
  out.serves_to_the_end = details(a).serves_to_the_end || details(b).serves_to_the_end;
  return std::make_shared<const SliceInstance>(std::move(out));
}

void SliceReader::choose(std::vector<InstancePtr>& instances) const {
  const bool any_ready = std::ranges::any_of(instances, &ServiceInstance::ready);
  std::vector<InstancePtr> out;
  out.reserve(instances.size());
  for (InstancePtr& instance : instances) {
    if (!any_ready && details(instance).serves_to_the_end) {
      ServiceInstance serving = *instance;
      serving.ready = true;
      out.push_back(std::make_shared<const ServiceInstance>(std::move(serving)));
    } else if (instance->ready || include_unready_) {
      out.push_back(std::move(instance));
    }
  }
  instances = std::move(out);
}

}  // namespace lookout::registry::services
