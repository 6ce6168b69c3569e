#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/labels.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

/// An invalid value that is no text: shown as JSON.
api::StatusCause invalid_value(std::string_view field, Value value, std::string_view detail) {
  return {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", value.to_json(), detail),
          std::string(field)};
}

/// A label selector by itself; false if nothing can be selected by it.
bool validate_selector(Value selector, const std::string& field, Causes& causes) {
  const std::size_t before = causes.size();
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    for (const auto& message : rules::check_qualified_name(key))
      causes.push_back(rules::invalid(field + ".matchLabels", key, message));
    for (const auto& message : rules::check_label_value(value.as_string()))
      causes.push_back(rules::invalid(field + ".matchLabels", value.as_string(), message));
  }
  std::size_t index = 0;
  for (const Value expression : selector["matchExpressions"].elements()) {
    const std::string here = fmt::format("{}.matchExpressions[{}]", field, index++);
    const std::string_view relation = expression["operator"].as_string();
    const bool values = !expression["values"].empty();
    if (relation == "In" || relation == "NotIn") {
      if (!values) {
        causes.push_back(rules::required(here + ".values",
                                         "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (relation == "Exists" || relation == "DoesNotExist") {
      if (values) {
        causes.push_back(
            rules::forbidden(here + ".values",
                             "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    } else {
      causes.push_back(
          rules::invalid(here + ".operator", relation, "not a valid selector operator"));
    }
    const std::string_view key = expression["key"].as_string();
    for (const auto& message : rules::check_qualified_name(key))
      causes.push_back(rules::invalid(here + ".key", key, message));
    std::size_t number = 0;
    for (const Value value : expression["values"].elements()) {
      for (const auto& message : rules::check_label_value(value.as_string()))
        causes.push_back(
            rules::invalid(fmt::format("{}.values[{}]", here, number), value.as_string(), message));
      ++number;
    }
  }
  return causes.size() == before;
}

/// Whether a selector selects by these labels; nothing is selected without one.
bool selects(Value selector, Value labels) {
  if (!selector.is_object()) return false;
  try {
    return api::labels::from(k8s::meta::v1::LabelSelector(selector)).matches(labels);
  } catch (const api::SelectorError&) {
    return true;  // said already
  }
}

void must_always_restart(Value pod, Causes& causes) {
  const std::string_view policy = pod["restartPolicy"].as_string();
  constexpr std::string_view kAlways[] = {"Always"};
  if (!policy.empty() && policy != "Always")
    causes.push_back(rules::not_supported("spec.template.spec.restartPolicy", policy, kAlways));
}

void must_select_template(Value spec, Causes& causes) {
  const Value labels = spec["template"]["metadata"]["labels"];
  if (selects(spec["selector"], labels)) return;
  causes.push_back(invalid_value("spec.template.metadata.labels", labels,
                                 "`selector` does not match template `labels`"));
}

bool is_empty_selector(Value selector) {
  return selector["matchLabels"].empty() && selector["matchExpressions"].empty();
}

/// Selector and template of an apps/v1 workload.
void validate_workload(const Object& workload, std::string_view what, Causes& causes,
                       Value claims = {}) {
  const Value spec = workload["spec"];
  const Value selector = spec["selector"];
  require_not_negative(spec["replicas"], "spec.replicas", causes);
  bool valid = true;
  if (!selector.is_object()) {
    causes.push_back(rules::required("spec.selector", ""));
  } else {
    valid = validate_selector(selector, "spec.selector", causes);
    if (is_empty_selector(selector)) {
      causes.push_back(invalid_value("spec.selector", selector,
                                     fmt::format("empty selector is invalid for {}", what)));
    }
  }
  if (valid) {
    must_select_template(spec, causes);
  } else {
    causes.push_back(invalid_value("spec.selector", selector, "invalid label selector"));
  }
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes, claims);
  must_always_restart(spec["template"]["spec"], causes);
}

/// A count, or a part in percent; what it says in percent, or nothing.
std::optional<std::int64_t> validate_share(Value share, const std::string& field, Causes& causes) {
  if (const auto number = share.to_int()) {
    require_not_negative(share, field, causes);
    return std::nullopt;
  }
  const std::string_view text = share.as_string();
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const bool valid = text.ends_with('%') && !digits.empty() &&
                     digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!share.is_string()) return std::nullopt;
  if (!valid) {
    causes.push_back(
        rules::invalid(field, text,
                       "a valid percent string must be a numeric string followed by an ending '%' "
                       "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"));
    return std::nullopt;
  }
  return api::detail::parse_int(digits);
}

bool is_zero(Value share) { return share.to_int().value_or(1) == 0 || share.as_string() == "0%"; }

void validate_rolling_update(Value rolling, const std::string& field, Causes& causes) {
  const auto unavailable =
      validate_share(rolling["maxUnavailable"], field + ".maxUnavailable", causes);
  validate_share(rolling["maxSurge"], field + ".maxSurge", causes);
  if (is_zero(rolling["maxUnavailable"]) && is_zero(rolling["maxSurge"])) {
    causes.push_back(invalid_value(field + ".maxUnavailable", rolling["maxUnavailable"],
                                   "may not be 0 when `maxSurge` is 0"));
  }
  if (unavailable && *unavailable > 100) {
    causes.push_back(rules::invalid(field + ".maxUnavailable",
                                    rolling["maxUnavailable"].as_string(),
                                    "must not be greater than 100%"));
  }
}

bool differs_but_for(const Object& a, const Object& b, std::initializer_list<const char*> fields) {
  const auto stripped = [&](const Object& object) {
    json::Document document = object.to_document();
    for (const char* part : {"metadata", "status"}) json::erase(document, part);
    if (json::Value* spec = json::find(document, "spec")) {
      for (const char* field : fields) json::erase(*spec, field);
    }
    return Object::from(document);
  };
  return !(stripped(a) == stripped(b));
}

}  // namespace

void validate_deployment(const Object& object, Causes& causes) {
  validate_workload(object, "deployment", causes);
  const Value spec = object["spec"];
  const Value strategy = spec["strategy"];
  const std::string_view type = strategy["type"].as_string();
  if (type == "Recreate") {
    if (strategy["rollingUpdate"].is_object()) {
      causes.push_back(rules::forbidden("spec.strategy.rollingUpdate",
                                        "may not be specified when strategy `type` is 'Recreate'"));
    }
  } else if (type == "RollingUpdate") {
    validate_rolling_update(strategy["rollingUpdate"], "spec.strategy.rollingUpdate", causes);
  } else {
    causes.push_back({"FieldValueNotSupported",
                      fmt::format(R"(Unsupported value: {{"Type":{},"RollingUpdate":null}}: )"
                                  R"(supported values: "Recreate", "RollingUpdate")",
                                  api::detail::quote(type)),
                      "spec.strategy"});
  }
  require_not_negative(spec["minReadySeconds"], "spec.minReadySeconds", causes);
  require_not_negative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit", causes);
  if (const auto deadline = spec["progressDeadlineSeconds"].to_int()) {
    require_not_negative(spec["progressDeadlineSeconds"], "spec.progressDeadlineSeconds", causes);
    if (*deadline <= spec["minReadySeconds"].as_int()) {
      causes.push_back(rules::invalid("spec.progressDeadlineSeconds", *deadline,
                                      "must be greater than minReadySeconds"));
    }
  }
}
void validate_replica_set(const Object& object, Causes& causes) {
  validate_workload(object, "deployment", causes);
}
void validate_stateful_set(const Object& object, Causes& causes) {
  validate_workload(object, "statefulset", causes, object["spec"]["volumeClaimTemplates"]);
}
void validate_daemon_set(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  const Value selector = spec["selector"];
  if (validate_selector(selector, "spec.selector", causes)) must_select_template(spec, causes);
  if (selector.is_object() && is_empty_selector(selector)) {
    causes.push_back(
        invalid_value("spec.selector", selector, "empty selector is invalid for daemonset"));
  }
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes);
  must_always_restart(spec["template"]["spec"], causes);
}

void validate_stateful_set_update(const Object& object, const Object& old, Causes& causes) {
  if (!differs_but_for(
          object, old,
          {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
           "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}))
    return;
  causes.push_back(rules::forbidden(
      "spec",
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
      "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
      "'minReadySeconds' are forbidden"));
}

void validate_replicas_status(const Object& object, Causes& causes) {
  const Value status = object["status"];
  const std::int64_t replicas = status["replicas"].as_int();
  for (const char* field : {"replicas", "fullyLabeledReplicas", "updatedReplicas", "readyReplicas",
                            "availableReplicas", "observedGeneration"})
    require_not_negative(status[field], std::string("status.") + field, causes);
  for (const char* field :
       {"fullyLabeledReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"}) {
    const std::int64_t count = status[field].as_int();
    if (count > replicas) {
      causes.push_back(rules::invalid(std::string("status.") + field, count,
                                      "cannot be greater than status.replicas"));
    }
  }
  if (const std::int64_t count = status["availableReplicas"].as_int();
      count > status["readyReplicas"].as_int()) {
    causes.push_back(
        rules::invalid("status.availableReplicas", count, "cannot be greater than readyReplicas"));
  }
}

void validate_replication_controller(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  require_not_negative(spec["replicas"], "spec.replicas", causes);
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
    require_not_negative(spec[field], std::string("spec.") + field, causes);
  if (!spec["manualSelector"].as_bool()) {
    const Value labels = spec["selector"]["matchLabels"];
    const bool generated = labels.size() == 1 &&
                           labels["batch.kubernetes.io/controller-uid"].as_string() == object.uid();
    if (!generated) {
      causes.push_back(
          invalid_value("spec.selector", spec["selector"], "`selector` not auto-generated"));
    }
  }
  must_select_template(spec, causes);
  validate_pod_spec(spec["template"]["spec"], "spec.template.spec", causes);
  const std::string_view policy = spec["template"]["spec"]["restartPolicy"].as_string();
  if (policy != "OnFailure" && policy != "Never") {
    causes.push_back(rules::required("spec.template.spec.restartPolicy",
                                     R"(valid values: "OnFailure", "Never")"));
  }
}

void validate_job_update(const Object& object, const Object& old, Causes& causes) {
  const auto stays = [&](const char* field) {
    if (object["spec"][field] == old["spec"][field]) return;
    causes.push_back(
        invalid_value(std::string("spec.") + field, object["spec"][field], "field is immutable"));
  };
  if (object["spec"]["completionMode"].as_string() != "Indexed") stays("completions");
  stays("selector");
  // The template of a suspended job may still change where it runs.
  if (!old["spec"]["suspend"].as_bool()) stays("template");
  stays("completionMode");
}

void validate_selector_stays(const Object& object, const Object& old, Causes& causes) {
  if (object["spec"]["selector"] == old["spec"]["selector"]) return;
  causes.push_back(
      invalid_value("spec.selector", object["spec"]["selector"], "field is immutable"));
}

}  // namespace lookout::apiserver::resources
