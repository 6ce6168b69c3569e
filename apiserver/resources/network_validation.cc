// Validation of services, ingresses and endpoints.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {

namespace rules = api::validation;
using api::Object;
using api::Value;

void validate_ingress(const Object& ingress, Causes& causes) {
  const Value spec = ingress["spec"];
  if (spec["rules"].empty() && !spec["defaultBackend"].is_object()) {
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: null: either `defaultBackend` or `rules` must be specified",
                      "spec"});
  }
  const auto check_backend = [&](Value backend, const std::string& here) {
    const Value service = backend["service"];
    if (!service.is_object()) {
      if (!backend["resource"].is_object()) {
        causes.push_back(rules::required(here, "port name or number is required"));
      }
      return;
    }
    const std::string_view name = service["name"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required(here + ".service.name", ""));
    } else {
      for (const auto& message : rules::check_dns1035_label(name))
        causes.push_back(rules::invalid(here + ".service.name", name, message));
    }
    const bool named = !service["port"]["name"].as_string().empty();
    const std::int64_t number = service["port"]["number"].as_int();
    if (!named && number == 0) {
      causes.push_back(rules::required(here + ".service.port", "port name or number is required"));
    } else if (!named && (number < 1 || number > 65535)) {
      causes.push_back(rules::invalid(here + ".service.port.number", number,
                                      "must be between 1 and 65535, inclusive"));
    }
  };
  if (spec["defaultBackend"].is_object())
    check_backend(spec["defaultBackend"], "spec.defaultBackend");
  std::size_t index = 0;
  for (const Value rule : spec["rules"].elements()) {
    const std::string here = fmt::format("spec.rules[{}]", index++);
    std::string_view host = rule["host"].as_string();
    if (host.starts_with("*.")) host.remove_prefix(2);
    if (!host.empty()) {
      for (const auto& message : rules::check_dns1123_subdomain(host))
        causes.push_back(rules::invalid(here + ".host", rule["host"].as_string(), message));
    }
    if (!rule["http"].is_object()) continue;
    if (rule["http"]["paths"].empty()) causes.push_back(rules::required(here + ".http.paths", ""));
    std::size_t number = 0;
    for (const Value path : rule["http"]["paths"].elements()) {
      const std::string at = fmt::format("{}.http.paths[{}]", here, number++);
      const std::string_view type = path["pathType"].as_string();
      const std::string_view text = path["path"].as_string();
      constexpr std::array<std::string_view, 3> kTypes = {"Exact", "ImplementationSpecific",
                                                          "Prefix"};
      if (type.empty()) {
        causes.push_back(rules::required(at + ".pathType", "pathType must be specified"));
      } else if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
        causes.push_back(rules::not_supported(at + ".pathType", type, kTypes));
      } else if ((type != kTypes[1] || !text.empty()) && !text.starts_with('/')) {
        causes.push_back(rules::invalid(at + ".path", text, "must be an absolute path"));
      }
      check_backend(path["backend"], at + ".backend");
    }
  }
}

void validate_endpoints(const Object& endpoints, Causes& causes) {
  std::size_t index = 0;
  for (const Value subset : endpoints["subsets"].elements()) {
    const std::string here = fmt::format("subsets[{}]", index++);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty())
      causes.push_back(rules::required(here, "must specify `addresses` or `notReadyAddresses`"));
    for (const char* list : {"addresses", "notReadyAddresses"}) {
      std::size_t number = 0;
      for (const Value address : subset[list].elements()) {
        const std::string at = fmt::format("{}.{}[{}].ip", here, list, number++);
        const std::string text(address["ip"].as_string());
        std::array<unsigned char, 16> bytes{};
        if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
            inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1)
          continue;
        causes.push_back(rules::invalid(
            at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
      }
    }
    std::size_t number = 0;
    const bool several = subset["ports"].size() > 1;
    for (const Value port : subset["ports"].elements()) {
      const std::string at = fmt::format("{}.ports[{}]", here, number++);
      if (several && port["name"].as_string().empty())
        causes.push_back(rules::required(at + ".name", ""));
      const std::int64_t value = port["port"].as_int();
      if (value < 1 || value > 65535) {
        causes.push_back(
            rules::invalid(at + ".port", value, "must be between 1 and 65535, inclusive"));
      }
    }
  }
}

void validate_service(const Object& service, Causes& causes) {
  const Value spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  const bool headless = spec["clusterIP"].as_string() == "None";
  if (spec["ports"].elements().empty() && !headless && type != "ExternalName")
    causes.push_back(rules::required("spec.ports", ""));
  if (headless && type != "ClusterIP" && type != "ExternalName") {
    causes.push_back(rules::invalid("spec.clusterIPs[0]", "None",
                                    fmt::format("may not be set to 'None' for {} services", type)));
  }
  if (type == "ExternalName" && !spec["clusterIP"].as_string().empty()) {
    causes.push_back(
        rules::forbidden("spec.clusterIP", "may not be set when `type` is 'ExternalName'"));
  }
  if (type == "ExternalName") {
    const std::string_view name = spec["externalName"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required("spec.externalName", ""));
    } else {
      for (const auto& message : rules::check_dns1123_subdomain(
               name.ends_with('.') ? name.substr(0, name.size() - 1) : name))
        causes.push_back(rules::invalid("spec.externalName", name, message));
    }
  }
  const bool several = spec["ports"].size() > 1;
  std::set<std::string_view> names;
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const Value port : spec["ports"].elements()) {
    const std::string here = fmt::format("spec.ports[{}]", index++);
    const std::string_view name = port["name"].as_string();
    if (name.empty() && several) causes.push_back(rules::required(here + ".name", ""));
    if (!name.empty()) {
      for (const auto& message : rules::check_dns1123_label(name))
        causes.push_back(rules::invalid(here + ".name", name, message));
      if (!names.insert(name).second) causes.push_back(rules::duplicate(here + ".name", name));
    }
    const std::int64_t number = port["port"].as_int();
    if (number < 1 || number > 65535) {
      causes.push_back(
          rules::invalid(here + ".port", number, "must be between 1 and 65535, inclusive"));
    }
    const std::string_view protocol = port["protocol"].as_string();
    constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};
    if (std::find(kProtocols.begin(), kProtocols.end(), protocol) == kProtocols.end())
      causes.push_back(rules::not_supported(here + ".protocol", protocol, kProtocols));
    if (const auto target = port["targetPort"].to_int();
        target && (*target < 1 || *target > 65535)) {
      causes.push_back(
          rules::invalid(here + ".targetPort", *target, "must be between 1 and 65535, inclusive"));
    }
    if (type == "ClusterIP" && port["nodePort"].as_int() != 0) {
      causes.push_back(
          rules::forbidden(here + ".nodePort", "may not be used when `type` is 'ClusterIP'"));
    }
    if (type == "ExternalName" && port["nodePort"].as_int() != 0) {
      causes.push_back(
          rules::forbidden(here + ".nodePort", "may not be used when `type` is 'ExternalName'"));
    }
    if (!seen.insert(fmt::format("{}/{}", protocol, number)).second) {
      causes.push_back(
          {"FieldValueDuplicate",
           fmt::format(R"(Duplicate value: {{"Name":"","Protocol":"{}","AppProtocol":null,)"
                       R"("Port":{},"TargetPort":0,"NodePort":0}})",
                       protocol, number),
           here});
    }
  }
  const std::string_view affinity = spec["sessionAffinity"].as_string();
  constexpr std::array<std::string_view, 2> kAffinities = {"ClientIP", "None"};
  if (affinity.empty()) {
    causes.push_back(rules::required("spec.sessionAffinity", ""));
  } else if (affinity != kAffinities[0] && affinity != kAffinities[1]) {
    causes.push_back(rules::not_supported("spec.sessionAffinity", affinity, kAffinities));
  }
  constexpr std::array<std::string_view, 4> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer",
                                                      "NodePort"};
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end())
    causes.push_back(rules::not_supported("spec.type", type, kTypes));
  const std::string_view external = spec["externalTrafficPolicy"].as_string();
  constexpr std::array<std::string_view, 2> kTraffic = {"Cluster", "Local"};
  if (!external.empty() && external != kTraffic[0] && external != kTraffic[1]) {
    causes.push_back(rules::not_supported("spec.externalTrafficPolicy", external, kTraffic));
  } else if (!external.empty() && type == "ClusterIP") {
    causes.push_back(rules::invalid("spec.externalTrafficPolicy", external,
                                    "may only be set for externally-accessible services"));
  }
  for (const auto& [key, value] : spec["selector"].members()) {
    for (const auto& message : rules::check_qualified_name(key))
      causes.push_back(rules::invalid("spec.selector", key, message));
    for (const auto& message : rules::check_label_value(value.as_string()))
      causes.push_back(rules::invalid("spec.selector", value.as_string(), message));
  }
}

/// The first address stays as long as the service has one.
void validate_service_update(const Object& service, const Object& old, Causes& causes) {
  const Value spec = service["spec"];
  const Value before = old["spec"];
  if (spec["type"].as_string() == "ExternalName" || before["type"].as_string() == "ExternalName")
    return;
  const std::string_view then = before["clusterIP"].as_string();
  const std::string_view now = spec["clusterIP"].as_string();
  if (then.empty() || now == then) return;
  if (now.empty()) {
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: null: primary clusterIP can not be unset",
                      "spec.clusterIPs[0]"});
  } else {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: [\"{}\"]: may not change once set", now),
                      "spec.clusterIPs[0]"});
  }
}

}  // namespace lookout::apiserver::resources
