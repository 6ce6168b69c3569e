// Validation of nodes, leases, priority classes, signing requests and events.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {

namespace rules = api::validation;
using api::Object;
using api::Value;

void validate_priority_class(const Object& object, Causes& causes) {
  if (object.name().starts_with("system-") && object.name() != "system-cluster-critical" &&
      object.name() != "system-node-critical") {
    causes.push_back(rules::forbidden(
        "metadata.name",
        fmt::format("priority class names with 'system-' prefix are reserved for system use only. "
                    "error: {} is not a known system priority class",
                    object.name())));
  }
  constexpr std::int64_t kMost = 1000000000;
  if (object["value"].as_int() > kMost && !object.name().starts_with("system-")) {
    causes.push_back(rules::forbidden(
        "value", fmt::format("maximum allowed value of a user defined priority is {}", kMost)));
  }
}

void validate_lease(const Object& lease, Causes& causes) {
  const Value spec = lease["spec"];
  if (const auto duration = spec["leaseDurationSeconds"].to_int(); duration && *duration <= 0) {
    causes.push_back(
        rules::invalid("spec.leaseDurationSeconds", *duration, "must be greater than 0"));
  }
  if (const auto turns = spec["leaseTransitions"].to_int(); turns && *turns < 0) {
    causes.push_back(
        rules::invalid("spec.leaseTransitions", *turns, "must be greater than or equal to 0"));
  }
}

void validate_priority_class_update(const Object& object, const Object& old, Causes& causes) {
  if (object["value"].as_int() != old["value"].as_int())
    causes.push_back(rules::forbidden("value", "may not be changed in an update."));
  if (!(object["preemptionPolicy"] == old["preemptionPolicy"])) {
    causes.push_back(rules::invalid("preemptionPolicy", object["preemptionPolicy"].as_string(),
                                    "field is immutable"));
  }
}

void validate_node(const Object& node, Causes& causes) {
  std::size_t index = 0;
  for (const Value taint : node["spec"]["taints"].elements()) {
    const std::string here = fmt::format("metadata.taints[{}]", index++);
    const std::string_view key = taint["key"].as_string();
    for (const auto& message : rules::check_qualified_name(key))
      causes.push_back(rules::invalid(here + ".key", key, message));
    for (const auto& message : rules::check_label_value(taint["value"].as_string()))
      causes.push_back(rules::invalid(here + ".value", taint["value"].as_string(), message));
    const std::string_view effect = taint["effect"].as_string();
    constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule",
                                                          "NoExecute"};
    if (effect.empty()) {
      causes.push_back(rules::required(here + ".effect", ""));
    } else if (std::find(kEffects.begin(), kEffects.end(), effect) == kEffects.end()) {
      causes.push_back(rules::not_supported(here + ".effect", effect, kEffects));
    }
  }
}

void validate_node_update(const Object& node, const Object& old, Causes& causes) {
  const Value before = old["spec"]["podCIDRs"];
  if (!before.empty() && !(node["spec"]["podCIDRs"] == before)) {
    causes.push_back(rules::forbidden(
        "spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid"));
  }
  const std::string_view provider = old["spec"]["providerID"].as_string();
  if (!provider.empty() && node["spec"]["providerID"].as_string() != provider) {
    causes.push_back(rules::forbidden("spec.providerID",
                                      "node updates may not change providerID except from \"\" to "
                                      "valid"));
  }
}

void validate_signing_request(const Object& request, Causes& causes) {
  const Value spec = request["spec"];
  const auto pem = decode_base64(spec["request"].as_string()).value_or(std::string());
  if (pem.find("-----BEGIN CERTIFICATE REQUEST-----") == std::string::npos) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: PEM block type must be CERTIFICATE REQUEST",
                                  spec["request"].is_string() ? spec["request"].to_json() : "null"),
                      "spec.request"});
  }
  require(spec["usages"], "spec.usages", causes, "usages must be provided");
  require(spec["signerName"], "spec.signerName", causes, "signerName must be provided");
}

void validate_event(const Object& event, Causes& causes) {
  const std::string_view ns = event.ns();
  const std::string_view about = event["involvedObject"]["namespace"].as_string();
  if (about.empty() ? ns != "default" : ns != about) {
    causes.push_back(
        rules::invalid("involvedObject.namespace", about, "does not match event.namespace"));
  }
}

}  // namespace lookout::apiserver::resources
