#include <fmt/format.h>

#include <string>
#include <string_view>

#include "apiserver/registry/strategies.h"
#include "lookout/api/labels.h"
#include "lookout/api/meta/v1.h"

namespace lookout::apiserver::registry {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

/// An invalid value that is no text: shown as JSON.
api::StatusCause invalid_value(std::string_view field, Value value, std::string_view detail) {
  return {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", value.to_json(), detail),
          std::string(field)};
}

void validate_not_negative(Value value, const std::string& field, Causes& causes) {
  if (const auto number = value.to_int(); number && *number < 0)
    causes.push_back(rules::invalid(field, *number, "must be greater than or equal to 0"));
}

/// Selector and template of an apps/v1 workload.
void validate_workload(const Object& workload, bool always_restarts, Causes& causes) {
  const Value spec = workload["spec"];
  const Value selector = spec["selector"];
  const Value labels = spec["template"]["metadata"]["labels"];
  validate_not_negative(spec["replicas"], "spec.replicas", causes);
  if (!selector.exists()) {
    causes.push_back(rules::required("spec.selector", ""));
  } else if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) {
    causes.push_back(
        invalid_value("spec.selector", selector, "empty selector is invalid for deployment"));
  }
  try {
    if (!api::labels::from(meta::v1::LabelSelector(selector)).matches(labels)) {
      causes.push_back(invalid_value("spec.template.metadata.labels", labels,
                                     "`selector` does not match template `labels`"));
    }
  } catch (const api::SelectorError& e) {
    causes.push_back(invalid_value("spec.selector", selector, e.reason()));
  }
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes);
  const std::string_view policy = spec["template"]["spec"]["restartPolicy"].as_string();
  if (always_restarts && !policy.empty() && policy != "Always") {
    constexpr std::string_view kAlways[] = {"Always"};
    causes.push_back(rules::not_supported("spec.template.spec.restartPolicy", policy, kAlways));
  }
}

}  // namespace

void validate_deployment(const Object& object, Causes& causes) {
  validate_workload(object, true, causes);
}
void validate_replica_set(const Object& object, Causes& causes) {
  validate_workload(object, true, causes);
}
void validate_stateful_set(const Object& object, Causes& causes) {
  validate_workload(object, true, causes);
}
void validate_daemon_set(const Object& object, Causes& causes) {
  validate_workload(object, true, causes);
}

void validate_replication_controller(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  validate_not_negative(spec["replicas"], "spec.replicas", causes);
  if (spec["selector"].empty()) causes.push_back(rules::required("spec.selector", ""));
  if (!spec["template"].exists()) {
    causes.push_back(rules::required("spec.template", ""));
    return;
  }
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes);
}

void validate_job(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  for (const char* field : {"parallelism", "completions", "backoffLimit"})
    validate_not_negative(spec[field], std::string("spec.") + field, causes);
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes);
  const std::string_view policy = spec["template"]["spec"]["restartPolicy"].as_string();
  if (policy == "Always") {
    constexpr std::string_view kOthers[] = {"OnFailure", "Never"};
    causes.push_back(rules::not_supported("spec.template.spec.restartPolicy", policy, kOthers));
  }
}

void validate_selector_stays(const Object& object, const Object& old, Causes& causes) {
  if (object["spec"]["selector"] == old["spec"]["selector"]) return;
  causes.push_back(
      invalid_value("spec.selector", object["spec"]["selector"], "field is immutable"));
}

}  // namespace lookout::apiserver::registry
