// What smaller kinds must have.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/strategies.h"
#include "lookout/api/base64.h"
#include "lookout/api/quantity.h"

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
  if (policy != kPolicies[0] && policy != kPolicies[1]) {
    causes.push_back(
        rules::required(template_spec + ".restartPolicy", R"(valid values: "OnFailure", "Never")"));
  }
  constexpr std::size_t kLongestName = 52;
  if (job.name().size() > kLongestName) {
    causes.push_back(
        rules::invalid("metadata.name", job.name(), "must be no more than 52 characters"));
  }
}

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
  constexpr std::array<std::string_view, 4> kModes = {"ReadOnlyMany", "ReadWriteMany",
                                                      "ReadWriteOnce", "ReadWriteOncePod"};
  for (const Value mode : spec["accessModes"].elements()) {
    if (std::find(kModes.begin(), kModes.end(), mode.as_string()) == kModes.end())
      causes.push_back(rules::not_supported("spec.accessModes", mode.as_string(), kModes));
  }
  const Value size = spec["resources"]["requests"]["storage"];
  require(size, "spec.resources[storage]", causes);
  const auto quantity = api::Quantity::parse(size.as_string());
  if (quantity && *quantity <= api::Quantity()) {
    causes.push_back(
        rules::invalid("spec.resources[storage]", size.as_string(), "must be greater than zero"));
  }
}

void validate_claim_update(const Object& claim, const Object& old, Causes& causes) {
  const auto kept = [](const Object& object) {
    json::Document document = object.to_document();
    for (const char* part : {"metadata", "status"}) json::erase(document, part);
    json::Value* spec = json::find(document, "spec");
    if (spec == nullptr) return Object::from(document);
    for (const char* field : {"resources", "volumeAttributesClassName"}) json::erase(*spec, field);
    return Object::from(document);
  };
  // A claim is bound once.
  const bool binds = old["spec"]["volumeName"].as_string().empty() &&
                     !claim["spec"]["volumeName"].as_string().empty();
  const bool bound = claim["status"]["phase"].as_string() == "Bound";
  const bool resized = !bound && !(claim["spec"]["resources"] == old["spec"]["resources"]);
  if (!resized && (binds || kept(claim) == kept(old))) return;
  causes.push_back(
      rules::forbidden("spec",
                       "spec is immutable after creation except resources.requests and "
                       "volumeAttributesClassName for bound claims"));
}

void validate_storage_class_update(const Object& object, const Object& old, Causes& causes) {
  for (const char* field : {"parameters", "provisioner", "reclaimPolicy"}) {
    if (object[field] == old[field]) continue;
    causes.push_back(rules::forbidden(field, fmt::format("updates to {} are forbidden.", field)));
  }
  if (!(object["volumeBindingMode"] == old["volumeBindingMode"])) {
    causes.push_back(rules::invalid("volumeBindingMode", object["volumeBindingMode"].as_string(),
                                    "field is immutable"));
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

void validate_role_binding_update(const Object& object, const Object& old, Causes& causes) {
  const Value role = object["roleRef"];
  if (role == old["roleRef"]) return;
  causes.push_back({"FieldValueInvalid",
                    fmt::format(R"(Invalid value: {{"APIGroup":"{}","Kind":"{}","Name":"{}"}}: )"
                                "cannot change roleRef",
                                role["apiGroup"].as_string(), role["kind"].as_string(),
                                role["name"].as_string()),
                    "roleRef"});
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

void validate_signing_request(const Object& request, Causes& causes) {
  const Value spec = request["spec"];
  const auto pem = api::decode_base64(spec["request"].as_string()).value_or(std::string());
  if (pem.find("-----BEGIN CERTIFICATE REQUEST-----") == std::string::npos) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: PEM block type must be CERTIFICATE REQUEST",
                                  spec["request"].is_string() ? spec["request"].to_json() : "null"),
                      "spec.request"});
  }
  require(spec["usages"], "spec.usages", causes, "usages must be provided");
  require(spec["signerName"], "spec.signerName", causes, "signerName must be provided");
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
