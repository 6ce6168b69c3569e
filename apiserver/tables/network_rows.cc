// The rows of services and networking.
#include <fmt/format.h>

#include <set>

#include "apiserver/tables/rows.h"

namespace lookout::apiserver::tables {
namespace {

using api::Object;
using api::Value;

constexpr std::size_t kMost = 3;

/// The addresses of a load balancer. Not truncated, as tables contain the wide output.
std::string load_balancer(const Object& object) {
  std::set<std::string> points;
  for (const Value point : object["status"]["loadBalancer"]["ingress"].elements()) {
    const auto address = or_else(point["ip"], point["hostname"].as_string());
    if (!address.empty()) points.emplace(address);
  }
  return join({points.begin(), points.end()}, ",");
}

std::string external_ip(const Object& service) {
  const Value spec = service["spec"];
  const auto type = spec["type"].as_string();
  const std::string external = join(spec["externalIPs"], ",");
  if (type == "ClusterIP" || type == "NodePort") return external.empty() ? "<none>" : external;
  if (type == "ExternalName") return std::string(spec["externalName"].as_string());
  if (type != "LoadBalancer") return "<unknown>";
  const std::string balancer = load_balancer(service);
  if (external.empty()) return balancer.empty() ? "<pending>" : balancer;
  return balancer.empty() ? external : balancer + "," + external;
}

std::string host_and_port(std::string_view host, std::int64_t port) {
  const bool in_brackets = host.find(':') != std::string_view::npos;
  return in_brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// The hosts of the first rules, and the number of the others.
std::string ingress_hosts(Value rules) {
  std::vector<std::string> hosts;
  bool more = false;
  for (const Value rule : rules.elements()) {
    if (hosts.size() == kMost) more = true;
    const auto host = rule["host"].as_string();
    if (!more && !host.empty()) hosts.emplace_back(host);
  }
  if (hosts.empty()) return "*";
  const std::string shown = join(hosts, ",");
  return more ? fmt::format("{} + {} more...", shown, rules.size() - kMost) : shown;
}

}  // namespace

void service_row(const Object& service, Cells& cells) {
  const Value spec = service["spec"];
  cells.text(service.name());
  cells.text(spec["type"].as_string());
  cells.text(or_else(spec["clusterIPs"][0], or_else(spec["clusterIP"], "<none>")));
  cells.text(external_ip(service));
  std::vector<std::string> ports;
  for (const Value port : spec["ports"].elements()) {
    const auto node_port = port["nodePort"].as_int();
    ports.push_back(fmt::format("{}{}/{}", port["port"].as_int(),
                                node_port > 0 ? fmt::format(":{}", node_port) : "",
                                port["protocol"].as_string()));
  }
  cells.text(ports.empty() ? "<none>" : join(ports, ","));
  cells.age(created(service));
  cells.text(format_labels(spec["selector"]));
}

void endpoints_row(const Object& endpoints, Cells& cells) {
  cells.text(endpoints.name());
  const Value subsets = endpoints["subsets"];
  Shortened list(kMost);
  for (const Value subset : subsets.elements()) {
    const Value addresses = subset["addresses"];
    if (subset["ports"].empty()) {
      for (const Value address : addresses.elements())
        list.add(std::string(address["ip"].as_string()));
    }
    for (const Value port : subset["ports"].elements()) {
      for (const Value address : addresses.elements())
        list.add(host_and_port(address["ip"].as_string(), port["port"].as_int()));
    }
  }
  cells.text(list.text(subsets.empty() ? "<none>" : ""));
  cells.age(created(endpoints));
}

void endpoint_slice_row(const Object& slice, Cells& cells) {
  cells.text(slice.name());
  cells.text(slice["addressType"].as_string());
  Shortened ports(kMost);
  for (const Value port : slice["ports"].elements()) {
    const auto number = port["port"].to_int();
    ports.add(number ? std::to_string(*number) : std::string(port["name"].as_string("*")));
  }
  cells.text(ports.text("<unset>"));
  Shortened addresses(kMost);
  for (const Value endpoint : slice["endpoints"].elements()) {
    for (const Value address : endpoint["addresses"].elements())
      addresses.add(std::string(address.as_string()));
  }
  cells.text(addresses.text("<unset>"));
  cells.age(created(slice));
}

void ingress_row(const Object& ingress, Cells& cells) {
  const Value spec = ingress["spec"];
  cells.text(ingress.name());
  cells.text(spec["ingressClassName"].as_string("<none>"));
  cells.text(ingress_hosts(spec["rules"]));
  cells.text(load_balancer(ingress));
  cells.text(spec["tls"].empty() ? "80" : "80, 443");
  cells.age(created(ingress));
}

void ingress_class_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(object["spec"]["controller"].as_string());
  std::string parameters = "<none>";
  if (const Value reference = object["spec"]["parameters"]; reference.is_object()) {
    parameters = reference["kind"].as_string();
    if (const auto group = reference["apiGroup"].to_string_view())
      parameters += fmt::format(".{}", *group);
    parameters += fmt::format("/{}", reference["name"].as_string());
  }
  cells.text(parameters);
  cells.age(created(object));
}

void network_policy_row(const Object& policy, Cells& cells) {
  cells.text(policy.name());
  const Value selector = policy["spec"]["podSelector"];
  // A policy without a selector applies to all pods.
  cells.text(selector.exists() ? format_selector(selector) : "<none>");
  cells.age(created(policy));
}

void service_cidr_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(join(object["spec"]["cidrs"], ","));
  cells.age(created(object));
}

void ip_address_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  std::string parent = "<none>";
  if (const Value reference = object["spec"]["parentRef"]; reference.is_object()) {
    parent = reference["resource"].as_string();
    if (const auto group = reference["group"].as_string(); !group.empty())
      parent += fmt::format(".{}", group);
    if (const auto ns = reference["namespace"].as_string(); !ns.empty())
      parent += fmt::format("/{}", ns);
    parent += fmt::format("/{}", reference["name"].as_string());
  }
  cells.text(parent);
}

}  // namespace lookout::apiserver::tables
