// Rules of roles: allowed actions, and coverage.
#include "apiserver/auth/policy_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/auth/rbac_authorizer.h"
#include "apiserver/bootstrap/policy.h"
#include "lookout/api/error.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver::auth {
namespace {

Attributes on(std::string verb, std::string group, std::string resource,
              std::string subresource = {}, std::string name = {}) {
  Attributes action{std::move(verb)};
  action.group = std::move(group);
  action.resource = std::move(resource);
  action.subresource = std::move(subresource);
  action.name = std::move(name);
  return action;
}

Attributes at(std::string verb, std::string path) {
  Attributes action{std::move(verb)};
  action.is_resource_request = false;
  action.path = std::move(path);
  return action;
}

TEST(PolicyRule, AllowsVerbsOfResourcesInGroups) {
  const PolicyRule rule{{"get", "list"}, {"", "apps"}, {"pods", "deployments"}};
  EXPECT_TRUE(allows(rule, on("get", "", "pods")));
  EXPECT_TRUE(allows(rule, on("list", "apps", "deployments")));
  EXPECT_FALSE(allows(rule, on("watch", "", "pods")));
  EXPECT_FALSE(allows(rule, on("get", "batch", "pods")));
  EXPECT_FALSE(allows(rule, on("get", "", "secrets")));
  EXPECT_FALSE(allows(rule, on("get", "", "pods", "log")));
  EXPECT_FALSE(allows(rule, at("get", "/pods")));
  const PolicyRule all{{"*"}, {"*"}, {"*"}};
  EXPECT_TRUE(allows(all, on("escalate", "x.y", "things", "scale")));
  EXPECT_FALSE(allows(all, at("get", "/metrics")));
}

TEST(PolicyRule, AllowsSubresources) {
  const PolicyRule logs{{"get"}, {""}, {"pods/log"}};
  EXPECT_TRUE(allows(logs, on("get", "", "pods", "log")));
  EXPECT_FALSE(allows(logs, on("get", "", "pods")));
  EXPECT_FALSE(allows(logs, on("get", "", "pods", "status")));
  const PolicyRule scale{{"get"}, {"*"}, {"*/scale"}};
  EXPECT_TRUE(allows(scale, on("get", "apps", "deployments", "scale")));
  EXPECT_FALSE(allows(scale, on("get", "apps", "deployments")));
  EXPECT_FALSE(allows(scale, on("get", "apps", "deployments", "upscale")));
  EXPECT_FALSE(allows({{"get"}, {""}, {"pods/*"}}, on("get", "", "pods", "log")));
}

TEST(PolicyRule, AllowsNames) {
  const PolicyRule rule{{"get", "create"}, {""}, {"configmaps"}, {"a", "b"}};
  EXPECT_TRUE(allows(rule, on("get", "", "configmaps", "", "b")));
  EXPECT_FALSE(allows(rule, on("get", "", "configmaps", "", "c")));
  // The name of a new object is not known.
  EXPECT_FALSE(allows(rule, on("create", "", "configmaps")));
}

TEST(PolicyRule, AllowsUrls) {
  const PolicyRule rule{{"get"}, {}, {}, {}, {"/metrics", "/debug/*", "/health*"}};
  for (const char* good : {"/metrics", "/debug/", "/debug/pprof/heap", "/health", "/healthz"})
    EXPECT_TRUE(allows(rule, at("get", good))) << good;
  for (const char* bad : {"/metrics/", "/debug", "/", "/heal"})
    EXPECT_FALSE(allows(rule, at("get", bad))) << bad;
  EXPECT_FALSE(allows(rule, at("post", "/metrics")));
}

TEST(PolicyRule, MissingRulesAreThePartsThatNoRuleCovers) {
  const PolicyRules held{{{"get", "list"}, {""}, {"pods"}},
                         {{"*"}, {"apps"}, {"*"}},
                         {{"get"}, {""}, {"configmaps"}, {"a"}},
                         {{"get"}, {"*"}, {"*/scale"}},
                         {{"get"}, {}, {}, {}, {"/debug/*"}}};
  const auto missing = [&](const PolicyRules& wanted) {
    return describe(missing_rules(held, wanted));
  };
  EXPECT_EQ(missing({{{"get"}, {""}, {"pods"}, {"web"}}}), "");
  EXPECT_EQ(missing({{{"*"}, {"apps"}, {"deployments/status"}}}), "");
  EXPECT_EQ(missing({{{"get"}, {"x"}, {"things/scale"}}}), "");
  EXPECT_EQ(missing({{{"get"}, {}, {}, {}, {"/debug/pprof", "/debug/*"}}}), "");
  EXPECT_EQ(missing({{{"get", "watch", "delete"}, {""}, {"pods"}}}),
            R"({APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]})");
  // Permission for one object does not include all.
  EXPECT_EQ(missing({{{"get"}, {""}, {"configmaps"}}}),
            R"({APIGroups:[""], Resources:["configmaps"], Verbs:["get"]})");
  EXPECT_EQ(missing({{{"get"}, {""}, {"configmaps"}, {"a", "b"}}}),
            R"({APIGroups:[""], Resources:["configmaps"], ResourceNames:["b"], Verbs:["get"]})");
  EXPECT_EQ(missing({{{"*"}, {"*"}, {"*"}}, {{"get"}, {}, {}, {}, {"*"}}}),
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n"
            "{NonResourceURLs:[\"*\"], Verbs:[\"get\"]}");
}

api::Object from_json(const std::string& text) { return api::Object::parse(text); }

TEST(RbacAuthorizer, UsesTheNewestStateOfAnObject) {
  RbacAuthorizer rbac;
  const User ann{"ann"};
  const auto role = [](const char* revision, const char* verb) {
    return from_json(
        fmt::format(R"({{"metadata":{{"name":"r","uid":"1","resourceVersion":"{}"}},)"
                    R"("rules":[{{"verbs":["{}"],"apiGroups":[""],"resources":["pods"]}}]}})",
                    revision, verb));
  };
  const api::Object binding = from_json(R"({"metadata":{"name":"b","uid":"2","resourceVersion":"3"},
               "roleRef":{"kind":"ClusterRole","name":"r"},
               "subjects":[{"kind":"User","name":"ann"}]})");
  rbac.put(RbacKind::kClusterRoleBinding, binding);
  const Decision lost = rbac.authorize(ann, on("get", "", "pods"));
  EXPECT_FALSE(lost.allowed);
  EXPECT_EQ(lost.reason, R"(RBAC: clusterrole.rbac.authorization.k8s.io "r" not found)");
  rbac.put(RbacKind::kClusterRole, role("9", "list"));
  // A late event of an older version.
  rbac.put(RbacKind::kClusterRole, role("5", "get"));
  EXPECT_FALSE(rbac.authorize(ann, on("get", "", "pods")).allowed);
  const Decision decision = rbac.authorize(ann, on("list", "", "pods"));
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason,
            R"(RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann")");
  rbac.remove(RbacKind::kClusterRoleBinding, binding);
  EXPECT_FALSE(rbac.authorize(ann, on("list", "", "pods")).allowed);
  // A deleted object does not reappear.
  rbac.put(RbacKind::kClusterRoleBinding, binding);
  EXPECT_FALSE(rbac.authorize(ann, on("list", "", "pods")).allowed);
  EXPECT_EQ(rbac.authorize(ann, on("list", "", "pods")).reason, "");
}

TEST(RbacAuthorizer, RemovesObjectsThatANewWatchOmits) {
  RbacAuthorizer rbac;
  rbac.put(RbacKind::kRole,
           from_json(R"({"metadata":{"name":"r","namespace":"shop","uid":"1","resourceVersion":"1"},
                    "rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"));
  for (const char* name : {"a", "b"}) {
    rbac.put(RbacKind::kRoleBinding,
             from_json(fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"shop","uid":"{0}",
               "resourceVersion":"2"}},"roleRef":{{"kind":"Role","name":"r"}},
               "subjects":[{{"kind":"ServiceAccount","name":"{0}"}}]}})",
                                   name)));
  }
  Attributes action = on("get", "", "pods");
  action.ns = "shop";
  const auto may = [&](const char* name) {
    return rbac.authorize({std::string("system:serviceaccount:shop:") + name}, action).allowed;
  };
  EXPECT_TRUE(may("a"));
  EXPECT_TRUE(may("b"));
  rbac.keep_only(RbacKind::kClusterRoleBinding, {}, 9);
  // These are newer.
  rbac.keep_only(RbacKind::kRoleBinding, {}, 1);
  EXPECT_TRUE(may("a"));
  rbac.keep_only(RbacKind::kRoleBinding, {"shop/b"}, 9);
  EXPECT_FALSE(may("a"));
  EXPECT_TRUE(may("b"));
  action.ns = "store";
  EXPECT_FALSE(may("b"));
}

TEST(BootstrapPolicy, MatchesItsTable) {
  const auto entries = bootstrap::parse_policy(bootstrap::policy_text());
  EXPECT_GT(entries.size(), 100U);
}

TEST(BootstrapPolicy, NamesInvalidLines) {
  const auto error_of = [](const char* text) {
    return test::refusal([&] { bootstrap::parse_policy(text); });
  };
  EXPECT_EQ(error_of("ClusterRole a\n  get core pods\n  read url /a,/b\n"), "");
  const std::string bad = "bootstrap policy, line 2: not understood";
  EXPECT_EQ(error_of("ClusterRole a\nGarage b\n"), bad);
  EXPECT_EQ(error_of("ClusterRole a\n  get core\n"), bad);
  EXPECT_EQ(error_of("ClusterRole a\n  get core pods names\n"), bad);
  EXPECT_EQ(error_of("#\n  get core pods\n"), bad);
  EXPECT_EQ(error_of("\nClusterRoleBinding a b User\n"), bad);
  EXPECT_EQ(error_of("\nClusterRoleBinding a b ServiceAccount cart\n"), bad);
}

}  // namespace
}  // namespace lookout::apiserver::auth
