#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/registry/strategies.h"
#include "lookout/api/base64.h"

namespace lookout::apiserver::registry {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::string_view kImmutableData = "field is immutable when `immutable` is set";
constexpr int kMaxData = 1 << 20;

void validate_data_keys(Value data, const std::string& field, std::size_t& size, Causes& causes) {
  for (const auto& [key, value] : data.members()) {
    for (const auto& message : rules::check_config_map_key(key))
      causes.push_back(rules::invalid(fmt::format("{}[{}]", field, key), key, message));
    size += value.as_string().size();
  }
}

/// What an object that calls itself immutable must not change.
void validate_immutable(const Object& object, const Object& old,
                        std::initializer_list<const char*> fields, Causes& causes) {
  if (!old["immutable"].as_bool()) return;
  if (!object["immutable"].as_bool())
    causes.push_back(rules::forbidden("immutable", kImmutableData));
  for (const char* field : fields) {
    if (!(object[field] == old[field])) causes.push_back(rules::forbidden(field, kImmutableData));
  }
}

}  // namespace

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

void validate_config_map(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  for (const auto& [key, value] : object["data"].members()) {
    if (!object["binaryData"].contains(key)) continue;
    causes.push_back(rules::invalid(fmt::format("data[{}]", key), key,
                                    "duplicate of key present in binaryData"));
  }
  validate_data_keys(object["binaryData"], "binaryData", size, causes);
  if (size > kMaxData) causes.push_back(rules::too_long("", kMaxData));
}

void validate_secret(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  if (size / 4 * 3 > kMaxData) causes.push_back(rules::too_long("data", kMaxData));
  // What a type promises to those who read it.
  const std::string_view type = object["type"].as_string();
  const auto demand = [&](const char* key) {
    if (!object["data"].contains(key))
      causes.push_back(rules::required(fmt::format("data[{}]", key), ""));
  };
  if (type == "kubernetes.io/tls") {
    demand("tls.crt");
    demand("tls.key");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    demand(".dockerconfigjson");
  } else if (type == "kubernetes.io/dockercfg") {
    demand(".dockercfg");
  } else if (type == "kubernetes.io/ssh-auth") {
    demand("ssh-privatekey");
  } else if (type == "kubernetes.io/basic-auth") {
    if (!object["data"].contains("username") && !object["data"].contains("password")) {
      demand("username");
      demand("password");
    }
  } else if (type == "kubernetes.io/service-account-token") {
    constexpr const char* kAccount = "kubernetes.io/service-account.name";
    if (object["metadata"]["annotations"][kAccount].as_string().empty())
      causes.push_back(rules::required(fmt::format("metadata.annotations[{}]", kAccount), ""));
  }
}

void validate_config_map_update(const Object& object, const Object& old, Causes& causes) {
  validate_immutable(object, old, {"data", "binaryData"}, causes);
}

void validate_secret_update(const Object& object, const Object& old, Causes& causes) {
  if (object["type"].as_string() != old["type"].as_string())
    causes.push_back(rules::invalid("type", object["type"].as_string(), "field is immutable"));
  validate_immutable(object, old, {"data"}, causes);
}

void validate_event(const Object& event, Causes& causes) {
  const std::string_view ns = event.ns();
  const std::string_view about = event["involvedObject"]["namespace"].as_string();
  if (about.empty() ? ns != "default" : ns != about) {
    causes.push_back(
        rules::invalid("involvedObject.namespace", about, "does not match event.namespace"));
  }
}

namespace {

/// A schema is structural: every part of it says of which type it is, outside of what combines
/// other parts.
void validate_structure(Value schema, const std::string& here, std::string_view missing_type,
                        Causes& causes) {
  const bool free_type = schema["x-kubernetes-int-or-string"].as_bool() ||
                         schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  const std::string_view type = schema["type"].as_string();
  for (const auto& [name, property] : schema["properties"].members()) {
    validate_structure(property, fmt::format("{}.properties[{}]", here, name),
                       "must not be empty for specified object fields", causes);
  }
  if (schema["items"].is_object()) {
    validate_structure(schema["items"], here + ".items",
                       "must not be empty for specified array items", causes);
  }
  if (schema["additionalProperties"].is_object()) {
    validate_structure(schema["additionalProperties"], here + ".additionalProperties",
                       "must not be empty for specified object fields", causes);
  }
  if (type.empty()) {
    if (!free_type) causes.push_back(rules::required(here + ".type", missing_type));
  } else if (type == "array" && !schema["items"].is_object()) {
    causes.push_back(rules::required(here + ".items", "must be specified"));
  }
}

}  // namespace

void validate_custom_resource_definition(const Object& definition, Causes& causes) {
  const Value spec = definition["spec"];
  const Value names = spec["names"];
  const std::string_view group = spec["group"].as_string();
  const std::string_view plural = names["plural"].as_string();
  if (definition.name() != fmt::format("{}.{}", plural, group)) {
    causes.push_back(rules::invalid("metadata.name", definition.name(),
                                    R"(must be spec.names.plural+"."+spec.group)"));
  }
  if (group.empty()) {
    causes.push_back(rules::required("spec.group", ""));
  } else {
    for (const auto& message : rules::check_dns1123_subdomain(group))
      causes.push_back(rules::invalid("spec.group", group, message));
    if (group.find('.') == std::string_view::npos)
      causes.push_back(
          rules::invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  constexpr const char* kApproved = "api-approved.kubernetes.io";
  const bool is_protected = group == "k8s.io" || group == "kubernetes.io" ||
                            group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
  if (is_protected && definition["metadata"]["annotations"][kApproved].as_string().empty()) {
    causes.push_back(
        rules::required(fmt::format("metadata.annotations[{}]", kApproved),
                        fmt::format("protected groups must have approval annotation \"{}\", see "
                                    "https://github.com/kubernetes/enhancements/pull/1111",
                                    kApproved)));
  }
  const std::string_view scope = spec["scope"].as_string();
  constexpr std::array<std::string_view, 2> kScopes = {"Cluster", "Namespaced"};
  if (scope.empty()) {
    causes.push_back(rules::required("spec.scope", ""));
  } else if (scope != kScopes[0] && scope != kScopes[1]) {
    causes.push_back(rules::not_supported("spec.scope", scope, kScopes));
  }
  std::size_t stored = 0;
  std::size_t index = 0;
  std::set<std::string_view> versions;
  for (const Value version : spec["versions"].elements()) {
    const std::string here = fmt::format("spec.versions[{}]", index++);
    const std::string_view name = version["name"].as_string();
    for (const auto& message : rules::check_dns1035_label(name))
      causes.push_back(rules::invalid(here + ".name", name, message));
    if (!versions.insert(name).second) causes.push_back(rules::duplicate(here + ".name", name));
    if (version["storage"].as_bool()) ++stored;
    if (!version["schema"]["openAPIV3Schema"].exists()) {
      causes.push_back(rules::required(here + ".schema.openAPIV3Schema", "schemas are required"));
      continue;
    }
    // A schema that all versions share is at another place inside the API server.
    const Value schema = version["schema"]["openAPIV3Schema"];
    const std::string path = spec["versions"].size() == 1
                                 ? std::string("spec.validation.openAPIV3Schema")
                                 : here + ".schema.openAPIV3Schema";
    validate_structure(schema, path, "must not be empty at the root", causes);
    if (const auto type = schema["type"].as_string(); !type.empty() && type != "object")
      causes.push_back(rules::invalid(path + ".type", type, "must be object at the root"));
  }
  if (stored != 1) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: must have exactly one version marked as "
                                  "storage version",
                                  spec["versions"].to_json()),
                      "spec.versions"});
  }
  for (const char* name : {"plural", "singular"}) {
    const std::string_view value = names[name].as_string();
    const std::string field = std::string("spec.names.") + name;
    if (value.empty()) {
      causes.push_back(rules::required(field, ""));
      continue;
    }
    for (const auto& message : rules::check_dns1035_label(value))
      causes.push_back(rules::invalid(field, value, message));
  }
  for (const char* name : {"kind", "listKind"}) {
    if (names[name].as_string().empty())
      causes.push_back(rules::required(std::string("spec.names.") + name, ""));
  }
}

void validate_custom_resource_definition_update(const Object& definition, const Object& old,
                                                Causes& causes) {
  const auto stays = [&](std::string_view path, Value now, Value before) {
    if (!(now == before))
      causes.push_back(rules::invalid(path, now.as_string(), "field is immutable"));
  };
  stays("spec.scope", definition["spec"]["scope"], old["spec"]["scope"]);
  stays("spec.names.kind", definition["spec"]["names"]["kind"], old["spec"]["names"]["kind"]);
  stays("spec.group", definition["spec"]["group"], old["spec"]["group"]);
  stays("spec.names.plural", definition["spec"]["names"]["plural"], old["spec"]["names"]["plural"]);
}

}  // namespace lookout::apiserver::registry
