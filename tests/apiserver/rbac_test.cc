// A server with role-based access control.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";
const api::Resource kRoles{kRbac, "v1", "Role", "roles", true};
const api::Resource kRoleBindings{kRbac, "v1", "RoleBinding", "rolebindings", true};
const api::Resource kClusterRoleBindings{kRbac, "v1", "ClusterRoleBinding", "clusterrolebindings",
                                         false};

class Rbac : public ClientTest {
 protected:
  Rbac() : ClientTest(options()) {}

  static ServerOptions options() {
    ServerOptions out;
    out.authorization = Authorization::kRbac;
    return out;
  }

  rest::Client as(const std::string& user, std::vector<std::string> groups = {}) const {
    return rest::Client(server_.config_for(user, std::move(groups)));
  }

  /// Creates a role in the namespace default, and binds it to a user.
  void grant(const std::string& user, const std::string& rules) const {
    in(kRoles).create(
        from_json(fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[{}]}})", user, rules)));
    bind(user, "Role", user);
  }
  void bind(const std::string& user, const char* kind, const std::string& role) const {
    in(kRoleBindings)
        .create(from_json(fmt::format(R"({{"metadata":{{"name":"{0}"}},
          "roleRef":{{"kind":"{1}","name":"{2}"}},"subjects":[{{"kind":"User","name":"{0}"}}]}})",
                                      user, kind, role)));
  }

  static std::string message(const std::function<void()>& operation) {
    try {
      operation();
    } catch (const api::StatusError& e) {
      return fmt::format("{} {}", e.status().code, e.status().message);
    }
    return "done";
  }
};

TEST_F(Rbac, RejectsRequestsWithoutARule) {
  const rest::Client ann = as("ann");
  EXPECT_EQ(
      message([&] { ann.resource(kPods, "default").list({}); }),
      "403 pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in "
      "the namespace \"default\"");
  EXPECT_EQ(
      message([&] { ann.resource(kDeployments).list({}); }),
      "403 deployments.apps is forbidden: User \"ann\" cannot list resource \"deployments\" in "
      "API group \"apps\" at the cluster scope");
  EXPECT_EQ(message([&] { ann.get_raw("/metrics"); }),
            "403 forbidden: User \"ann\" cannot get path \"/metrics\"");
  // All users may read discovery.
  EXPECT_EQ(message([&] { ann.get_raw("/apis/apps/v1"); }), "done");
  // The test's client and system:masters may do everything.
  pods().create(pod("web"));
  EXPECT_EQ(message([&] { as("root", {"system:masters"}).resource(kPods).list({}); }), "done");
}

TEST_F(Rbac, GrantsAndRevokesAtOnce) {
  const rest::Client ann = as("ann");
  const auto list = [&] { ann.resource(kPods, "default").list({}); };
  for (int i = 0; i < 20; ++i) {
    grant("ann", R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]})");
    ASSERT_EQ(message(list), "done") << i;
    in(kRoles).remove("ann");
    ASSERT_THAT(message(list),
                HasSubstr(R"(: RBAC: role.rbac.authorization.k8s.io "ann" not found)"));
    in(kRoleBindings).remove("ann");
    ASSERT_THAT(message(list), HasSubstr("in the namespace \"default\""));
  }
  grant("ann", R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]})");
  ASSERT_EQ(message(list), "done");
  const auto role = in(kRoles).get("ann");
  in(kRoles).update(changed(role, R"({"rules":[]})"));
  ASSERT_THAT(message(list), HasSubstr("403"));
  in(kRoles).patch("ann", rest::PatchType::kMerge, R"({"rules":[{"verbs":["list"],"apiGroups":[""],
    "resources":["pods"]}]})");
  ASSERT_EQ(message(list), "done");
  in(kRoleBindings).remove_collection({});
  ASSERT_THAT(message(list), HasSubstr("403"));
}

TEST_F(Rbac, ADryRunGrantsNothing) {
  in(kRoles).create(from_json(R"({"metadata":{"name":"ann"},"rules":[
    {"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]})"));
  const HttpAnswer dry =
      http(server_.port(), "POST",
           "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings?dryRun=All",
           R"({"metadata":{"name":"ann"},"roleRef":{"kind":"Role","name":"ann"},
               "subjects":[{"kind":"User","name":"ann"}]})");
  ASSERT_EQ(dry.code, 201) << dry.body;
  EXPECT_THAT(message([&] { as("ann").resource(kPods, "default").list({}); }), HasSubstr("403"));
}

TEST_F(Rbac, RulesGoWithTheirNamespace) {
  grant("ann", R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]})");
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  const rest::Client ann = as("ann");
  EXPECT_THAT(message([&] { ann.resource(kPods, "shop").list({}); }), HasSubstr("403"));
  EXPECT_THAT(message([&] { ann.resource(kPods).list({}); }), HasSubstr("at the cluster scope"));
}

TEST_F(Rbac, NamesSubresourcesAndSelectorsAreChecked) {
  grant("ann",
        R"({"verbs":["get","list","watch"],"apiGroups":[""],"resources":["configmaps"],
            "resourceNames":["settings"]},
           {"verbs":["get"],"apiGroups":[""],"resources":["pods/status"]})");
  in(kConfigMaps).create(config_map("settings"));
  in(kConfigMaps).create(config_map("others"));
  pods().create(pod("web"));
  const rest::Client ann = as("ann");
  const auto maps = ann.resource(kConfigMaps, "default");
  EXPECT_EQ(message([&] { maps.get("settings"); }), "done");
  EXPECT_THAT(message([&] { maps.get("others"); }), HasSubstr("403 configmaps \"others\" is"));
  EXPECT_THAT(message([&] { maps.list({}); }), HasSubstr("403"));
  // An informer for one object needs only permissions for this object.
  EXPECT_EQ(message([&] { maps.list({.field_selector = "metadata.name=settings"}); }), "done");
  EXPECT_THAT(message([&] { maps.list({.field_selector = "metadata.name=others"}); }),
              HasSubstr("403"));
  EXPECT_THAT(message([&] { maps.list({.field_selector = "metadata.name!=settings"}); }),
              HasSubstr("403"));
  const auto raw = [&](const char* path) { return message([&] { ann.get_raw(path); }); };
  EXPECT_EQ(raw("/api/v1/namespaces/default/pods/web/status"), "done");
  EXPECT_THAT(raw("/api/v1/namespaces/default/pods/web"), HasSubstr("403"));
  EXPECT_THAT(raw("/api/v1/namespaces/default/pods/web/log"), HasSubstr("resource \"pods/log\""));
}

TEST_F(Rbac, AnUpdateThatCreatesNeedsCreate) {
  grant("ann", R"({"verbs":["patch","update"],"apiGroups":["","coordination.k8s.io"],
                   "resources":["configmaps","leases"]})");
  const rest::Client ann = as("ann");
  const auto apply = [&] {
    ann.resource(kConfigMaps, "default")
        .patch("a", rest::PatchType::kApply,
               R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}})",
               {.field_manager = "ann"});
  };
  EXPECT_THAT(message(apply), HasSubstr("403 configmaps \"a\" is forbidden: User \"ann\" cannot "
                                        "create resource \"configmaps\""));
  EXPECT_THAT(message([&] {
                ann.resource(kLeases, "default")
                    .update(from_json(R"({"metadata":{"name":"a"},"spec":{}})"));
              }),
              HasSubstr("cannot create resource \"leases\""));
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(message(apply), "done");
}

TEST_F(Rbac, UsersCannotEscalate) {
  grant("ann",
        R"({"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],
            "resources":["roles","rolebindings"],"resourceNames":["mine"]},
           {"verbs":["create","get"],"apiGroups":["rbac.authorization.k8s.io"],
            "resources":["roles","rolebindings"]},
           {"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]})");
  // (The first rule allows "escalate" and "bind" of the name "mine" only. A creation has no name.)
  const rest::Client ann = as("ann");
  const auto roles = ann.resource(kRoles, "default");
  const auto role = [](const char* name, const char* verb) {
    return from_json(fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[
      {{"verbs":["get","{}"],"apiGroups":[""],"resources":["pods"]}}]}})",
                                 name, verb));
  };
  EXPECT_EQ(message([&] { roles.create(role("readers", "list")); }), "done");
  EXPECT_EQ(message([&] { roles.create(role("writers", "update")); }),
            "403 roles.rbac.authorization.k8s.io \"writers\" is forbidden: user \"ann\" "
            "(groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not "
            "currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"update\"]}");
  EXPECT_THAT(message([&] { roles.create(role("mine", "update")); }),
              HasSubstr("403 roles.rbac.authorization.k8s.io \"mine\" is forbidden"));
  EXPECT_EQ(message([&] { roles.create(role("mine", "list")); }), "done");
  EXPECT_EQ(message([&] {
              roles.update(changed(roles.get("mine"), R"({"rules":[
              {"verbs":["update"],"apiGroups":[""],"resources":["pods"]}]})"));
            }),
            "done");
  in(kRoles).create(role("others", "delete"));
  const auto bindings = ann.resource(kRoleBindings, "default");
  const auto binding = [](const char* name, const char* kind = "Role") {
    return from_json(fmt::format(R"({{"metadata":{{"name":"{0}"}},
      "roleRef":{{"kind":"{1}","name":"{0}"}},"subjects":[{{"kind":"User","name":"bob"}}]}})",
                                 name, kind));
  };
  EXPECT_EQ(message([&] { bindings.create(binding("readers")); }), "done");
  EXPECT_THAT(message([&] { bindings.create(binding("others")); }),
              HasSubstr("403 rolebindings.rbac.authorization.k8s.io \"others\" is forbidden"));
  EXPECT_EQ(message([&] { bindings.create(binding("mine")); }), "done");
  EXPECT_EQ(message([&] { bindings.create(binding("lost", "ClusterRole")); }),
            "404 clusterroles.rbac.authorization.k8s.io \"lost\" not found");
  // A change is checked like a creation.
  const auto mine = in(kRoles).get("readers");
  grant("carl", R"({"verbs":["update"],"apiGroups":["rbac.authorization.k8s.io"],
                    "resources":["roles"]})");
  EXPECT_THAT(message([&] {
                as("carl")
                    .resource(kRoles, "default")
                    .update(changed(mine, R"({"metadata":{"labels":{"a":"b"}}})"));
              }),
              HasSubstr("not currently held"));
}

TEST_F(Rbac, TheRoleOfABindingIsImmutable) {
  grant("ann", R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})");
  const auto binding = in(kRoleBindings).get("ann");
  EXPECT_THAT(message([&] {
                in(kRoleBindings).update(changed(binding, R"({"roleRef":{"name":"others"}})"));
              }),
              HasSubstr("cannot change roleRef"));
}

TEST_F(Rbac, AggregatedRolesHaveTheRulesOfOthers) {
  const auto roles = all(kClusterRoles);
  roles.create(from_json(R"({"metadata":{"name":"sum"},"rules":[],"aggregationRule":{
    "clusterRoleSelectors":[{"matchLabels":{"part":"yes"}}]}})"));
  const auto part = [](const char* name, const char* resource) {
    return from_json(fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"part":"yes"}}}},"rules":[
      {{"verbs":["list"],"apiGroups":[""],"resources":["{}"]}}]}})",
                                 name, resource));
  };
  bind("ann", "ClusterRole", "sum");
  roles.create(part("b", "pods"));
  const rest::Client ann = as("ann");
  EXPECT_EQ(message([&] { ann.resource(kPods, "default").list({}); }), "done");
  roles.create(part("a", "secrets"));
  EXPECT_EQ(message([&] { ann.resource(kSecrets, "default").list({}); }), "done");
  EXPECT_EQ(held(roles.get("sum"))["rules"].to_json(),
            R"([{"verbs":["list"],"apiGroups":[""],"resources":["secrets"]},)"
            R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]}])");
  roles.remove("b");
  EXPECT_THAT(message([&] { ann.resource(kPods, "default").list({}); }), HasSubstr("403"));
  // A custom resource's author adds to the roles of users.
  roles.create(from_json(R"({"metadata":{"name":"things-view",
    "labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},"rules":[
    {"verbs":["get"],"apiGroups":["example.com"],"resources":["things"]}]})"));
  for (const char* role : {"view", "edit", "admin"})
    EXPECT_THAT(held(roles.get(role))["rules"].to_json(), HasSubstr("things")) << role;
}

TEST_F(Rbac, ImpersonationNeedsPermission) {
  all(kClusterRoles).create(from_json(R"({"metadata":{"name":"actors"},"rules":[
    {"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],"resourceNames":["bob"]},
    {"verbs":["impersonate"],"apiGroups":[""],"resources":["groups"],"resourceNames":["dev"]},
    {"verbs":["impersonate"],"apiGroups":["authentication.k8s.io"],
     "resources":["userextras/scopes"],"resourceNames":["view"]}]})"));
  all(kClusterRoleBindings).create(from_json(R"({"metadata":{"name":"actors"},
    "roleRef":{"kind":"ClusterRole","name":"actors"},"subjects":[{"kind":"User","name":"ann"}]})"));
  const auto acting = [&](const std::function<void(rest::Impersonation&)>& change) {
    rest::Config config = server_.config_for("ann");
    change(config.as);
    return message([&] { rest::Client(config).get_raw("/api"); });
  };
  EXPECT_EQ(acting([](auto& to) { to.user = "bob"; }), "done");
  EXPECT_EQ(acting([](auto& to) {
              to.user = "bob";
              to.groups = {"dev"};
              to.extra["scopes"] = {"view"};
            }),
            "done");
  EXPECT_EQ(
      acting([](auto& to) { to.user = "carl"; }),
      "403 users \"carl\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in "
      "API group \"\" at the cluster scope");
  EXPECT_THAT(acting([](auto& to) {
                to.user = "bob";
                to.groups = {"system:masters"};
              }),
              HasSubstr("cannot impersonate resource \"groups\""));
  EXPECT_THAT(acting([](auto& to) {
                to.user = "bob";
                to.extra["scopes"] = {"view", "edit"};
              }),
              HasSubstr("userextras.authentication.k8s.io \"edit\" is forbidden"));
  EXPECT_THAT(acting([](auto& to) {
                to.user = "bob";
                to.uid = "7";
              }),
              HasSubstr("uids.authentication.k8s.io \"7\" is forbidden"));
  EXPECT_THAT(
      acting([](auto& to) { to.user = "system:serviceaccount:shop:cart"; }),
      HasSubstr("serviceaccounts \"cart\" is forbidden: User \"ann\" cannot impersonate "
                "resource \"serviceaccounts\" in API group \"\" in the namespace \"shop\""));
}

TEST_F(Rbac, ConstrainedImpersonationIsLimited) {
  all(kClusterRoles).create(from_json(R"({"metadata":{"name":"agents"},"rules":[
    {"verbs":["impersonate:user-info"],"apiGroups":["authentication.k8s.io"],
     "resources":["users","groups"],"resourceNames":["bob","dev"]},
    {"verbs":["impersonate-on:user-info:list"],"apiGroups":[""],"resources":["pods"]},
    {"verbs":["impersonate:serviceaccount"],"apiGroups":["authentication.k8s.io"],
     "resources":["serviceaccounts"],"resourceNames":["cart"]},
    {"verbs":["impersonate-on:serviceaccount:*","impersonate-on:serviceaccount:list"],
     "apiGroups":[""],"resources":["pods"]},
    {"verbs":["impersonate:arbitrary-node"],"apiGroups":["authentication.k8s.io"],
     "resources":["nodes"],"resourceNames":["n1"]},
    {"verbs":["impersonate-on:arbitrary-node:list"],"apiGroups":[""],"resources":["pods"]}]})"));
  all(kClusterRoleBindings).create(from_json(R"({"metadata":{"name":"agents"},
    "roleRef":{"kind":"ClusterRole","name":"agents"},"subjects":[{"kind":"User","name":"ann"}]})"));
  all(kClusterRoleBindings).create(from_json(R"({"metadata":{"name":"readers"},
    "roleRef":{"kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"bob"},
    {"kind":"Group","name":"system:nodes"},
    {"kind":"ServiceAccount","name":"cart","namespace":"shop"}]})"));
  const auto read = [&](const api::Resource& type, const char* user,
                        std::vector<std::string> groups = {}) {
    rest::Config config = server_.config_for("ann");
    config.as.user = user;
    config.as.groups = std::move(groups);
    return message([&] { rest::Client(config).resource(type, "default").list({}); });
  };
  EXPECT_EQ(read(kPods, "bob"), "done");
  EXPECT_EQ(read(kPods, "bob", {"dev"}), "done");
  EXPECT_EQ(read(kPods, "system:serviceaccount:shop:cart"), "done");
  // Impersonation of a node includes the group of nodes.
  EXPECT_EQ(read(kPods, "system:node:n1"), "done");
  EXPECT_EQ(read(kConfigMaps, "bob"),
            "403 configmaps is forbidden: User \"ann\" cannot impersonate-on:user-info:list "
            "resource \"configmaps\" in API group \"\" in the namespace \"default\"");
  // (The cached mode, associated-node, does not apply to other users.)
  EXPECT_EQ(read(kPods, "carl"),
            "403 users.authentication.k8s.io \"carl\" is forbidden: User \"ann\" cannot "
            "impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at "
            "the cluster scope");
  EXPECT_THAT(read(kPods, "bob", {"dev", "system:masters"}),
              HasSubstr("impersonating the system:masters group is not allowed"));
  EXPECT_THAT(read(kPods, "system:node:n2"), HasSubstr("cannot impersonate:arbitrary-node"));
  EXPECT_THAT(read(kPods, "system:node:n1", {"dev"}), HasSubstr("403"));
}

TEST_F(Rbac, ReviewsReturnReasons) {
  grant("ann", R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]})");
  const api::Resource reviews{"authorization.k8s.io", "v1", "SelfSubjectAccessReview",
                              "selfsubjectaccessreviews", false};
  const api::Resource local{"authorization.k8s.io", "v1", "LocalSubjectAccessReview",
                            "localsubjectaccessreviews", true};
  const auto ask = [&](const char* verb) {
    return held(as("ann").resource(reviews).create(
        from_json(fmt::format(R"({{"spec":{{"resourceAttributes":{{"verb":"{}",
          "resource":"pods","namespace":"default"}}}}}})",
                              verb))))["status"]
        .to_json();
  };
  EXPECT_EQ(ask("list"),
            R"({"allowed":true,"reason":"RBAC: allowed by RoleBinding \"ann/default\" of Role )"
            R"(\"ann\" to User \"ann\""})");
  EXPECT_EQ(ask("get"), R"({"allowed":false})");
  const auto in_default = [&](const char* ns) {
    return message([&] {
      in(local).create(from_json(fmt::format(R"({{"metadata":{{"namespace":"default"}},"spec":{{
        "user":"ann","resourceAttributes":{{"verb":"list","resource":"pods",
        "namespace":"{}"}}}}}})",
                                             ns)));
    });
  };
  EXPECT_EQ(in_default("default"), "done");
  EXPECT_THAT(in_default("shop"), HasSubstr("must match metadata.namespace"));
}

TEST_F(Rbac, AControllerHasThePermissionsOfItsServiceAccount) {
  in(kRoles).create(from_json(R"({"metadata":{"name":"cart"},"rules":[
    {"verbs":["get","list","watch"],"apiGroups":[""],"resources":["configmaps"]}]})"));
  in(kRoleBindings).create(from_json(R"({"metadata":{"name":"cart"},
    "roleRef":{"kind":"Role","name":"cart"},
    "subjects":[{"kind":"ServiceAccount","name":"cart","namespace":"default"}]})"));
  const rest::Client cart(server_.config_for_service_account("default", "cart"));
  EXPECT_EQ(message([&] { cart.resource(kConfigMaps, "default").list({}); }), "done");
  EXPECT_EQ(
      message([&] { cart.resource(kConfigMaps, "default").create(config_map("a")); }),
      "403 configmaps is forbidden: User \"system:serviceaccount:default:cart\" cannot create "
      "resource \"configmaps\" in API group \"\" in the namespace \"default\"");
}

TEST_F(Rbac, UnknownTokensAreRejected) {
  rest::Config config = server_.client_config();
  config.bearer_token = "whatever";
  EXPECT_THAT(message([&] { rest::Client(config).resource(kPods).list({}); }), HasSubstr("401"));
}

TEST_F(Rbac, ANewClusterHasItsRolesAndTheServiceKubernetes) {
  const auto admin = all(kClusterRoles).get("admin");
  EXPECT_EQ(admin["metadata"]["labels"]["kubernetes.io/bootstrapping"].as_string(),
            "rbac-defaults");
  for (const char* verb : {"impersonate", "localsubjectaccessreviews", "persistentvolumeclaims"})
    EXPECT_THAT(admin["rules"].to_json(), HasSubstr(verb));
  EXPECT_EQ(held(in(kServices).get("kubernetes"))["spec"]["clusterIP"].as_string(), "10.0.0.1");
  const api::Resource slices{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};
  EXPECT_EQ(held(in(slices).get("kubernetes"))["ports"][0]["port"].as_int(), server_.port());
}

TEST(RbacBootstrap, AddsMissingObjectsToAnOldStorage) {
  ServerOptions options;
  options.storage = std::make_shared<storage::MemoryBackend>();
  {
    const Server plain(options);
    EXPECT_THROW(rest::Client(plain.client_config()).resource(kClusterRoles).get("view"),
                 api::StatusError);
  }
  options.bootstrap = true;
  {
    const Server server(options);
    const rest::Client client(server.client_config());
    const auto roles = client.resource(kClusterRoles);
    roles.patch("system:discovery", rest::PatchType::kMerge, R"({"rules":[{"verbs":["list"],
      "apiGroups":[""],"resources":["pods"]}]})");
    roles.patch("system:basic-user", rest::PatchType::kMerge, R"({"rules":[],"metadata":
      {"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}})");
    client.resource(kClusterRoleBindings)
        .patch("system:discovery", rest::PatchType::kMerge, R"({"subjects":[]})");
    roles.remove("view");
  }
  const Server again(options);
  const rest::Client client(again.client_config());
  const auto roles = client.resource(kClusterRoles);
  EXPECT_EQ(held(roles.get("system:discovery"))["rules"].size(), 2U);
  EXPECT_TRUE(held(roles.get("system:basic-user"))["rules"].empty());
  EXPECT_EQ(held(client.resource(kClusterRoleBindings).get("system:discovery"))["subjects"].size(),
            1U);
  EXPECT_FALSE(held(roles.get("view"))["rules"].empty());
}

TEST_F(Rbac, SigningRequestsCarryTheirRequester) {
  const api::Resource requests{"certificates.k8s.io", "v1", "CertificateSigningRequest",
                               "certificatesigningrequests", false};
  rest::Config config = server_.config_for("root", {"system:masters"});
  config.as.user = "bob";
  config.as.uid = "7";
  config.as.groups = {"dev", "system:masters"};
  config.as.extra["scopes"] = {"view"};
  const auto created = rest::Client(config).resource(requests).create(from_json(
      R"({"metadata":{"name":"a"},"spec":{"request":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K",
               "username":"root","signerName":"example.com/signer","usages":["client auth"]}})"));
  const api::Value spec = created["spec"];
  EXPECT_EQ(spec["username"].as_string(), "bob");
  EXPECT_EQ(spec["uid"].as_string(), "7");
  EXPECT_EQ(spec["groups"].to_json(), R"(["dev","system:masters","system:authenticated"])");
  EXPECT_EQ(spec["extra"].to_json(), R"({"scopes":["view"]})");
  // The requester cannot be changed.
  const auto updated =
      all(requests).patch("a", rest::PatchType::kMerge, R"({"spec":{"username":"ann"}})");
  EXPECT_EQ(updated["spec"]["username"].as_string(), "bob");
}

}  // namespace
}  // namespace lookout::apiserver
