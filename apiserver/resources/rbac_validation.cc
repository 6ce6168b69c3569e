// Validation of roles and their bindings.
#include <fmt/format.h>

#include <string_view>

#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::string_view kRoles = "rbac.authorization.k8s.io";

void check_subject(const Field& subject, bool in_namespace) {
  const std::string_view kind = subject["kind"].text();
  const Field name = subject["name"];
  const Field group = subject["apiGroup"];
  name.check_present();
  if (kind == "ServiceAccount") {
    if (!name.empty()) name.check_form(rules::check_dns1123_subdomain);
    if (!group.empty()) group.not_supported({""});
    if (!in_namespace) subject["namespace"].check_present();
  } else if (kind == "User" || kind == "Group") {
    if (!group.empty()) group.check_word({kRoles});
  } else {
    subject["kind"].not_supported({"ServiceAccount", "User", "Group"});
  }
}

void validate_binding(const Object& binding, bool in_namespace, Causes& causes) {
  const Field role(binding["roleRef"], "roleRef", causes);
  if (!role["apiGroup"].empty()) role["apiGroup"].check_word({kRoles});
  if (in_namespace) {
    role["kind"].check_word({"Role", "ClusterRole"});
  } else {
    role["kind"].check_word({"ClusterRole"});
  }
  role["name"].check_required_form(rules::check_path_segment_name);
  Field(binding["subjects"], "subjects", causes).each([&](const Field& subject) {
    check_subject(subject, in_namespace);
  });
}

void validate_rules(const Object& role, bool in_namespace, Causes& causes) {
  Field(role["rules"], "rules", causes).each([&](const Field& rule) {
    rule["verbs"].check_present("verbs must contain at least one value");
    if (const Field urls = rule["nonResourceURLs"]; !urls.empty()) {
      if (in_namespace) urls.invalid("namespaced rules cannot apply to non-resource URLs");
      if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
          !rule["resourceNames"].empty())
        urls.invalid("rules cannot apply to both regular resources and non-resource URLs");
      return;
    }
    rule["apiGroups"].check_present("resource rules must supply at least one api group");
    rule["resources"].check_present("resource rules must supply at least one resource");
  });
}

}  // namespace

void validate_role(const Object& role, Causes& causes) { validate_rules(role, true, causes); }

void validate_cluster_role(const Object& role, Causes& causes) {
  validate_rules(role, false, causes);
  const Field aggregation(role["aggregationRule"], "aggregationRule", causes);
  if (!aggregation.exists()) return;
  const Field selectors = aggregation["clusterRoleSelectors"];
  selectors.check_present(
      "at least one clusterRoleSelector required if aggregationRule is non-nil");
  selectors.each([&](const Field& selector) {
    if (selector.check_label_selector()) return;
    selector.invalid_as("null", "invalid label selector.");
  });
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
