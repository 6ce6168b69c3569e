// Validation of services and their endpoints, ingresses, network policies and addresses.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"
#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

/// Checks an address that is reachable from other hosts.
void check_endpoint_address(const Field& address) {
  const auto parsed = IpAddress::parse(without_leading_zeros(address.text()));
  if (!parsed) return address.invalid_text("must be a valid IP address");
  const auto& bytes = parsed->bytes;
  const bool is_old = parsed->family == 4;
  const auto all_zero = [&](std::size_t end) {
    return std::all_of(bytes.begin(), bytes.begin() + end, [](unsigned char c) { return c == 0; });
  };
  const bool is_loopback = is_old ? bytes[0] == 127 : all_zero(15) && bytes[15] == 1;
  const bool is_local =
      is_old ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80;
  const bool is_multicast = is_old ? bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0
                                   : bytes[0] == 0xFF && (bytes[1] & 0x0F) == 0x02;
  if (all_zero(is_old ? 4 : 16))
    address.invalid_text(fmt::format("may not be unspecified ({})", address.text()));
  if (is_loopback) address.invalid_text("may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (is_local)
    address.invalid_text("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  if (is_multicast) {
    address.invalid_text("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

rules::Messages check_wildcard_subdomain(std::string_view name) {
  constexpr std::size_t kLongest = 253;
  rules::Messages out;
  if (name.size() > kLongest) out.emplace_back("must be no more than 253 bytes");
  if (!name.starts_with("*.") || !rules::check_dns1123_subdomain(name.substr(2)).empty()) {
    out.emplace_back(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
        "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
        "alphanumeric character (e.g. '*.example.com', regex used for validation is "
        "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  }
  return out;
}

void check_host(const Field& host) {
  if (host.text().find('*') != std::string_view::npos) {
    host.check_form(check_wildcard_subdomain);
  } else {
    host.check_form(rules::check_dns1123_subdomain);
  }
}

void check_no_address(const Field& host) {
  if (IpAddress::parse(host.text())) host.invalid_text("must be a DNS name, not an IP address");
}

/// A reference to an object of any kind.
void check_typed_reference(const Field& reference) {
  if (reference["apiGroup"].exists())
    reference["apiGroup"].check_form(rules::check_dns1123_subdomain);
  reference["kind"].check_required_form(rules::check_path_segment_name);
  reference["name"].check_required_form(rules::check_path_segment_name);
}

void check_backend(const Field& backend) {
  const Field service = backend["service"];
  const Field resource = backend["resource"];
  const auto refuse = [&](const char* why) {
    backend.causes().push_back(rules::invalid(backend.path(), "", why));
  };
  if (service.exists() && resource.exists())
    return refuse("cannot set both resource and service backends");
  if (resource.exists()) return check_typed_reference(resource);
  if (!service.exists()) return refuse("resource or service backend is required");
  service["name"].check_required_form(rules::check_dns1123_label);
  const Field name = service["port"]["name"];
  const Field number = service["port"]["number"];
  if (!name.empty() && number.number() != 0) {
    refuse("cannot set both port name & port number");
  } else if (!name.empty()) {
    name.check_form(check_port_name);
  } else if (number.number() != 0) {
    number.check_port();
  } else {
    backend.required("port name or number is required");
  }
}

void check_ingress_path(const Field& path) {
  const Field type = path["pathType"];
  const Field text = path["path"];
  if (!type.exists()) return type.required("pathType must be specified");
  const bool is_free = type.text() == "ImplementationSpecific";
  if (type.check_word({"Exact", "ImplementationSpecific", "Prefix"}) &&
      !(is_free && text.empty())) {
    if (!text.text().starts_with('/')) text.invalid_text("must be an absolute path");
    for (const char* part : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (!is_free && text.text().find(part) != std::string_view::npos)
        text.invalid_text(fmt::format("must not contain '{}'", part));
    }
    for (const char* end : {"/..", "/."}) {
      if (!is_free && text.text().ends_with(end))
        text.invalid_text(fmt::format("cannot end with '{}'", end));
    }
  }
  check_backend(path["backend"]);
}

/// An unchanged address is not checked.
void check_balancer_address(const Field& address, Value before) {
  const Field ip = address["ip"];
  const auto old = before.elements();
  if (!ip.empty() &&
      std::none_of(old.begin(), old.end(), [&](Value one) { return ip.is(one["ip"]); }))
    ip.check_ip();
}

void check_balancer_host(const Field& host) {
  if (host.empty()) return;
  host.check_form(rules::check_dns1123_subdomain);
  check_no_address(host);
}

void check_policy_port(const Field& rule) {
  const Field port = rule["port"];
  const Field end = rule["endPort"];
  rule["protocol"].check_word_if_present({"TCP", "UDP", "SCTP"});
  if (!port.exists()) {
    if (end.exists()) end.invalid_number("may not be specified when `port` is not specified");
  } else if ((*port).is_string()) {
    if (end.exists()) end.invalid_number("may not be specified when `port` is non-numeric");
    port.check_form(check_port_name);
  } else {
    port.check_port();
    if (!end.exists()) return;
    if (end.number() < port.number())
      port.named(end.path()).invalid_number("must be greater than or equal to `port`");
    end.check_port();
  }
}

void check_block(const Field& block) {
  if (!block["cidr"].check_present()) return;
  block["cidr"].check_cidr();
  const auto range = IpRange::parse(without_leading_zeros(block["cidr"].text()));
  if (!range) return;
  block["except"].each([&](const Field& except) {
    except.check_cidr();
    const auto part = IpRange::parse(without_leading_zeros(except.text()));
    if (!part) return;
    if (!range->contains(part->address) || part->length <= range->length)
      except.invalid_text("must be a strict subset of `cidr`");
  });
}

void check_peer(const Field& peer) {
  const Field block = peer["ipBlock"];
  const bool by_label = peer["podSelector"].exists() || peer["namespaceSelector"].exists();
  peer["podSelector"].check_label_selector();
  peer["namespaceSelector"].check_label_selector();
  if (block.exists()) check_block(block);
  if (!block.exists() && !by_label) peer.required("must specify a peer");
  if (block.exists() && by_label) peer.forbidden("may not specify both ipBlock and another peer");
}

void check_named_port(const Field& port, bool several) {
  const Field name = port["name"];
  if (name.empty()) {
    if (several) name.required();
  } else {
    name.check_form(rules::check_dns1123_label);
  }
}

void check_protocol(const Field& port) {
  port["protocol"].check_required_word({"SCTP", "TCP", "UDP"});
}

void check_app_protocol(const Field& port) {
  if (port["appProtocol"].exists()) port["appProtocol"].check_form(rules::check_qualified_name);
}

bool is_headless(const Field& spec) {
  return (*spec["clusterIPs"]).size() == 1 && (*spec["clusterIPs"])[0].as_string() == "None";
}

void check_service_port(const Field& port, bool several, std::set<std::string_view>& names) {
  const Field name = port["name"];
  check_named_port(port, several);
  if (!name.empty() && !names.insert(name.text()).second) name.duplicate();
  port["port"].check_port();
  check_protocol(port);
  // The default of targetPort is the port.
  const Field target = port["targetPort"];
  (target.exists() ? target : port["port"].named(target.path())).check_port_or_name();
  check_app_protocol(port);
}

/// Load balancers open this port on nodes.
void check_balanced_port(const Field& port) {
  constexpr std::int64_t kKubelet = 10250;
  if (port["port"].number() != kKubelet) return;
  port["port"]
      .named(port.path())
      .invalid_number(
          fmt::format("may not expose port {} externally since it is used by kubelet", kKubelet));
}

void check_duplicate_ports(const Field& ports, bool is_internal) {
  if (is_internal) {
    ports.each([](const Field& port) {
      if (port["nodePort"].number() != 0)
        port["nodePort"].forbidden("may not be used when `type` is 'ClusterIP'");
    });
  }
  std::set<std::string> seen;
  ports.each([&](const Field& port) {
    if (port["nodePort"].number() != 0 &&
        !seen.insert(fmt::format("{}/{}", port["protocol"].text(), port["nodePort"].number()))
             .second)
      port["nodePort"].duplicate();
  });
  seen.clear();
  ports.each([&](const Field& port) {
    const std::string_view protocol = port["protocol"].text();
    const std::int64_t number = port["port"].number();
    if (seen.insert(fmt::format("{}/{}", protocol, number)).second) return;
    port.causes().push_back(
        {"FieldValueDuplicate",
         fmt::format(R"(Duplicate value: {{"Name":"","Protocol":"{}","AppProtocol":null,)"
                     R"("Port":{},"TargetPort":0,"NodePort":0}})",
                     protocol, number),
         port.path()});
  });
}

void check_affinity_config(const Field& spec) {
  constexpr std::int64_t kMost = 86400;
  const Field config = spec["sessionAffinityConfig"];
  const std::string_view affinity = spec["sessionAffinity"].text();
  constexpr const char* kWhen = "when session affinity type is ClientIP";
  if (affinity == "None" && config.exists())
    return config.forbidden("must not be set when session affinity is None");
  if (affinity != "ClientIP") return;
  if (!config.exists()) return config.required(kWhen);
  if (!config["clientIP"].exists()) return config["clientIP"].required(kWhen);
  const Field timeout = config["clientIP"]["timeoutSeconds"];
  if (!timeout.exists()) return timeout.required(kWhen);
  timeout.check_range(1, kMost, "must be greater than 0 and less than 86400");
}

void check_addresses(const Field& spec) {
  const Field addresses = spec["clusterIPs"];
  const Field families = spec["ipFamilies"];
  const Value list = *addresses;
  const std::string_view first = list[0].as_string();
  const std::string_view address = spec["clusterIP"].text();
  if (!address.empty()) {
    if (addresses.empty()) {
      addresses.required();
    } else if (first != address) {
      addresses.invalid("first value must match `clusterIP`");
    }
  } else if (!addresses.empty()) {
    addresses.invalid("must be empty when `clusterIP` is not specified");
  }
  std::set<std::string_view> seen;
  families.each([&](const Field& family) {
    family.check_word({"IPv4", "IPv6"});
    if (!seen.insert(family.text()).second) family.duplicate();
  });
  spec["ipFamilyPolicy"].check_word_if_present(
      {"PreferDualStack", "RequireDualStack", "SingleStack"});
  bool valid = true;
  if (first == "None" && list.size() > 1) {
    addresses.invalid("'None' must be the first and only value");
    valid = false;
  }
  addresses.each([&](const Field& one) {
    if (one.text() != "None" || one.text() != first) valid &= one.check_ip();
  });
  if (list.size() > 2) addresses.invalid("may only hold up to 2 values");
  if (!valid) return;
  const auto family_of = [&](std::size_t index) {
    const auto parsed = IpAddress::parse(list[index].as_string());
    return parsed ? parsed->family : 0;
  };
  if (list.size() > 1 && (list.size() > 2 || family_of(0) == family_of(1)))
    addresses.invalid("may specify no more than one IP for each IP family");
  if (is_headless(spec)) return;
  std::size_t index = 0;
  addresses.each([&](const Field& one) {
    const std::string_view family = (*families)[index].as_string();
    const bool is_new = family_of(index) == 6;
    if ((family == "IPv4" && is_new) || (family == "IPv6" && !is_new)) {
      one.invalid_text(
          fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", family, index));
    }
    ++index;
  });
}

constexpr std::string_view kSpace = " \t\n\v\f\r";

/// White space around an address range is ignored.
void check_padded_range(const Field& field, std::string_view padded) {
  const std::string_view range = base::trim(padded, kSpace);
  if (const char* const fault = fault_of_cidr(range); fault != nullptr)
    field.causes().push_back(rules::invalid(field.path(), range, fault));
}

/// Checks the address ranges between commas.
void check_listed_ranges(const Field& list) {
  std::string_view rest = base::trim(list.text(), kSpace);
  if (rest.empty()) return;
  for (;;) {
    const std::size_t comma = rest.find(',');
    check_padded_range(list, rest.substr(0, comma));
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

void check_source_ranges(const Field& service, const Field& spec, bool is_balancer) {
  constexpr const char* kOnly = "may only be used when `type` is 'LoadBalancer'";
  constexpr const char* kAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges";
  const Field ranges = spec["loadBalancerSourceRanges"].named("spec.LoadBalancerSourceRanges");
  if (!ranges.empty()) {
    if (!is_balancer) ranges.forbidden(kOnly);
    ranges.each([](const Field& range) { check_padded_range(range, range.text()); });
  } else if (const Field list = service["metadata"]["annotations"].key(kAnnotation);
             list.exists()) {
    if (!is_balancer) list.forbidden(kOnly);
    check_listed_ranges(list);
  }
}

/// A name may end with a dot, which error messages omit.
void check_external_name(const Field& name) {
  std::string_view host = name.text();
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return name.required();
  for (const auto& message : rules::check_dns1123_subdomain(host))
    name.causes().push_back(rules::invalid(name.path(), host, message));
}

/// The old annotation and the new one.
void check_topology_annotations(const Field& annotations) {
  constexpr const char* kOld = "service.kubernetes.io/topology-aware-hints";
  const Field hints = annotations.key(kOld);
  const Field mode = annotations.key("service.kubernetes.io/topology-mode");
  if (hints.exists() && mode.exists() && hints.text() != mode.text())
    mode.invalid_text(fmt::format("must match annotations[{}] when both are specified", kOld));
}

void check_traffic(const Field& spec) {
  const std::string_view type = spec["type"].text();
  const bool is_balancer = type == "LoadBalancer";
  const bool is_external =
      is_balancer || type == "NodePort" || (type == "ClusterIP" && !spec["externalIPs"].empty());
  const Field external = spec["externalTrafficPolicy"];
  if (is_external) {
    external.check_required_word({"Cluster", "Local"});
  } else if (!external.empty()) {
    external.invalid_text("may only be set for externally-accessible services");
  }
  // ServiceAllocator checks the range of a new port.
  const Field health = spec["healthCheckNodePort"];
  if ((!is_balancer || external.text() != "Local") && health.number() != 0) {
    health.invalid_number(
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  }
  spec["internalTrafficPolicy"].check_word_if_present({"Cluster", "Local"});
  spec["trafficDistribution"].check_word_if_present(
      {"PreferClose", "PreferSameZone", "PreferSameNode"});
}

void check_canonical(const Field& field, const std::string& canonical) {
  if (field.text() != canonical)
    field.invalid_text(
        fmt::format("must be in canonical form ({})", api::detail::quote(canonical)));
}

void check_hints(const Field& hints) {
  constexpr std::size_t kMost = 8;
  const auto check = [&](const char* list, auto form) {
    const Field names = hints[list];
    if ((*names).size() > kMost) {
      names.too_many(kMost);
      return false;
    }
    std::set<std::string_view> seen;
    names.each([&](const Field& entry) {
      const Field name = entry["name"];
      if (!seen.insert(name.text()).second) name.duplicate();
      name.check_form(form);
    });
    return true;
  };
  if (check("forZones", rules::check_label_value))
    check("forNodes", rules::check_dns1123_subdomain);
}

/// `is_own`: the Endpoints of this server, which may be reachable only on the loopback interface.
void check_slice_address(const Field& address, const Field& list, std::string_view type,
                         bool is_own) {
  if (type == "FQDN") {
    address.check_form(rules::check_dns1123_subdomain);
    return;
  }
  if (type != "IPv4" && type != "IPv6") return;
  if (!address.check_ip()) return;
  const IpAddress parsed = *IpAddress::parse(address.text());
  const std::string canonical = parsed.to_string();
  if (type == "IPv6" && address.text() != canonical) {
    return address.invalid_text(
        fmt::format("must be in canonical form ({})", api::detail::quote(canonical)));
  }
  if (parsed.family != (type == "IPv4" ? 4 : 6))
    address.named(list.path()).invalid_text(fmt::format("must be an {} address", type));
  if (!is_own) check_endpoint_address(address);
}

}  // namespace

void validate_ingress(const Object& ingress, Causes& causes) {
  const Field spec(ingress["spec"], "spec", causes);
  if (spec["rules"].empty() && !spec["defaultBackend"].exists()) {
    spec["rules"].named("spec").invalid("either `defaultBackend` or `rules` must be specified");
  }
  if (spec["defaultBackend"].exists()) check_backend(spec["defaultBackend"]);
  spec["rules"].each([](const Field& rule) {
    if (const Field host = rule["host"]; !host.empty()) {
      check_no_address(host);
      check_host(host);
    }
    const Field http = rule["http"];
    if (!http.exists()) return;
    http["paths"].check_present();
    http["paths"].each(check_ingress_path);
  });
  spec["tls"].each([](const Field& tls) {
    tls["hosts"].each(check_host);
    tls["secretName"].check_form_if_present(rules::check_dns1123_subdomain);
  });
  if (spec["ingressClassName"].exists())
    spec["ingressClassName"].check_form(rules::check_dns1123_subdomain);
}

void validate_new_ingress(const Object& ingress, Causes& causes) {
  constexpr const char* kClass = "kubernetes.io/ingress.class";
  const Field annotation(ingress.annotations()[kClass], fmt::format("annotations.{}", kClass),
                         causes);
  const Value name = ingress["spec"]["ingressClassName"];
  if (annotation.exists() && name.exists() && annotation.text() != name.as_string())
    annotation.invalid_text("must match `ingressClassName` when both are specified");
}

void validate_ingress_status(const Object& ingress, const Object& old, Causes& causes) {
  const Value before = old["status"]["loadBalancer"]["ingress"];
  Field(ingress["status"]["loadBalancer"]["ingress"], "status.loadBalancer.ingress", causes)
      .each([&](const Field& one) {
        check_balancer_address(one, before);
        check_balancer_host(one["hostname"]);
      });
}

void validate_ingress_class(const Object& object, Causes& causes) {
  constexpr int kLongest = 250;
  const Field spec(object["spec"], "spec", causes);
  const Field controller = spec["controller"];
  if (controller.text().size() > kLongest)
    causes.push_back(rules::too_long(controller.path(), kLongest));
  check_domain_path(controller);
  const Field parameters = spec["parameters"];
  if (!parameters.exists()) return;
  check_typed_reference(parameters);
  const Field scope = parameters["scope"];
  const Field ns = parameters["namespace"];
  if (!scope.exists()) return scope.required();
  if (!scope.check_word({"Cluster", "Namespace"})) return;
  if (scope.text() == "Cluster") {
    if (ns.exists()) ns.forbidden("`parameters.scope` is set to 'Cluster'");
  } else if (!ns.exists()) {
    ns.required("`parameters.scope` is set to 'Namespace'");
  } else {
    ns.check_form(rules::check_dns1123_label);
  }
}

void validate_ingress_class_update(const Object& object, const Object& old, Causes& causes) {
  const Field controller(object["spec"]["controller"], "spec.controller", causes);
  if (!controller.is(old["spec"]["controller"])) controller.invalid_text(kImmutable);
}

void validate_network_policy(const Object& policy, Causes& causes) {
  const Field spec(policy["spec"], "spec", causes);
  spec["podSelector"].check_label_selector();
  const auto check_rules = [&](const char* direction, const char* peers) {
    spec[direction].each([&](const Field& rule) {
      rule["ports"].each(check_policy_port);
      rule[peers].each(check_peer);
    });
  };
  check_rules("ingress", "from");
  check_rules("egress", "to");
  const Field types = spec["policyTypes"];
  if ((*types).size() > 2) return types.invalid("may not specify more than two policyTypes");
  types.each([](const Field& type) { type.check_word({"Ingress", "Egress"}); });
}

void validate_endpoints(const Object& endpoints, Causes& causes) {
  Field(endpoints["subsets"], "subsets", causes).each([](const Field& subset) {
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty())
      subset.required("must specify `addresses` or `notReadyAddresses`");
    for (const char* list : {"addresses", "notReadyAddresses"}) {
      subset[list].each([](const Field& address) {
        address["ip"].check_ip();
        address["hostname"].check_form_if_present(rules::check_dns1123_label);
        if (address["nodeName"].exists())
          address["nodeName"].check_form(rules::check_dns1123_subdomain);
        check_endpoint_address(address["ip"]);
      });
    }
    const bool several = (*subset["ports"]).size() > 1;
    subset["ports"].each([&](const Field& port) {
      check_named_port(port, several);
      port["port"].check_port();
      check_protocol(port);
      check_app_protocol(port);
    });
  });
}

void validate_endpoint_slice(const Object& slice, Causes& causes) {
  constexpr std::size_t kMostAddresses = 100;
  constexpr std::size_t kMostEndpoints = 1000;
  constexpr std::size_t kMostPorts = 20000;
  const Field root(slice.body(), "", causes);
  const std::string_view type = root["addressType"].text();
  const bool is_own = slice.ns() == "default" && slice.name() == "kubernetes";
  root["addressType"].check_required_word({"FQDN", "IPv4", "IPv6"});
  std::set<std::string_view> names;
  if ((*root["ports"]).size() > kMostPorts) return root["ports"].too_many(kMostPorts);
  root["ports"].each([&](const Field& port) {
    const Field name = port["name"];
    name.check_form_if_present(rules::check_dns1123_label);
    if (!names.insert(name.text()).second) name.duplicate();
    port["protocol"].check_word({"SCTP", "TCP", "UDP"});
    check_app_protocol(port);
  });
  if ((*root["endpoints"]).size() > kMostEndpoints)
    return root["endpoints"].too_many(kMostEndpoints);
  root["endpoints"].each([&](const Field& endpoint) {
    const Field addresses = endpoint["addresses"];
    addresses.check_present("must contain at least 1 address");
    if ((*addresses).size() > kMostAddresses) addresses.too_many(kMostAddresses);
    addresses.each(
        [&](const Field& address) { check_slice_address(address, addresses, type, is_own); });
    if (endpoint["nodeName"].exists())
      endpoint["nodeName"].check_form(rules::check_dns1123_subdomain);
    endpoint["deprecatedTopology"].check_labels();
    if (endpoint["hostname"].exists()) endpoint["hostname"].check_form(rules::check_dns1123_label);
    check_hints(endpoint["hints"]);
  });
}

void validate_endpoint_slice_update(const Object& slice, const Object& old, Causes& causes) {
  const Field type(slice["addressType"], "addressType", causes);
  if (!type.is(old["addressType"])) type.invalid_text(kImmutable);
}

void validate_service(const Object& service, Causes& causes) {
  const Field root(service.body(), "", causes);
  const Field spec = root["spec"];
  const std::string_view type = spec["type"].text();
  const bool is_balancer = type == "LoadBalancer";
  check_topology_annotations(root["metadata"]["annotations"]);
  if (spec["ports"].empty() && !is_headless(spec) && type != "ExternalName")
    spec["ports"].required();
  if (is_balancer) spec["ports"].each(check_balanced_port);
  if (is_headless(spec) && (is_balancer || type == "NodePort")) {
    causes.push_back(rules::invalid("spec.clusterIPs[0]", "None",
                                    fmt::format("may not be set to 'None' for {} services", type)));
  }
  if (type == "ExternalName") {
    for (const char* field : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      if (!spec[field].empty()) spec[field].forbidden("may not be set for ExternalName services");
    }
    check_external_name(spec["externalName"]);
  }
  std::set<std::string_view> names;
  const bool several = (*spec["ports"]).size() > 1;
  spec["ports"].each([&](const Field& port) { check_service_port(port, several, names); });
  spec["selector"].check_labels();
  spec["sessionAffinity"].check_required_word({"ClientIP", "None"});
  check_affinity_config(spec);
  if (type != "ExternalName") check_addresses(spec);
  spec["externalIPs"].each([](const Field& address) {
    if (address.check_ip()) check_endpoint_address(address);
  });
  spec["type"].check_required_word({"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  check_duplicate_ports(spec["ports"], type == "ClusterIP");
  check_source_ranges(root, spec, is_balancer);
  constexpr const char* kOnly = "may only be used when `type` is 'LoadBalancer'";
  if (spec["allocateLoadBalancerNodePorts"].exists() && !is_balancer)
    spec["allocateLoadBalancerNodePorts"].forbidden(kOnly);
  if (const Field balancer = spec["loadBalancerClass"]; balancer.exists()) {
    if (is_balancer) {
      balancer.check_form(rules::check_qualified_name);
    } else {
      balancer.forbidden(kOnly);
    }
  }
  check_traffic(spec);
}

/// The primary cluster IP and family must not change while the service has them.
void validate_service_update(const Object& service, const Object& old, Causes& causes) {
  const Field spec(service["spec"], "spec", causes);
  const Value before = old["spec"];
  const std::string_view type = spec["type"].text();
  if (type != "ExternalName" && before["type"].as_string() != "ExternalName") {
    const std::string_view then = before["clusterIP"].as_string();
    const Field address = spec["clusterIPs"].named("spec.clusterIPs[0]");
    if (!then.empty() && (*spec["clusterIPs"])[0].as_string() != then) {
      address.invalid(address.empty() ? "primary clusterIP can not be unset"
                                      : "may not change once set");
    }
    const Value family = before["ipFamilies"][0];
    const Field families = spec["ipFamilies"].named("spec.ipFamilies[0]");
    const std::string_view wanted = (*families)[0].as_string();
    if (family.exists() && wanted != family.as_string() &&
        (families.empty() || wanted == "IPv4" || wanted == "IPv6")) {
      families.invalid(families.empty() ? "primary ipFamily can not be unset"
                                        : "may not change once set");
    }
  }
  if (type != "LoadBalancer" || before["type"].as_string() != "LoadBalancer") return;
  if (const Field balancer = spec["loadBalancerClass"]; !balancer.is(before["loadBalancerClass"])) {
    balancer.invalid("may not change once set");
    if (balancer.exists()) balancer.check_form(rules::check_qualified_name);
  }
  if (spec["externalTrafficPolicy"].text() == "Local" &&
      before["externalTrafficPolicy"].as_string() == "Local") {
    const Field health = spec["healthCheckNodePort"];
    if (health.number() != before["healthCheckNodePort"].as_int()) health.forbidden(kImmutable);
    if (health.number() != 0) health.check_port();
  }
}

void validate_service_status(const Object& service, const Object& old, Causes& causes) {
  const Value before = old["status"]["loadBalancer"]["ingress"];
  const Field balancers(service["status"]["loadBalancer"]["ingress"], "status.loadBalancer.ingress",
                        causes);
  if (service["spec"]["type"].as_string() != "LoadBalancer" && !balancers.empty())
    return balancers.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
  balancers.each([&](const Field& one) {
    check_balancer_address(one, before);
    const Field mode = one["ipMode"];
    if (mode.exists()) {
      if (one["ip"].empty()) {
        mode.forbidden("may not be specified when `ip` is not set");
      } else {
        mode.check_word({"Proxy", "VIP"});
      }
    } else if (!one["ip"].empty()) {
      mode.required("must be specified when `ip` is set");
    }
    check_balancer_host(one["hostname"]);
  });
}

void validate_new_service_cidr(const Object& object, Causes& causes) {
  const Field ranges(object["spec"]["cidrs"], "spec.cidrs", causes);
  if (!ranges.check_present("at least one CIDR required")) return;
  if ((*ranges).size() > 2) return ranges.invalid("may only hold up to 2 values");
  const auto family_of = [&](std::size_t index) {
    const auto range = IpRange::parse(without_leading_zeros((*ranges)[index].as_string()));
    return range ? range->address.family : 0;
  };
  if ((*ranges).size() == 2 && family_of(0) + family_of(1) != 4 + 6) {
    return ranges.invalid(
        "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
  }
  ranges.each([](const Field& range) {
    if (range.check_cidr()) check_canonical(range, IpRange::parse(range.text())->to_string());
  });
}

void validate_service_cidr_update(const Object& object, const Object& old, Causes& causes) {
  const Field ranges(object["spec"]["cidrs"], "spec.cidrs", causes);
  const Value before = old["spec"]["cidrs"];
  const std::size_t size = (*ranges).size();
  // A second address family may be added.
  const bool grows = before.size() == 1 && size == 2;
  if (size != before.size() && !grows) return ranges.invalid(kImmutable);
  std::size_t index = 0;
  ranges.each([&](const Field& range) {
    if (index < before.size() && !range.is(before[index])) range.invalid_text(kImmutable);
    ++index;
  });
  if (grows) validate_new_service_cidr(object, causes);
}

void validate_ip_address(const Object& address, Causes& causes) {
  const Field parent(address["spec"]["parentRef"], "spec.parentRef", causes);
  if (!parent.exists()) return parent.required();
  parent["group"].check_form_if_present(rules::check_dns1123_subdomain);
  parent["resource"].check_required_form(rules::check_path_segment_name);
  parent["name"].check_required_form(rules::check_path_segment_name);
  parent["namespace"].check_form_if_present(rules::check_path_segment_name);
}

rules::Messages check_ip_name(std::string_view name) {
  if (const char* const fault = fault_of_ip(name); fault != nullptr) return {fault};
  const std::string canonical = IpAddress::parse(name)->to_string();
  if (name == canonical) return {};
  return {fmt::format("must be in canonical form ({})", api::detail::quote(canonical))};
}

void validate_ip_address_update(const Object& address, const Object& old, Causes& causes) {
  const Field parent(address["spec"]["parentRef"], "spec.parentRef", causes);
  if (parent.is(old["spec"]["parentRef"])) return;
  // Shows the reference in Go's syntax.
  const std::string shown =
      parent.exists()
          ? fmt::format(R"({{"Group":"{}","Resource":"{}","Namespace":"{}","Name":"{}"}})",
                        parent["group"].text(), parent["resource"].text(),
                        parent["namespace"].text(), parent["name"].text())
          : "null";
  parent.invalid_as(shown, kImmutable);
}

}  // namespace lookout::apiserver::resources
