// Validation of roles and their bindings.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::string_view kRoles = "rbac.authorization.k8s.io";

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

}  // namespace lookout::apiserver::resources
