// PolicyRule: one grant of a role.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::apiserver::auth {

inline constexpr const char* kRbacGroup = "rbac.authorization.k8s.io";

/// The action that a user requests (k8s.io/apiserver/pkg/authorization/authorizer.Attributes).
struct Attributes {
  /// "get", "list", ...; for requests without a resource the HTTP method in lower case.
  std::string verb;
  bool is_resource_request = true;
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string ns = {};
  std::string name = {};
  /// Without a resource: the path of the URL.
  std::string path = {};
};

/// k8s.io/api/rbac/v1.PolicyRule.
struct PolicyRule {
  std::vector<std::string> verbs = {};
  std::vector<std::string> groups = {};
  std::vector<std::string> resources = {};
  std::vector<std::string> names = {};
  std::vector<std::string> urls = {};

  bool operator==(const PolicyRule&) const = default;
};

using PolicyRules = std::vector<PolicyRule>;

/// The rules of a Role or a ClusterRole.
PolicyRules rules_of(const api::Object& role);

/// Whether the rule grants the action.
bool allows(const PolicyRule& rule, const Attributes& action);

/// The parts of `wanted` that no rule in `held` covers, each with one verb, one group, one resource
/// and at most one name, or with one verb and one URL
/// (k8s.io/component-helpers/auth/rbac/validation.Covers).
PolicyRules missing_rules(const PolicyRules& held, const PolicyRules& wanted);

/// kube-apiserver's text for such rules, one line each: {APIGroups:[""], Resources:["pods"], ...}.
std::string describe(const PolicyRules& missing);

}  // namespace lookout::apiserver::auth
