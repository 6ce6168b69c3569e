#include "cmd/cluster/services.h"

#include <algorithm>
#include <optional>

#include "cmd/cluster/names.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::core::v1::ServicePort;

bool selects(const Service& service, const Pod& pod) {
  const api::Value selector = service["spec"]["selector"];
  if (!selector.is_object() || selector.empty()) return false;
  for (const auto& [name, value] : selector.members()) {
    if (pod.labels()[name].as_string() != value.as_string()) return false;
  }
  return true;
}

std::string_view protocol_or_tcp(std::string_view protocol) {
  return protocol.empty() ? "TCP" : protocol;
}

std::optional<std::int32_t> named_port(api::Value container, std::string_view name,
                                       std::string_view protocol) {
  for (const api::Value port : container["ports"].elements()) {
    if (port["name"].as_string() == name &&
        protocol_or_tcp(port["protocol"].as_string()) == protocol)
      return static_cast<std::int32_t>(port["containerPort"].as_int());
  }
  return std::nullopt;
}

/// The number of a service's port in a pod: a number, or the port that a container or a sidecar names.
std::optional<std::int32_t> target_in(const Pod& pod, const ServicePort& port) {
  const auto target = port.target_port();
  if (!target) return port.port();
  if (target.is_int()) return target.int_value();
  const std::string_view protocol = protocol_or_tcp(port.protocol());
  for (const api::Value container : pod["spec"]["containers"].elements()) {
    if (const auto found = named_port(container, target.string_value(), protocol)) return found;
  }
  for (const api::Value container : pod["spec"]["initContainers"].elements()) {
    if (container["restartPolicy"].as_string() != "Always") continue;
    if (const auto found = named_port(container, target.string_value(), protocol)) return found;
  }
  return std::nullopt;
}

bool has_ended(const Pod& pod) {
  const std::string_view phase = pod.status().phase();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

bool has_managed_endpoints(const Service& service) {
  return !service["spec"]["selector"].empty() && service.spec().type() != "ExternalName";
}

bool is_headless(const Service& service) {
  const std::string_view address = service.spec().cluster_ip();
  return address.empty() || address == "None";
}

std::vector<Pod> backends_of(const Service& service, Context& context) {
  auto pods = context.list<Pod>(service.ns());
  std::erase_if(pods, [&](const Pod& pod) {
    return pod.status().pod_ip().empty() || has_ended(pod) || !selects(service, pod);
  });
  std::sort(pods.begin(), pods.end(),
            [](const Pod& a, const Pod& b) { return a.name() < b.name(); });
  return pods;
}

std::string_view address_in(const Pod& pod, std::string_view family) {
  const auto is_of = [&](std::string_view address) {
    return !address.empty() && (address.find(':') != std::string_view::npos) == (family == "IPv6");
  };
  for (const api::Value one : pod["status"]["podIPs"].elements()) {
    if (const std::string_view address = one["ip"].as_string(); is_of(address)) return address;
  }
  const std::string_view address = pod["status"]["podIP"].as_string();
  return is_of(address) ? address : std::string_view();
}

std::vector<std::string> families_of(const Service& service) {
  std::vector<std::string> out;
  for (const std::string_view family : service.spec().ip_families()) out.emplace_back(family);
  if (out.empty()) out.emplace_back("IPv4");
  return out;
}

BackendPorts ports_in(const Pod& pod, const Service& service) {
  BackendPorts out;
  for (const auto port : service.spec().ports()) {
    const auto number = target_in(pod, port);
    if (!number) continue;
    out.push_back({.name = std::string(port.name()),
                   .port = *number,
                   .protocol = std::string(protocol_or_tcp(port.protocol())),
                   .app_protocol = std::string(port.app_protocol())});
  }
  return out;
}

void set_ports(const api::DraftPart& list, const BackendPorts& ports, bool names_unnamed) {
  list.set_empty_list();
  for (const BackendPort& port : ports) {
    const auto out = list.append();
    if (names_unnamed || !port.name.empty()) out["name"].set(port.name);
    out["port"].set(port.port);
    out["protocol"].set(port.protocol);
    if (!port.app_protocol.empty()) out["appProtocol"].set(port.app_protocol);
  }
}

void describe_backend(const api::DraftPart& out, const Pod& pod, const Service& service) {
  if (const std::string_view node = pod.spec().node_name(); !node.empty())
    out["nodeName"].set(node);
  const std::string_view host = pod.spec().hostname();
  if (!host.empty() && pod.spec().subdomain() == service.name()) out["hostname"].set(host);
  out["targetRef"]["kind"].set("Pod");
  out["targetRef"]["name"].set(pod.name());
  out["targetRef"]["namespace"].set(pod.ns());
  out["targetRef"]["uid"].set(pod.uid());
}

void enqueue_services(controller::Manager& manager, const Pod& pod, Enqueue& enqueue) {
  for (const Service& service : manager.cache().view().list<Service>(pod.ns())) {
    if (selects(service, pod)) enqueue(Request(service.ns(), service.name()));
  }
}

}  // namespace lookout::cmd::cluster
