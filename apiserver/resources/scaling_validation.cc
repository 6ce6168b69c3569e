// Validation of autoscalers and disruption budgets.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

/// group/version, or a version alone.
void check_api_version(const Field& version, bool needs_group) {
  const std::string_view text = version.text();
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos && text.find('/', slash + 1) != std::string_view::npos) {
    version.invalid_text(fmt::format("unexpected GroupVersion string: {}", text));
  } else if (needs_group && (slash == std::string_view::npos || slash == 0)) {
    version.invalid_text("apiVersion must specify API group");
  }
}

void check_reference(const Field& reference) {
  reference["kind"].check_required_form(rules::check_path_segment_name);
  reference["name"].check_required_form(rules::check_path_segment_name);
}

/// In the core group, only replication controllers can be scaled.
void check_target_version(const Field& target) {
  check_api_version(target["apiVersion"], target["kind"].text() != "ReplicationController");
}

void check_metric(const Field& metric) {
  const Field name = metric["name"];
  if (name.check_present("must specify a metric name"))
    name.check_form(rules::check_path_segment_name);
}

void check_target(const Field& target) {
  const Field type = target["type"];
  const std::string_view text = type.text();
  type.check_present("must specify a metric target type");
  if (text != "Utilization" && text != "Value" && text != "AverageValue")
    type.invalid_text("must be either Utilization, Value, or AverageValue");
  for (const char* name : {"value", "averageValue"}) {
    const auto amount = Quantity::parse(target[name].text());
    if (amount && *amount <= Quantity()) target[name].invalid_text("must be positive");
  }
  target["averageUtilization"].check_positive();
}

/// One of two fields must exist; `names` are their names in messages. Without either, the first is
/// required; with both, the second is forbidden.
void check_one(const Field& first, const Field& second, std::array<const char*, 2> names) {
  if (!first.exists() && !second.exists())
    first.required(fmt::format("must set either {} or {}", names[0], names[1]));
  if (first.exists() && second.exists())
    second.forbidden(fmt::format("may not set both {} and {}", names[0], names[1]));
}

/// Checks the target of a resource metric: a utilization or an amount.
void check_resource_target(const Field& target) {
  check_target(target);
  check_one(target["averageUtilization"], target["averageValue"],
            {"a target raw value", "a target utilization"});
}

struct MetricSource {
  const char* type;
  const char* field;
  void (*check)(const Field& source);
};

/// In the order of validation.
constexpr std::array<MetricSource, 5> kSources = {{
    {"Object", "object",
     [](const Field& source) {
       check_reference(source["describedObject"]);
       check_api_version(source["describedObject"]["apiVersion"], false);
       check_metric(source["metric"]);
       const Field target = source["target"];
       check_target(target);
       if (!target["value"].exists() && !target["averageValue"].exists())
         target["averageValue"].required("must set either a target value or averageValue");
     }},
    {"External", "external",
     [](const Field& source) {
       check_metric(source["metric"]);
       const Field target = source["target"];
       check_target(target);
       check_one(target["averageValue"], target["value"],
                 {"a target value for metric", "a per-pod target"});
     }},
    {"Pods", "pods",
     [](const Field& source) {
       check_metric(source["metric"]);
       const Field target = source["target"];
       check_target(target);
       if (!target["averageValue"].exists())
         target["averageValue"].required("must specify a positive target averageValue");
     }},
    {"Resource", "resource",
     [](const Field& source) {
       source["name"].check_present("must specify a resource name");
       check_resource_target(source["target"]);
     }},
    {"ContainerResource", "containerResource",
     [](const Field& source) {
       if (source["name"].check_present("must specify a resource name"))
         check_container_resource_name(source["name"], source["name"].text());
       if (source["container"].check_present("must specify a container"))
         source["container"].check_form(rules::check_dns1123_label);
       check_resource_target(source["target"]);
     }},
}};

void check_metric_spec(const Field& metric) {
  const Field type = metric["type"];
  const auto check_type = [&] {
    return type.check_word({"ContainerResource", "External", "Object", "Pods", "Resource"});
  };
  type.check_present("must specify a metric source type");
  const bool known = check_type();
  int found = 0;
  for (const MetricSource& source : kSources) {
    if (!metric[source.field].exists()) continue;
    if (++found == 1) source.check(metric[source.field]);
  }
  // As in Kubernetes, an unknown type is reported twice.
  if (!known) check_type();
  for (const MetricSource& source : kSources) {
    if (type.text() == source.type && !metric[source.field].exists())
      metric[source.field].required("must populate information for the given metric source");
  }
  if (found == 1) return;
  for (const MetricSource& source : kSources) {
    if (type.text() != source.type && metric[source.field].exists())
      metric[source.field].forbidden("must populate the given metric source only");
  }
}

void check_scaling(const Field& scaling) {
  constexpr std::int64_t kLongestWindow = 3600;
  constexpr std::int64_t kLongestPeriod = 1800;
  if (!scaling.exists()) return;
  const Field window = scaling["stabilizationWindowSeconds"];
  window.check_range(0, INT64_MAX, "must be greater than or equal to zero");
  window.check_range(INT64_MIN, kLongestWindow, "must be less than or equal to 3600");
  scaling["selectPolicy"].check_word_if_present({"Disabled", "Max", "Min"});
  scaling["policies"].check_present("must specify at least one Policy");
  scaling["policies"].each([](const Field& policy) {
    policy["type"].check_word({"Percent", "Pods"});
    for (const char* field : {"value", "periodSeconds"}) {
      if (policy[field].number() <= 0) policy[field].invalid_number("must be greater than zero");
    }
    policy["periodSeconds"].check_range(INT64_MIN, kLongestPeriod,
                                        "must be less than or equal to 1800");
  });
  const auto tolerance = Quantity::parse(scaling["tolerance"].text());
  if (tolerance && *tolerance < Quantity())
    scaling["tolerance"].invalid_text("must be greater than or equal to 0");
}

}  // namespace

void validate_autoscaler(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  const Field least = spec["minReplicas"];
  const Field most = spec["maxReplicas"];
  least.check_range(1, INT64_MAX, "must be greater than or equal to 1");
  if (most.number() == 0) {
    most.required("must be set and greater than 0");
  } else if (most.number() < 0) {
    most.invalid_number("must be greater than or equal to 1");
  }
  if (least.exists() && most.number() < least.number())
    most.invalid_number("must be greater than or equal to `minReplicas`");
  check_reference(spec["scaleTargetRef"]);
  bool can_wake = false;
  spec["metrics"].each([&](const Field& metric) {
    check_metric_spec(metric);
    can_wake |= metric["type"].text() == "Object" || metric["type"].text() == "External";
  });
  if (least.exists() && least.number() == 0 && !can_wake) {
    spec["metrics"].forbidden(
        "must specify at least one Object or External metric to support scaling to zero replicas");
  }
  check_scaling(spec["behavior"]["scaleUp"]);
  check_scaling(spec["behavior"]["scaleDown"]);
}

void validate_new_autoscaler(const Object& object, Causes& causes) {
  check_target_version(Field(object["spec"]["scaleTargetRef"], "spec.scaleTargetRef", causes));
}

/// Unchanged values, which may be older than this rule, are not checked.
void validate_autoscaler_update(const Object& object, const Object& old, Causes& causes) {
  const Value target = object["spec"]["scaleTargetRef"];
  const Value before = old["spec"]["scaleTargetRef"];
  if (target["apiVersion"] == before["apiVersion"] && target["kind"] == before["kind"]) return;
  validate_new_autoscaler(object, causes);
}

void validate_autoscaler_status(const Object& object, const Object& /*old*/, Causes& causes) {
  const Field status(object["status"], "status", causes);
  status["currentReplicas"].check_not_negative();
  status["desiredReplicas"].check_not_negative();
}

void validate_disruption_budget(const Object& budget, Causes& causes) {
  const Field spec(budget["spec"], "spec", causes);
  const Field least = spec["minAvailable"];
  const Field most = spec["maxUnavailable"];
  if (least.exists() && most.exists()) {
    const auto shown = [&](const char* field) {
      return spec[field].exists() ? (*spec[field]).to_json() : std::string("null");
    };
    // Shows the spec in Go's syntax.
    spec.invalid_as(fmt::format(R"({{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},)"
                                R"("UnhealthyPodEvictionPolicy":{}}})",
                                shown("minAvailable"), shown("selector"), shown("maxUnavailable"),
                                shown("unhealthyPodEvictionPolicy")),
                    "minAvailable and maxUnavailable cannot be both set");
  }
  for (const Field& share : {least, most}) {
    share.check_count_or_share();
    share.check_share();
  }
  spec["selector"].check_label_selector();
  spec["unhealthyPodEvictionPolicy"].check_word_if_present({"AlwaysAllow", "IfHealthyBudget"});
}

void validate_disruption_budget_status(const Object& budget, const Object& /*old*/,
                                       Causes& causes) {
  const Field status(budget["status"], "status", causes);
  check_conditions(status["conditions"]);
  for (const char* field :
       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"})
    status[field].check_not_negative();
}

}  // namespace lookout::apiserver::resources
