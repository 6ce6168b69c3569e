// RBAC decisions, compared with those of a kube-apiserver with the same roles and bindings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "lookout/rest/kubeconfig.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::apiserver {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";

struct Entry {
  const char* plural;
  const char* ns;
  std::string json;
};

/// The subjects are JSON.
std::string binding(const char* name, const char* kind, const char* role, const char* subjects) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"roleRef":{{"kind":"{}","name":"{}"}},"subjects":[{}]}})",
      name, kind, role, subjects);
}

/// Each action is granted to each user at most once, because a real server evaluates bindings in
/// any order, and names the first match.
const std::vector<Entry> kSetup = {
    {"clusterroles", "", R"({"metadata":{"name":"t-readers"},"rules":[
      {"verbs":["get","list","watch"],"apiGroups":["","apps"],"resources":["pods","deployments"]},
      {"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]},
      {"verbs":["get"],"nonResourceURLs":["/metrics","/debug/*"]}]})"},
    {"clusterroles", "", R"({"metadata":{"name":"t-scalers"},"rules":[
      {"verbs":["*"],"apiGroups":["*"],"resources":["*/scale"]}]})"},
    {"clusterroles", "", R"({"metadata":{"name":"t-all-of-apps"},"rules":[
      {"verbs":["*"],"apiGroups":["apps"],"resources":["*"]}]})"},
    {"clusterroles", "", R"({"metadata":{"name":"t-urls"},"rules":[
      {"verbs":["*"],"nonResourceURLs":["/healthz*","/logs"]}]})"},
    {"clusterroles", "", R"({"metadata":{"name":"t-root"},"rules":[
      {"verbs":["*"],"apiGroups":["*"],"resources":["*"]},
      {"verbs":["*"],"nonResourceURLs":["*"]}]})"},
    {"roles", "shop", R"({"metadata":{"name":"t-named"},"rules":[
      {"verbs":["get","update","delete"],"apiGroups":[""],"resources":["configmaps"],
       "resourceNames":["settings","prices"]},
      {"verbs":["create"],"apiGroups":[""],"resources":["configmaps"]}]})"},
    {"roles", "shop", R"({"metadata":{"name":"t-status"},"rules":[
      {"verbs":["patch"],"apiGroups":["apps","batch"],
       "resources":["deployments/status","jobs/status"]},
      {"verbs":["impersonate"],"apiGroups":[""],"resources":["serviceaccounts"]}]})"},
    {"clusterrolebindings", "",
     binding("t-readers", "ClusterRole", "t-readers",
             R"({"kind":"User","name":"nobody"},{"kind":"User","name":"ann"})")},
    {"clusterrolebindings", "",
     binding("t-scalers", "ClusterRole", "t-scalers", R"({"kind":"Group","name":"scalers"})")},
    {"clusterrolebindings", "",
     binding("t-urls", "ClusterRole", "t-urls",
             R"({"kind":"ServiceAccount","name":"cart","namespace":"shop"})")},
    {"clusterrolebindings", "",
     binding("t-lost", "ClusterRole", "t-not-there", R"({"kind":"User","name":"carl"})")},
    {"rolebindings", "shop",
     binding("t-named", "Role", "t-named", R"({"kind":"User","name":"bob"})")},
    {"rolebindings", "shop",
     binding(
         "t-apps", "ClusterRole", "t-all-of-apps",
         R"({"kind":"ServiceAccount","name":"cart","namespace":"shop"},{"kind":"User","name":"bob"})")},
    {"rolebindings", "shop",
     binding("t-root", "ClusterRole", "t-root",
             R"({"kind":"Group","name":"system:serviceaccounts:ops"})")},
    {"rolebindings", "store",
     binding("t-status", "Role", "t-status", R"({"kind":"User","name":"bob"})")},
    {"rolebindings", "shop",
     binding("t-status", "Role", "t-status", R"({"kind":"User","name":"dora"})")}};

/// As JSON: the subject of a review.
const std::vector<std::string> kSubjects = {
    R"("user":"ann")",
    R"("user":"bob")",
    R"("user":"carl")",
    R"("user":"dora","groups":["scalers"])",
    R"("user":"system:serviceaccount:shop:cart","groups":["system:serviceaccounts"])",
    R"("user":"x","groups":["system:serviceaccounts:ops"])",
    R"("user":"x","groups":["system:masters"])",
    R"("user":"y","groups":["system:authenticated"])"};

std::vector<std::string> actions() {
  std::vector<std::string> out;
  const auto resource = [&](const char* verb, const char* group, const char* plural,
                            const char* subresource, const char* ns, const char* name) {
    out.push_back(fmt::format(
        R"("resourceAttributes":{{"verb":"{}","group":"{}","resource":"{}","subresource":"{}",)"
        R"("namespace":"{}","name":"{}"}})",
        verb, group, plural, subresource, ns, name));
  };
  const auto path = [&](const char* verb, const char* url) {
    out.push_back(fmt::format(R"("nonResourceAttributes":{{"verb":"{}","path":"{}"}})", verb, url));
  };
  for (const char* ns : {"", "shop", "store"}) {
    resource("list", "", "pods", "", ns, "");
    resource("get", "", "pods", "log", ns, "web");
    resource("watch", "apps", "deployments", "", ns, "");
    resource("patch", "apps", "deployments", "status", ns, "web");
    resource("update", "apps", "deployments", "scale", ns, "web");
    resource("delete", "", "configmaps", "", ns, "prices");
    resource("delete", "", "configmaps", "", ns, "others");
    resource("deletecollection", "apps", "replicasets", "", ns, "");
  }
  for (const char* verb : {"get", "list", "create", "update", "escalate"})
    resource(verb, "", "configmaps", "", "shop", "settings");
  resource("create", "", "configmaps", "", "shop", "");
  resource("patch", "batch", "jobs", "status", "shop", "a");
  resource("patch", "batch", "jobs", "", "shop", "a");
  resource("impersonate", "", "serviceaccounts", "", "shop", "cart");
  resource("get", "example.com", "things", "scale", "shop", "a");
  resource("*", "*", "*", "", "shop", "");
  resource("get", "*", "*", "*", "", "");
  resource("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", "");
  for (const char* url : {"/metrics", "/metrics/x", "/debug/pprof", "/debug", "/healthz",
                          "/healthz/etcd", "/logs", "/logs/", "/apis/apps", "/"})
    path("get", url);
  path("post", "/healthz");
  return out;
}

void create(const rest::Client& client, const Entry& one) {
  const std::string plural = one.plural;
  const api::Resource resource{kRbac, "v1",
                               plural == "roles"          ? "Role"
                               : plural == "clusterroles" ? "ClusterRole"
                               : plural == "rolebindings" ? "RoleBinding"
                                                          : "ClusterRoleBinding",
                               plural, *one.ns != '\0'};
  api::Object object = api::Object::parse(one.json);
  client.resource(resource, one.ns).create(std::move(object));
}

void set_up(const rest::Client& client) {
  const api::Resource namespaces{"", "v1", "Namespace", "namespaces", false};
  for (const char* name : {"shop", "store"}) {
    client.resource(namespaces)
        .create(api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name)));
  }
  for (const Entry& one : kSetup) create(client, one);
}

std::string decision(const rest::Client& client, const std::string& spec) {
  static const api::Resource reviews{"authorization.k8s.io", "v1", "SubjectAccessReview",
                                     "subjectaccessreviews", false};
  const api::Object answer = client.resource(reviews).create(
      api::Object::parse(fmt::format(R"({{"spec":{{{}}}}})", spec)));
  const api::Value status = answer["status"];
  std::string reason(status["reason"].as_string());
  // Several default bindings may allow the same action.
  if (reason.find("ClusterRoleBinding \"system:") != std::string::npos) reason = "system";
  return fmt::format("{} {}", status["allowed"].to_json(), reason);
}

/// The rules of a user, sorted: a real server lists bindings in any order. Without those that all
/// users have, which differ between versions of Kubernetes.
std::vector<std::string> rules_of(const rest::Config& config, const std::string& user,
                                  const std::string& ns) {
  rest::Config as_user = config;
  as_user.as.user = user;
  as_user.as.groups = {"scalers"};
  const rest::Client client(as_user);
  const api::Resource reviews{"authorization.k8s.io", "v1", "SelfSubjectRulesReview",
                              "selfsubjectrulesreviews", false};
  const api::Object answer = client.resource(reviews).create(
      api::Object::parse(fmt::format(R"({{"spec":{{"namespace":"{}"}}}})", ns)));
  std::vector<std::string> out;
  for (const char* list : {"resourceRules", "nonResourceRules"}) {
    for (const api::Value rule : answer["status"][list].elements()) {
      const std::string text = rule.to_json();
      if (text.find("/openapi") == std::string::npos &&
          text.find("selfsubject") == std::string::npos)
        out.push_back(text);
    }
  }
  out.push_back(fmt::format("error: {}", answer["status"]["evaluationError"].as_string()));
  std::sort(out.begin(), out.end());
  return out;
}

/// The message of the response to a user's request.
std::string refusal(const rest::Config& config, const std::string& user,
                    const std::function<void(const rest::Client&)>& request) {
  rest::Config as_user = config;
  as_user.as.user = user;
  try {
    request(rest::Client(as_user));
  } catch (const api::StatusError& e) {
    return fmt::format("{} {}", e.status().code, e.what());
  }
  return "done";
}

/// Both servers, with the same roles and bindings, for all tests.
struct Servers {
  explicit Servers(const std::filesystem::path& program) : real(program) {
    set_up(rest::Client(real.config()));
    set_up(rest::Client(own.client_config()));
  }
  static ServerOptions options() {
    ServerOptions out;
    out.authorization = Authorization::kRbac;
    return out;
  }

  lookout::test::KubeApiserver real;
  Server own{options()};
};

class RbacDecisions : public testing::Test {
 protected:
  static void TearDownTestSuite() { servers.reset(); }

  void SetUp() override {
    const auto program = lookout::test::KubeApiserver::find_program();
    if (!program) GTEST_SKIP() << "no kube-apiserver";
    if (servers == nullptr) servers = std::make_unique<Servers>(*program);
    real_ = servers->real.config();
    own_ = servers->own.client_config();
    ASSERT_TRUE(
        eventually_allowed(rest::Client(real_),
                           R"("user":"dora","resourceAttributes":{"verb":"patch","group":"batch",)"
                           R"("resource":"jobs","subresource":"status","namespace":"shop"})"));
  }

  /// A real server's roles and bindings take effect with a delay.
  static bool eventually_allowed(const rest::Client& client, const std::string& spec) {
    return lookout::test::eventually([&] { return decision(client, spec).starts_with("true"); });
  }

  inline static std::unique_ptr<Servers> servers;
  rest::Config real_;
  rest::Config own_;
};

TEST_F(RbacDecisions, EqualThoseOfKubeApiserver) {
  const rest::Client real(real_);
  const rest::Client own(own_);
  std::size_t allowed = 0;
  std::size_t count = 0;
  for (const std::string& subject : kSubjects) {
    for (const std::string& action : actions()) {
      const std::string spec = subject + "," + action;
      const std::string expected = decision(real, spec);
      EXPECT_EQ(decision(own, spec), expected) << spec;
      ++count;
      if (expected.starts_with("true")) ++allowed;
    }
  }
  EXPECT_GT(count, 300U);
  EXPECT_GT(allowed, 80U);
  EXPECT_LT(allowed, count - 80U);

  for (const char* user : {"ann", "bob", "carl", "dora", "system:serviceaccount:shop:cart"}) {
    for (const char* ns : {"shop", "store", "default"})
      EXPECT_EQ(rules_of(own_, user, ns), rules_of(real_, user, ns)) << user << " in " << ns;
  }
}

TEST_F(RbacDecisions, RejectionsHaveTheMessagesOfKubeApiserver) {
  const api::Resource pods{"", "v1", "Pod", "pods", true};
  const api::Resource nodes{"", "v1", "Node", "nodes", false};
  const api::Resource roles{kRbac, "v1", "Role", "roles", true};
  const api::Resource bindings{kRbac, "v1", "RoleBinding", "rolebindings", true};
  const std::vector<std::function<void(const rest::Client&)>> requests = {
      [&](const auto& client) { client.resource(pods, "shop").list({}); },
      [&](const auto& client) { client.resource(pods).list({}); },
      [&](const auto& client) { client.resource(pods, "shop").get("web"); },
      [&](const auto& client) { client.resource(pods, "shop").remove("web"); },
      [&](const auto& client) { client.resource(nodes).list({}); },
      [&](const auto& client) { client.get_raw("/api/v1/namespaces/shop/pods/web/log"); },
      [&](const auto& client) { client.get_raw("/metrics"); },
      [&](const auto& client) { client.get_raw("/a<b>&c"); },
      [&](const auto& client) {
        client.resource(pods, "shop").list({.field_selector = "metadata.name=web"});
      },
      [&](const auto& client) {
        client.resource(roles, "shop")
            .create(api::Object::parse(R"({"metadata":{"name":"mine"},"rules":[
              {"verbs":["get","list"],"apiGroups":["","apps"],"resources":["pods","secrets"]},
              {"verbs":["get"],"apiGroups":[""],"resources":["configmaps"],
               "resourceNames":["settings"]}]})"));
      },
      [&](const auto& client) {
        client.resource(bindings, "shop").create(api::Object::parse(R"({"metadata":{"name":"mine"},
              "roleRef":{"kind":"ClusterRole","name":"t-scalers"},
              "subjects":[{"kind":"User","name":"carl"}]})"));
      },
      [&](const auto& client) {
        client.resource(bindings, "shop").create(api::Object::parse(R"({"metadata":{"name":"mine"},
              "roleRef":{"kind":"ClusterRole","name":"t-gone"},
              "subjects":[{"kind":"User","name":"carl"}]})"));
      }};
  // Grants the access that is needed to reach the escalation check.
  const Entry writers{"clusterroles", "", R"({"metadata":{"name":"t-writers"},"rules":[
    {"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],
     "resources":["roles","rolebindings"]}]})"};
  const Entry binding{"clusterrolebindings", "", R"({"metadata":{"name":"t-writers"},
    "roleRef":{"kind":"ClusterRole","name":"t-writers"},
    "subjects":[{"kind":"User","name":"ann"}]})"};
  for (const rest::Config* config : {&real_, &own_}) {
    const rest::Client client(*config);
    create(client, writers);
    create(client, binding);
    ASSERT_TRUE(eventually_allowed(
        client, R"("user":"ann","resourceAttributes":{"verb":"create","resource":"roles",)"
                R"("group":"rbac.authorization.k8s.io"})"));
  }
  for (const char* user : {"ann", "bob", "carl", "erin"}) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(refusal(own_, user, requests[i]), refusal(real_, user, requests[i]))
          << user << ", request " << i;
    }
  }
}

TEST_F(RbacDecisions, KubectlListsTheSameRights) {
  if (lookout::test::find_program("kubectl").empty()) GTEST_SKIP() << "no kubectl";
  const lookout::test::TempDir dir;
  const auto lines = [&](const rest::Config& config, const char* name) {
    const std::string kubeconfig = (dir / name).string();
    rest::write_kubeconfig(kubeconfig, config);
    const auto answer = lookout::test::run_command({"kubectl", "--kubeconfig", kubeconfig, "--as",
                                                    "bob", "--as-group", "x", "auth", "can-i",
                                                    "--list", "-n", "shop", "--no-headers"});
    EXPECT_EQ(answer.status, 0) << answer.output;
    std::vector<std::string> out;
    std::istringstream in(answer.output);
    for (std::string line; std::getline(in, line);) {
      std::string squeezed;
      for (const char c : line) {
        if (c != ' ' || !squeezed.ends_with(' ')) squeezed += c;
      }
      // (1.20 has no selfsubjectreviews.)
      if (squeezed.find("selfsubject") == std::string::npos) out.push_back(squeezed);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  const auto own = lines(own_, "own");
  EXPECT_EQ(own, lines(real_, "real"));
  EXPECT_GE(own.size(), 3U);
}

}  // namespace
}  // namespace lookout::apiserver
