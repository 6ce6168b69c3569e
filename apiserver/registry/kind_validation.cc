// What smaller kinds must have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/strategies.h"

namespace lookout::apiserver::registry {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::string_view kRoles = "rbac.authorization.k8s.io";

void require(Value value, std::string_view field, Causes& causes, std::string_view why = "") {
  const bool empty = value.is_string() ? value.as_string().empty() : value.empty();
  if (!value.exists() || empty) causes.push_back(rules::required(field, why));
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return out;
}

void validate_subject(Value subject, const std::string& here, Causes& causes) {
  require(subject["name"], here + ".name", causes);
  const auto kind = subject["kind"].as_string();
  const auto group = subject["apiGroup"].as_string();
  if (kind == "ServiceAccount") {
    if (!group.empty())
      causes.push_back(
          rules::not_supported(here + ".apiGroup", group, std::array<std::string_view, 1>{""}));
    require(subject["namespace"], here + ".namespace", causes);
  } else if (kind == "User" || kind == "Group") {
    if (group != kRoles && !group.empty())
      causes.push_back(
          rules::not_supported(here + ".apiGroup", group, std::array<std::string_view, 1>{kRoles}));
  } else {
    constexpr std::array<std::string_view, 3> kKinds = {"ServiceAccount", "User", "Group"};
    causes.push_back(rules::not_supported(here + ".kind", kind, kKinds));
  }
}

void validate_binding(const Object& binding, bool in_namespace, Causes& causes) {
  const Value role = binding["roleRef"];
  const auto group = role["apiGroup"].as_string();
  if (group != kRoles && !group.empty())
    causes.push_back(
        rules::not_supported("roleRef.apiGroup", group, std::array<std::string_view, 1>{kRoles}));
  const auto kind = role["kind"].as_string();
  if (kind != "ClusterRole" && !(in_namespace && kind == "Role")) {
    const std::vector<std::string_view> kinds =
        in_namespace ? std::vector<std::string_view>{"Role", "ClusterRole"}
                     : std::vector<std::string_view>{"ClusterRole"};
    causes.push_back(rules::not_supported("roleRef.kind", kind, kinds));
  }
  require(role["name"], "roleRef.name", causes);
  std::size_t index = 0;
  for (const Value subject : binding["subjects"].elements())
    validate_subject(subject, fmt::format("subjects[{}]", index++), causes);
}

void validate_rules(const Object& role, bool in_namespace, Causes& causes) {
  std::size_t index = 0;
  for (const Value rule : role["rules"].elements()) {
    const std::string here = fmt::format("rules[{}]", index++);
    require(rule["verbs"], here + ".verbs", causes, "verbs must contain at least one value");
    if (const Value urls = rule["nonResourceURLs"]; !urls.empty()) {
      const auto refuse = [&](const char* why) {
        causes.push_back({"FieldValueInvalid",
                          fmt::format("Invalid value: {}: {}", urls.to_json(), why),
                          here + ".nonResourceURLs"});
      };
      if (in_namespace) refuse("namespaced rules cannot apply to non-resource URLs");
      if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
          !rule["resourceNames"].empty())
        refuse("rules cannot apply to both regular resources and non-resource URLs");
      continue;
    }
    require(rule["apiGroups"], here + ".apiGroups", causes,
            "resource rules must supply at least one api group");
    require(rule["resources"], here + ".resources", causes,
            "resource rules must supply at least one resource");
  }
}

}  // namespace

void validate_cron_job(const Object& job, Causes& causes) {
  const Value spec = job["spec"];
  const auto schedule = spec["schedule"].as_string();
  if (schedule.empty()) {
    causes.push_back(rules::required("spec.schedule", ""));
  } else if (schedule.front() != '@') {
    if (const auto fields = words(schedule); fields.size() != 5) {
      causes.push_back(rules::invalid("spec.schedule", schedule,
                                      fmt::format("expected exactly 5 fields, found {}: [{}]",
                                                  fields.size(), fmt::join(fields, " "))));
    }
  }
  const Value pod = spec["jobTemplate"]["spec"]["template"]["spec"];
  const std::string template_spec = "spec.jobTemplate.spec.template.spec";
  validate_pod_spec(pod, template_spec, causes);
  const auto policy = pod["restartPolicy"].as_string();
  constexpr std::array<std::string_view, 2> kPolicies = {"OnFailure", "Never"};
  if (policy == "Always")
    causes.push_back(rules::not_supported(template_spec + ".restartPolicy", policy, kPolicies));
}

void validate_ingress(const Object& ingress, Causes& causes) {
  const Value spec = ingress["spec"];
  if (spec["rules"].empty() && !spec["defaultBackend"].is_object()) {
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: null: either `defaultBackend` or `rules` must be specified",
                      "spec"});
  }
}

void validate_role(const Object& role, Causes& causes) { validate_rules(role, true, causes); }
void validate_cluster_role(const Object& role, Causes& causes) {
  validate_rules(role, false, causes);
}
void validate_role_binding(const Object& binding, Causes& causes) {
  validate_binding(binding, true, causes);
}
void validate_cluster_role_binding(const Object& binding, Causes& causes) {
  validate_binding(binding, false, causes);
}

void validate_storage_class(const Object& object, Causes& causes) {
  require(object["provisioner"], "provisioner", causes);
}

void validate_priority_class(const Object& object, Causes& causes) {
  if (object.name().starts_with("system-") && object.name() != "system-cluster-critical" &&
      object.name() != "system-node-critical") {
    causes.push_back(rules::forbidden(
        "metadata.name",
        "priority class names with 'system-' prefix are reserved for system use only"));
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

void validate_autoscaler(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  const auto least = spec["minReplicas"].to_int();
  const std::int64_t most = spec["maxReplicas"].as_int();
  if (least && *least < 1)
    causes.push_back(
        rules::invalid("spec.minReplicas", *least, "must be greater than or equal to 1"));
  if (most < 1)
    causes.push_back(rules::invalid("spec.maxReplicas", most, "must be greater than 0"));
  if (least && most < *least) {
    causes.push_back(
        rules::invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"));
  }
  require(spec["scaleTargetRef"]["kind"], "spec.scaleTargetRef.kind", causes);
  require(spec["scaleTargetRef"]["name"], "spec.scaleTargetRef.name", causes);
}

void validate_persistent_volume_claim(const Object& claim, Causes& causes) {
  const Value spec = claim["spec"];
  require(spec["accessModes"], "spec.accessModes", causes, "at least 1 access mode is required");
  require(spec["resources"]["requests"]["storage"], "spec.resources[storage]", causes);
}

void validate_persistent_volume(const Object& volume, Causes& causes) {
  const Value spec = volume["spec"];
  require(spec["accessModes"], "spec.accessModes", causes);
  require(spec["capacity"], "spec.capacity", causes);
  // What is no volume source.
  constexpr std::array<std::string_view, 9> kOthers = {
      "accessModes",      "capacity",     "claimRef",
      "mountOptions",     "nodeAffinity", "persistentVolumeReclaimPolicy",
      "storageClassName", "volumeMode",   "volumeAttributesClassName"};
  bool has_source = false;
  for (const auto& [name, value] : spec.members())
    has_source = has_source || std::find(kOthers.begin(), kOthers.end(), name) == kOthers.end();
  if (!has_source) causes.push_back(rules::required("spec", "must specify a volume type"));
}

}  // namespace lookout::apiserver::registry
