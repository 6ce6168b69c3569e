// Validation of custom resource definitions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/patterns.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

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

/// A warning that is not printable would make a header that clients cannot read.
void validate_deprecation(Value version, const std::string& here, Causes& causes) {
  const Value warning = version["deprecationWarning"];
  if (!warning.exists()) return;
  const std::string_view text = warning.as_string();
  const auto refuse = [&](const std::string& why) {
    causes.push_back(rules::invalid(here + ".deprecationWarning", text, why));
  };
  if (!version["deprecated"].as_bool()) return refuse("can only be set for deprecated versions");
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) refuse("must be <= 256 characters long");
  if (text.empty()) refuse("must not be an empty string");
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto control = std::find_if(text.begin(), text.end(), is_control);
  if (control == text.end()) return;
  refuse(fmt::format(
      "must only contain printable UTF-8 characters; non-printable character found at index {}",
      control - text.begin()));
}

/// (The API server has what `webhook` holds in other places inside.)
void validate_conversion(Value conversion, Causes& causes) {
  constexpr std::array<std::string_view, 2> kStrategies = {"None", "Webhook"};
  constexpr const char* kClient = "spec.conversion.webhookClientConfig";
  constexpr const char* kVersions = "spec.conversion.conversionReviewVersions";
  const std::string_view strategy = conversion["strategy"].as_string();
  if (strategy != kStrategies[0] && strategy != kStrategies[1])
    causes.push_back(rules::not_supported("spec.conversion.strategy", strategy, kStrategies));
  const Value client = conversion["webhook"]["clientConfig"];
  const Value versions = conversion["webhook"]["conversionReviewVersions"];
  if (strategy != "Webhook") {
    constexpr const char* kWhy = "should not be set when strategy is not set to Webhook";
    if (client.is_object()) causes.push_back(rules::forbidden(kClient, kWhy));
    if (!versions.empty()) causes.push_back(rules::forbidden(kVersions, kWhy));
    return;
  }
  if (client.is_object()) {
    validate_webhook_client(client, kClient, causes);
  } else {
    causes.push_back(rules::required(kClient, "required when strategy is set to Webhook"));
  }
  validate_review_versions(versions, kVersions, "", causes);
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
    validate_deprecation(version, here, causes);
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
    validate_patterns(schema, path, causes);
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
  validate_conversion(spec["conversion"], causes);
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

}  // namespace lookout::apiserver::resources
