// Validation of workloads.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

constexpr const char* kMismatch = "`selector` does not match template `labels`";

bool is_empty_selector(const Field& selector) {
  return selector["matchLabels"].empty() && selector["matchExpressions"].empty();
}

/// `kind` is for the error message.
void check_pods_of(const Field& pod, std::string_view kind) {
  const Field spec = pod["spec"];
  if (spec["restartPolicy"].text() != "Always") spec["restartPolicy"].not_supported({"Always"});
  if (spec["activeDeadlineSeconds"].exists()) {
    spec["activeDeadlineSeconds"].forbidden(
        fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
  }
}

/// Checks the selector of an apps/v1 workload. Returns whether it can be used.
bool check_selector(const Field& selector, std::string_view what) {
  if (!selector.exists()) {
    selector.required();
    return true;
  }
  const bool valid = selector.check_label_selector();
  if (is_empty_selector(selector))
    selector.invalid(fmt::format("empty selector is invalid for {}", what));
  return valid;
}

void check_matches_template(const Field& spec) {
  const Field labels = spec["template"]["metadata"]["labels"];
  const Field selector = spec["selector"];
  if (selector.exists() && is_empty_selector(selector)) return;
  if (!selector.selects(*labels)) labels.invalid(kMismatch);
}

/// Selector and template of a deployment or a replica set. (Many messages do not distinguish them.)
void check_replicated(const Field& spec) {
  if (check_selector(spec["selector"], "deployment")) {
    check_matches_template(spec);
    validate_pod_template(spec["template"]);
    check_pods_of(spec["template"], "ReplicaSet");
  } else {
    spec["selector"].invalid("invalid label selector");
  }
}

/// An int-or-string in Go's syntax.
std::string shown(Value value) { return value.exists() ? value.to_json() : "0"; }

/// Reports an unknown type of a strategy, in Go's syntax.
void refuse_strategy(const Field& strategy, std::string_view rolling, std::string_view supported) {
  strategy.causes().push_back(
      {"FieldValueNotSupported",
       fmt::format(R"(Unsupported value: {{"Type":{},"RollingUpdate":{}}}: supported values: {})",
                   api::detail::quote(strategy["type"].text()), rolling, supported),
       strategy.path()});
}

std::string rolling_in_go(const Field& rolling) {
  if (!rolling.exists()) return "null";
  return fmt::format(R"({{"MaxUnavailable":{},"MaxSurge":{}}})", shown(*rolling["maxUnavailable"]),
                     shown(*rolling["maxSurge"]));
}

void check_deployment_strategy(const Field& strategy) {
  const Field rolling = strategy["rollingUpdate"];
  const Field unavailable = rolling["maxUnavailable"];
  const std::string_view type = strategy["type"].text();
  if (type == "Recreate") {
    if (rolling.exists())
      rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
  } else if (type == "RollingUpdate") {
    unavailable.check_count_or_share();
    rolling["maxSurge"].check_count_or_share();
    if (unavailable.is_zero_share() && rolling["maxSurge"].is_zero_share())
      unavailable.invalid("may not be 0 when `maxSurge` is 0");
    unavailable.check_share();
  } else {
    refuse_strategy(strategy, rolling_in_go(rolling), R"("Recreate", "RollingUpdate")");
  }
}

void check_daemon_strategy(const Field& strategy) {
  const Field rolling = strategy["rollingUpdate"];
  const std::string_view type = strategy["type"].text();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    return refuse_strategy(strategy, rolling_in_go(rolling), R"("RollingUpdate", "OnDelete")");
  }
  if (!rolling.exists()) return rolling.required();
  const Field unavailable = rolling["maxUnavailable"];
  const Field surge = rolling["maxSurge"];
  unavailable.check_count_or_share();
  surge.check_count_or_share();
  unavailable.check_share();
  surge.check_share();
  if (!unavailable.is_zero_share() && !surge.is_zero_share())
    surge.invalid("may not be set when maxUnavailable is non-zero");
  if (unavailable.is_zero_share() && surge.is_zero_share())
    unavailable.required("cannot be 0 when maxSurge is 0");
}

void check_stateful_strategy(const Field& strategy) {
  const Field rolling = strategy["rollingUpdate"];
  const std::string_view type = strategy["type"].text();
  const auto in_go = [&] {
    return rolling.exists() ? fmt::format(R"({{"Partition":{},"MaxUnavailable":null}})",
                                          shown(*rolling["partition"]))
                            : std::string("null");
  };
  if (type.empty()) {
    strategy.required();
  } else if (type == "OnDelete") {
    if (rolling.exists())
      rolling.invalid_as(in_go(), "only allowed for updateStrategy 'RollingUpdate'");
  } else if (type == "RollingUpdate") {
    rolling["partition"].check_not_negative();
  } else {
    strategy.invalid_as(
        fmt::format(R"({{"Type":{},"RollingUpdate":{}}})", api::detail::quote(type), in_go()),
        "must be 'RollingUpdate' or 'OnDelete'");
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

void check_counts(const Field& status, std::initializer_list<const char*> counts) {
  for (const char* count : counts) status[count].check_not_negative();
}

constexpr const char* kCollisions = "collisionCount";

/// Names are derived from the collision count, so it must not decrease.
void check_collisions(const Field& status, const Object& old) {
  const Value before = old["status"][kCollisions];
  const Field now = status[kCollisions];
  if (before.exists() && (!now.exists() || now.number() < before.as_int()))
    now.invalid_number("cannot be decremented");
}

/// Counts of replicas in a status that may not exceed their total.
void check_parts(const Field& status, std::initializer_list<const char*> counts,
                 const char* of_ready) {
  for (const char* count : counts) {
    if (status[count].number() > status["replicas"].number())
      status[count].invalid_number("cannot be greater than status.replicas");
  }
  if (status["availableReplicas"].number() > status["readyReplicas"].number())
    status["availableReplicas"].invalid_number(of_ready);
}

}  // namespace

void validate_deployment(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["replicas"].check_not_negative();
  check_replicated(spec);
  check_deployment_strategy(spec["strategy"]);
  spec["minReadySeconds"].check_not_negative();
  spec["revisionHistoryLimit"].check_not_negative();
  const Field deadline = spec["progressDeadlineSeconds"];
  deadline.check_not_negative();
  if (deadline.exists() && deadline.number() <= spec["minReadySeconds"].number())
    deadline.invalid_number("must be greater than minReadySeconds");
}

void validate_replica_set(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["replicas"].check_not_negative();
  spec["minReadySeconds"].check_not_negative();
  check_replicated(spec);
}

void validate_stateful_set(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  const Field policy = spec["podManagementPolicy"];
  if (policy.check_present() && policy.text() != "OrderedReady" && policy.text() != "Parallel")
    policy.invalid_text("must be 'OrderedReady' or 'Parallel'");
  check_stateful_strategy(spec["updateStrategy"]);
  for (const char* when : {"whenDeleted", "whenScaled"})
    spec["persistentVolumeClaimRetentionPolicy"][when].check_word({"Retain", "Delete"});
  spec["replicas"].check_not_negative();
  spec["minReadySeconds"].check_not_negative();
  spec["ordinals"]["start"].check_not_negative();
  if (check_selector(spec["selector"], "statefulset")) {
    check_matches_template(spec);
    const Field pod = spec["template"];
    validate_pod_template(pod, *spec["volumeClaimTemplates"]);
    pod["metadata"]["labels"].named(pod.path() + ".labels").check_labels();
    pod["metadata"]["annotations"].named(pod.path() + ".annotations").check_annotations();
  } else {
    spec["selector"].invalid("");
  }
  check_pods_of(spec["template"], "StatefulSet");
}

void validate_new_stateful_set(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["serviceName"].check_form_if_present(rules::check_dns1123_label);
  spec["volumeClaimTemplates"].each([](const Field& claim) { validate_claim_spec(claim["spec"]); });
}

void validate_daemon_set(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  const Field selector = spec["selector"];
  if (selector.check_label_selector()) check_matches_template(spec);
  if (selector.exists() && is_empty_selector(selector))
    selector.invalid("empty selector is invalid for daemonset");
  validate_pod_template(spec["template"]);
  check_pods_of(spec["template"], "DaemonSet");
  spec["minReadySeconds"].check_not_negative();
  check_daemon_strategy(spec["updateStrategy"]);
  spec["revisionHistoryLimit"].check_not_negative();
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

void validate_deployment_status(const Object& object, const Object& old, Causes& causes) {
  const Field status(object["status"], "status", causes);
  check_counts(status,
               {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                "availableReplicas", "unavailableReplicas", "terminatingReplicas", kCollisions});
  check_parts(status, {"updatedReplicas", "readyReplicas", "availableReplicas"},
              "cannot be greater than readyReplicas");
  check_collisions(status, old);
}

void validate_replicas_status(const Object& object, const Object& /*old*/, Causes& causes) {
  const Field status(object["status"], "status", causes);
  check_counts(status, {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                        "observedGeneration", "terminatingReplicas"});
  check_parts(status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
              "cannot be greater than readyReplicas");
}

void validate_stateful_set_status(const Object& object, const Object& old, Causes& causes) {
  const Field status(object["status"], "status", causes);
  check_counts(status, {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                        "availableReplicas", "observedGeneration", kCollisions});
  check_parts(status, {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
              "cannot be greater than status.readyReplicas");
  check_collisions(status, old);
}

void validate_daemon_set_status(const Object& object, const Object& old, Causes& causes) {
  const Field status(object["status"], "status", causes);
  check_counts(status, {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                        "numberReady", "observedGeneration", "updatedNumberScheduled",
                        "numberAvailable", "numberUnavailable", kCollisions});
  check_collisions(status, old);
}

void validate_replication_controller(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["minReadySeconds"].check_not_negative();
  spec["selector"].check_present();
  spec["replicas"].check_not_negative();
  const Field pod = spec["template"];
  if (!pod.exists()) return pod.required();
  const Field labels = pod["metadata"]["labels"];
  for (const auto& [name, value] : (*spec["selector"]).members()) {
    if ((*labels)[name] == value) continue;
    labels.invalid(kMismatch);
    break;
  }
  validate_pod_template(pod);
  check_pods_of(pod, "ReplicationController");
}

void validate_pod_template_object(const Object& object, Causes& causes) {
  validate_pod_template(Field(object["template"], "template", causes));
}

void validate_controller_revision(const Object& revision, Causes& causes) {
  Field(revision["revision"], "revision", causes).check_not_negative();
}

void validate_new_controller_revision(const Object& revision, Causes& causes) {
  const Field data(revision["data"], "data", causes);
  if (!data.exists()) {
    data.required("data is mandatory");
  } else if (!(*data).is_object()) {
    data.required("data must be a valid JSON object");
  }
}

void validate_controller_revision_update(const Object& revision, const Object& old,
                                         Causes& causes) {
  if (!(revision["data"] == old["data"]))
    Field(revision["data"], "data", causes).invalid("field is immutable");
}

void validate_selector_stays(const Object& object, const Object& old, Causes& causes) {
  if (object["spec"]["selector"] == old["spec"]["selector"]) return;
  Field(object["spec"]["selector"], "spec.selector", causes).invalid("field is immutable");
}

}  // namespace lookout::apiserver::resources
