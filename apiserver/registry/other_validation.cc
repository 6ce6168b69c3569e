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
  constexpr std::array<std::string_view, 4> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer",
                                                      "NodePort"};
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end())
    causes.push_back(rules::not_supported("spec.type", type, kTypes));
  const bool headless = spec["clusterIP"].as_string() == "None";
  if (spec["ports"].elements().empty() && !headless && type != "ExternalName")
    causes.push_back(rules::required("spec.ports", ""));
  if (type == "ExternalName" && spec["externalName"].as_string().empty())
    causes.push_back(rules::required("spec.externalName", ""));
  const bool several = spec["ports"].size() > 1;
  std::set<std::string_view> names;
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
  }
}

void validate_config_map(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  validate_data_keys(object["binaryData"], "binaryData", size, causes);
  if (size > kMaxData) causes.push_back(rules::too_long("", kMaxData));
}

void validate_secret(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  if (size / 4 * 3 > kMaxData) causes.push_back(rules::too_long("data", kMaxData));
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
    }
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
