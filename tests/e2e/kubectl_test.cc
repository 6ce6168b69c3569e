// kubectl with `lookout serve`: typical commands.
//
// Runs the kubectl on the PATH, and those that $LOOKOUT_KUBECTL names, separated by colons; each
// with objects in memory, and in etcd where it makes a difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <tuple>

#include "tests/apiserver/test_webhook.h"
#include "tests/cmd/program.h"
#include "tests/e2e/served_storage.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout {
namespace {

using testing::IsSupersetOf;
using Words = std::vector<std::string>;

Words kubectls() {
  Words out;
  if (const std::string found = test::find_program("kubectl"); !found.empty()) out.push_back(found);
  const char* more = std::getenv("LOOKOUT_KUBECTL");
  std::stringstream list(more == nullptr ? "" : more);
  for (std::string name; std::getline(list, name, ':');) {
    if (!name.empty()) out.push_back(name);
  }
  // Keeps at least one test, which reports that it is skipped.
  if (out.empty()) out.emplace_back();
  return out;
}

constexpr const char* kDeployment = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'nginx:1'}]}
)";

std::string pod(const std::string& name, const std::string& labels, const std::string& node) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {" + labels +
         "}}\nspec: {nodeName: " + node + ", containers: [{name: main, image: 'nginx:1'}]}\n---\n";
}

std::string config_map(const std::string& name, const std::string& data) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {" + data + "}\n";
}

class Kubectl : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    if (program().empty()) {
      GTEST_SKIP() << "*** there is no kubectl: install it (Debian: kubernetes-client), or name "
                      "one with LOOKOUT_KUBECTL, to run this test ***";
    }
    storage_.emplace(std::get<1>(GetParam()));
    serve_.emplace(environment_, storage_->flags());
    where_ = {"--server", serve_->url()};
  }

  static const std::string& program() { return std::get<0>(GetParam()); }
  test::ProgramResult kubectl(Words arguments) const {
    arguments.insert(arguments.begin(), where_.begin(), where_.end());
    return environment_.run(program(), arguments);
  }
  /// The output of a command that must succeed.
  std::string ok(const Words& arguments) const {
    const auto result = kubectl(arguments);
    EXPECT_EQ(result.status, 0) << testing::PrintToString(arguments) << result.output
                                << result.errors;
    return result.output;
  }
  /// The output of a command that must fail.
  std::string refused(const Words& arguments) const {
    const auto result = kubectl(arguments);
    EXPECT_NE(result.status, 0) << testing::PrintToString(arguments) << result.output;
    return result.errors;
  }
  /// The names in a command's output, one per line, without the part before '/'.
  Words names(Words arguments) const {
    arguments.insert(arguments.end(), {"-o", "name"});
    Words out;
    for (const auto& line : test::lines(ok(arguments)))
      out.push_back(line.substr(line.find('/') + 1));
    return out;
  }
  std::string path(const std::string& json_path) const { return "-o=jsonpath={" + json_path + "}"; }

  test::ProgramEnvironment environment_;
  test::TempDir dir_;
  std::optional<test::ServedStorage> storage_;
  std::optional<test::ServeProcess> serve_;
  Words where_;
};

// Tests whose result does not depend on the storage.
class KubectlInMemory : public Kubectl {};

TEST_P(KubectlInMemory, DiscoversTheServersResources) {
  EXPECT_THAT(test::lines(ok({"api-versions"})),
              IsSupersetOf({"v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1",
                            "apiextensions.k8s.io/v1", "rbac.authorization.k8s.io/v1"}));
  EXPECT_THAT(test::lines(ok({"api-resources", "--no-headers", "-o", "name"})),
              IsSupersetOf({"pods", "nodes", "deployments.apps", "leases.coordination.k8s.io",
                            "customresourcedefinitions.apiextensions.k8s.io"}));
  EXPECT_THAT(ok({"version"}), HasSubstr("lookout"));
  EXPECT_EQ(ok({"get", "--raw", "/healthz"}), "ok");
  EXPECT_THAT(refused({"get", "unicorns"}),
              HasSubstr("the server doesn't have a resource type \"unicorns\""));
}

TEST_P(Kubectl, CreatesAndGets) {
  const std::string pods = pod("a", "app: web, tier: front", "n1") +
                           pod("b", "app: web, tier: back", "n2") + pod("c", "app: api", "n1");
  ok({"create", "-f", dir_.file("pods.yaml", pods)});
  ok({"create", "-f", dir_.file("deployment.yaml", kDeployment)});
  EXPECT_THAT(refused({"create", "-f", dir_.file("again.yaml", pod("a", "", "n1"))}),
              HasSubstr("(AlreadyExists)"));
  ok({"create", "-n", "kube-system", "-f", dir_.file("dns.yaml", pod("dns", "app: dns", "n1"))});

  EXPECT_EQ(names({"get", "pods"}), (Words{"a", "b", "c"}));
  EXPECT_EQ(names({"get", "po", "-A"}), (Words{"a", "b", "c", "dns"}));
  EXPECT_EQ(names({"get", "pods", "-l", "app in (web),tier notin (back)"}), Words{"a"});
  EXPECT_EQ(names({"get", "pods", "-l", "app=web,tier"}), (Words{"a", "b"}));
  EXPECT_EQ(names({"get", "pods", "-l", "!tier"}), Words{"c"});
  EXPECT_EQ(names({"get", "pods", "--field-selector", "spec.nodeName=n1,metadata.name!=c"}),
            Words{"a"});
  EXPECT_EQ(names({"get", "all"}), (Words{"a", "b", "c", "kubernetes", "web"}));
  EXPECT_EQ(ok({"get", "pod", "a", path(".spec.containers[0].image")}), "nginx:1");
  EXPECT_THAT(ok({"get", "pods", "a", "-o", "yaml"}),
              AllOf(HasSubstr("kind: Pod\n"), HasSubstr("    tier: front\n")));
  EXPECT_THAT(ok({"get", "deploy", "web", "-o", "json"}), HasSubstr("\"kind\": \"Deployment\""));
  const auto table = test::lines(ok({"get", "pods", "-o", "wide", "--show-labels"}));
  ASSERT_EQ(table.size(), 4u);
  EXPECT_THAT(table[0], StartsWith("NAME "));
  EXPECT_THAT(table[1], AllOf(StartsWith("a "), HasSubstr("app=web,tier=front")));
  EXPECT_THAT(refused({"get", "pod", "nobody"}), HasSubstr("pods \"nobody\" not found"));
  EXPECT_THAT(ok({"describe", "pod", "a"}), HasSubstr("Node:         n1"));
}

// Newer versions of kubectl send created and deleted objects as protobuf.
TEST_P(KubectlInMemory, CreatesGeneratedObjects) {
  ok({"create", "namespace", "team"});
  where_.insert(where_.end(), {"-n", "team"});
  ok({"create", "configmap", "conf", "--from-literal=a=1", "--from-literal=b=x=y"});
  EXPECT_EQ(ok({"get", "cm", "conf", path(".data")}), R"({"a":"1","b":"x=y"})");
  ok({"create", "secret", "generic", "keys", "--from-literal=password=open sesame"});
  EXPECT_EQ(ok({"get", "secret", "keys", path(".data.password")}), "b3BlbiBzZXNhbWU=");
  EXPECT_EQ(ok({"get", "secret", "keys", path(".type")}), "Opaque");
  ok({"create", "serviceaccount", "robot"});
  ok({"create", "deployment", "web", "--image=nginx:1"});
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.template.spec.containers[*].image")}),
            "nginx:1");
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.replicas")}), "1");
  EXPECT_EQ(ok({"get", "deploy", "web", path(".metadata.namespace")}), "team");
  ok({"create", "service", "clusterip", "web", "--tcp=80:8080"});
  EXPECT_EQ(ok({"get", "svc", "web", path(".spec.ports[0].targetPort")}), "8080");
  ok({"create", "role", "reader", "--verb=get,list", "--resource=pods"});
  EXPECT_EQ(ok({"get", "role", "reader", path(".rules[0].verbs[*]")}), "get list");
  ok({"create", "quota", "small", "--hard=pods=2,memory=1Gi"});
  EXPECT_EQ(ok({"get", "quota", "small", path(".spec.hard.memory")}), "1Gi");
  EXPECT_THAT(refused({"create", "configmap", "conf"}), HasSubstr("already exists"));
  EXPECT_THAT(refused({"create", "serviceaccount", "Robot"}), HasSubstr("is invalid"));

  ok({"scale", "deployment", "web", "--replicas=3"});
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.replicas")}), "3");
  ok({"rollout", "restart", "deployment/web"});
  EXPECT_THAT(ok({"get", "deploy", "web", path(".spec.template.metadata.annotations")}),
              HasSubstr("restartedAt"));
  EXPECT_EQ(ok({"auth", "can-i", "create", "pods"}), "yes\n");
  ok({"delete", "deployment", "web"});
  EXPECT_EQ(names({"get", "deployments"}), Words{});
  ok({"delete", "configmap,secret", "--all"});
  EXPECT_EQ(names({"get", "configmaps,secrets"}), Words{});
}

TEST_P(Kubectl, Changes) {
  ok({"create", "-f", dir_.file("all.yaml", pod("a", "app: web", "n1") + kDeployment)});
  ok({"label", "pod", "a", "tier=front", "app-"});
  EXPECT_THAT(refused({"label", "pod", "a", "tier=back"}), HasSubstr("--overwrite"));
  ok({"annotate", "pod", "a", "note=hello world"});
  EXPECT_EQ(ok({"get", "pod", "a", path(".metadata.labels")}), R"({"tier":"front"})");
  EXPECT_EQ(ok({"get", "pod", "a", path(".metadata.annotations.note")}), "hello world");

  ok({"scale", "deployment", "web", "--replicas=5"});
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.replicas")}), "5");
  EXPECT_THAT(refused({"scale", "deployment", "web", "--replicas=1", "--current-replicas=3"}),
              HasSubstr("Expected replicas to be 3, was 5"));

  ok({"patch", "deploy", "web", "--type", "merge", "-p",
      R"({"metadata":{"labels":{"app":null,"x":"1"}}})"});
  ok({"patch", "deploy", "web", "--type", "json", "-p",
      R"([{"op":"test","path":"/metadata/labels/x","value":"1"},)"
      R"({"op":"replace","path":"/metadata/labels/x","value":"2"}])"});
  EXPECT_EQ(ok({"get", "deploy", "web", path(".metadata.labels")}), R"({"x":"2"})");
  ok({"patch", "deploy", "web", "-p",
      R"({"spec":{"template":{"spec":{"containers":[{"name":"side","image":"log:1"}]}}}})"});
  ok({"set", "image", "deployment/web", "main=nginx:2"});
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.template.spec.containers[*].image")}),
            "log:1 nginx:2");
  EXPECT_THAT(refused({"patch", "deploy", "web", "--type", "json", "-p",
                       R"([{"op":"remove","path":"/spec/nothing"}])"}),
              HasSubstr("request is invalid"));

  // Like `kubectl edit`.
  const std::string shown = ok({"get", "pod", "a", "-o", "yaml"});
  std::string edited = shown;
  edited.replace(edited.find("tier: front"), 11, "tier: edited");
  ok({"replace", "-f", dir_.file("edited.yaml", edited)});
  EXPECT_EQ(ok({"get", "pod", "a", path(".metadata.labels.tier")}), "edited");
  EXPECT_THAT(refused({"replace", "-f", dir_.file("stale.yaml", shown)}),
              HasSubstr("the object has been modified"));
}

TEST_P(KubectlInMemory, Applies) {
  const std::string first =
      dir_.file("first.yaml", config_map("conf", "a: '1', b: '2'") + "---" + kDeployment);
  EXPECT_THAT(ok({"apply", "-f", first}),
              AllOf(HasSubstr("configmap/conf created"), HasSubstr("deployment.apps/web created")));
  EXPECT_THAT(ok({"apply", "-f", first}), AllOf(HasSubstr("configmap/conf unchanged"),
                                                HasSubstr("deployment.apps/web unchanged")));
  const std::string second = dir_.file("second.yaml", config_map("conf", "a: '3'"));
  EXPECT_THAT(ok({"apply", "-f", second, "--dry-run=server"}), HasSubstr("(server dry run)"));
  EXPECT_THAT(kubectl({"diff", "-f", second}).output,
              AllOf(HasSubstr("-  a: \"1\""), HasSubstr("+  a: \"3\"")));
  EXPECT_EQ(ok({"get", "cm", "conf", path(".data")}), R"({"a":"1","b":"2"})");
  EXPECT_THAT(ok({"apply", "-f", second}), HasSubstr("configmap/conf configured"));
  EXPECT_EQ(ok({"get", "cm", "conf", path(".data")}), R"({"a":"3"})");
  // kubectl 1.34 and later name the namespace.
  EXPECT_THAT(ok({"delete", "-f", second}),
              testing::AnyOf("configmap \"conf\" deleted\n",
                             "configmap \"conf\" deleted from default namespace\n"));
}

TEST_P(KubectlInMemory, AppliesServerSide) {
  const std::string one = dir_.file("map.yaml", config_map("m", "a: '1', b: '1'"));
  EXPECT_THAT(ok({"apply", "--server-side", "-f", one}),
              HasSubstr("configmap/m serverside-applied"));
  // Omitted fields are removed, and fields of others are kept.
  ok({"patch", "configmap", "m", "--type=merge", "-p", R"({"data":{"c":"other"}})"});
  ok({"apply", "--server-side", "-f", dir_.file("less.yaml", config_map("m", "a: '2'"))});
  EXPECT_EQ(ok({"get", "configmap", "m", path(".data")}), R"({"a":"2","c":"other"})");
  // Another manager gets a conflict, and may force it.
  const std::string other = dir_.file("other.yaml", config_map("m", "a: '3'"));
  EXPECT_THAT(refused({"apply", "--server-side", "--field-manager=other", "-f", other}),
              HasSubstr("conflict with \"kubectl\": .data.a"));
  ok({"apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", other});
  EXPECT_EQ(ok({"get", "configmap", "m", path(".data.a")}), "3");
  EXPECT_THAT(ok({"get", "configmap", "m", "-o", "yaml", "--show-managed-fields"}),
              HasSubstr("manager: other"));
}

TEST_P(KubectlInMemory, ShowsTheDiffOfAServerSideApply) {
  ok({"apply", "--server-side", "-f", dir_.file("web.yaml", kDeployment)});
  EXPECT_EQ(kubectl({"diff", "--server-side", "-f", dir_.file("web.yaml", kDeployment)}).status, 0);
  std::string more = kDeployment;
  more.replace(more.find("replicas: 2"), 11, "replicas: 5");
  const auto diff = kubectl({"diff", "--server-side", "-f", dir_.file("more.yaml", more)});
  EXPECT_EQ(diff.status, 1) << diff.errors;
  EXPECT_THAT(diff.output, HasSubstr("+  replicas: 5"));
  EXPECT_EQ(ok({"get", "deployment", "web", path(".spec.replicas")}), "2");
}

TEST_P(KubectlInMemory, MigratesFromClientSideApply) {
  ok({"apply", "-f", dir_.file("web.yaml", kDeployment)});
  std::string more = kDeployment;
  more.replace(more.find("replicas: 2"), 11, "replicas: 5");
  ok({"apply", "--server-side", "-f", dir_.file("more.yaml", more)});
  EXPECT_EQ(ok({"get", "deployment", "web", path(".spec.replicas")}), "5");
  // The last-applied annotation is updated, so that client-side apply still works.
  EXPECT_THAT(ok({"get", "deployment", "web", "-o", "yaml"}), HasSubstr(R"("replicas":5)"));
  more.replace(more.find("replicas: 5"), 11, "replicas: 4");
  ok({"apply", "-f", dir_.file("back.yaml", more)});
  EXPECT_EQ(ok({"get", "deployment", "web", path(".spec.replicas")}), "4");
}

TEST_P(Kubectl, Deletes) {
  std::string pods;
  for (const char* name : {"a", "b", "c", "d"})
    pods += pod(name, name == std::string("a") ? "app: web" : "app: api", "n1");
  ok({"create", "-f", dir_.file("pods.yaml", pods)});
  ok({"delete", "pod", "b", "--grace-period=0", "--force"});
  EXPECT_EQ(names({"get", "pods"}), (Words{"a", "c", "d"}));
  ok({"delete", "pods", "-l", "app=web", "--grace-period=1"});
  EXPECT_EQ(names({"get", "pods"}), (Words{"c", "d"}));
  ok({"delete", "pods", "--all", "--now"});
  EXPECT_EQ(names({"get", "pods"}), Words{});
  EXPECT_THAT(refused({"delete", "pod", "a"}), HasSubstr("pods \"a\" not found"));
  ok({"delete", "pod", "a", "--ignore-not-found"});
}

/// A table in cells, without the ages, which depend on the clock.
std::vector<Words> table(const std::string& text) {
  std::vector<Words> out;
  for (const auto& line : test::lines(text)) {
    Words& cells = out.emplace_back();
    // Columns are separated by three spaces, and names of columns have single ones.
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find("  ", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
  }
  std::size_t age = 0;
  while (!out.empty() && age < out[0].size() && out[0][age] != "AGE") ++age;
  for (Words& cells : out) {
    if (age < cells.size()) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(age));
  }
  return out;
}

TEST_P(KubectlInMemory, ShowsTables) {
  const std::string pods = pod("b", "app: web, tier: front", "n2") + pod("a", "app: web", "n1");
  ok({"create", "-f", dir_.file("all.yaml", pods + kDeployment)});
  using Table = std::vector<Words>;
  EXPECT_EQ(table(ok({"get", "pods"})), (Table{{"NAME", "READY", "STATUS", "RESTARTS"},
                                               {"a", "0/1", "Pending", "0"},
                                               {"b", "0/1", "Pending", "0"}}));
  EXPECT_EQ(table(ok({"get", "pods", "-o", "wide"})),
            (Table{{"NAME", "READY", "STATUS", "RESTARTS", "IP", "NODE", "NOMINATED NODE",
                    "READINESS GATES"},
                   {"a", "0/1", "Pending", "0", "<none>", "n1", "<none>", "<none>"},
                   {"b", "0/1", "Pending", "0", "<none>", "n2", "<none>", "<none>"}}));
  EXPECT_EQ(table(ok({"get", "pods", "-L", "tier", "--no-headers"})).size(), 2u);
  EXPECT_EQ(table(ok({"get", "pods", "-L", "tier"}))[2].back(), "front");
  EXPECT_EQ(table(ok({"get", "pods", "--sort-by", ".spec.nodeName"}))[2][0], "b");
  EXPECT_EQ(table(ok({"get", "deploy", "web", "-o", "wide"})),
            (Table{{"NAME", "READY", "UP-TO-DATE", "AVAILABLE", "CONTAINERS", "IMAGES", "SELECTOR"},
                   {"web", "0/2", "0", "0", "main", "nginx:1", "app=web"}}));
  EXPECT_EQ(table(ok({"get", "ns", "default"})),
            (Table{{"NAME", "STATUS"}, {"default", "Active"}}));
  EXPECT_EQ(ok({"get", "pods", "-o", "custom-columns=N:.metadata.name,L:.metadata.labels.tier"}),
            "N     L\na     <none>\nb     front\n");
  EXPECT_EQ(ok({"get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name},{end}"}), "a,b,");
  EXPECT_THAT(ok({"get", "pods", "-A"}), StartsWith("NAMESPACE "));
  EXPECT_THAT(ok({"get", "pods,deploy"}),
              AllOf(HasSubstr("pod/a "), HasSubstr("deployment.apps/web ")));
}

TEST_P(KubectlInMemory, ExplainsTypes) {
  const std::string strategy = ok({"explain", "deployment.spec.strategy"});
  EXPECT_THAT(strategy, AllOf(HasSubstr("rollingUpdate"), HasSubstr("type\t<string>")));
  const std::string containers = ok({"explain", "pod.spec.containers", "--recursive"});
  EXPECT_THAT(containers, AllOf(HasSubstr("valueFrom"), HasSubstr("configMapKeyRef")));
  EXPECT_THAT(refused({"explain", "pod.spec.nothing"}), HasSubstr("does not exist"));
}

TEST_P(KubectlInMemory, ValidatesItsInput) {
  std::string misspelt = kDeployment;
  misspelt.replace(misspelt.find("replicas:"), 9, "replicass:");
  const std::string wrong = dir_.file("wrong.yaml", misspelt);
  EXPECT_THAT(refused({"create", "-f", wrong}), HasSubstr("unknown field"));
  EXPECT_THAT(refused({"apply", "-f", wrong}), HasSubstr("unknown field"));
  EXPECT_EQ(names({"get", "deploy"}), Words{});
  ok({"create", "-f", wrong, "--validate=false"});
  EXPECT_EQ(names({"get", "deploy"}), Words{"web"});
}

TEST_P(KubectlInMemory, Edits) {
  ok({"create", "-f", dir_.file("all.yaml", kDeployment)});
  environment_.set("EDITOR", "sed -i 's/replicas: 2/replicas: 7/'");
  EXPECT_THAT(ok({"edit", "deployment", "web"}), HasSubstr("edited"));
  EXPECT_EQ(ok({"get", "deploy", "web", path(".spec.replicas")}), "7");
}

TEST_P(Kubectl, WaitsForConditions) {
  ok({"create", "-f", dir_.file("all.yaml", pod("a", "", "n1") + kDeployment)});
  // Writes the status that nodes and controllers would write.
  const auto report = [&](const std::string& what, const std::string& url,
                          const std::string& status) {
    std::string object = ok({"get", what, "-o", "json"});
    const std::size_t at = object.rfind("\"status\": ");
    object = object.substr(0, at) + "\"status\": " + status + "}";
    ok({"replace", "--raw", url + "/status", "-f", dir_.file("status.json", object)});
  };
  EXPECT_NE(kubectl({"wait", "--for=condition=Ready", "pod/a", "--timeout=1s"}).status, 0);
  report("pod/a", "/api/v1/namespaces/default/pods/a",
         R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
  EXPECT_THAT(ok({"wait", "--for=condition=Ready", "pod/a", "--timeout=30s"}),
              HasSubstr("condition met"));
  EXPECT_EQ(table(ok({"get", "pod", "a"}))[1][2], "Running");
  report("deployment/web", "/apis/apps/v1/namespaces/default/deployments/web",
         R"({"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,)"
         R"("availableReplicas":2})");
  EXPECT_THAT(ok({"rollout", "status", "deployment/web", "--timeout=30s"}),
              HasSubstr("successfully rolled out"));
  EXPECT_EQ(table(ok({"get", "deploy", "web"}))[1], (Words{"web", "2/2", "2", "2"}));
}

TEST_P(Kubectl, DeletesDependents) {
  const auto create = [&] {
    ok({"create", "-f", dir_.file("owner.yaml", config_map("owner", ""))});
    const std::string uid = ok({"get", "cm", "owner", path(".metadata.uid")});
    ok({"create", "-f",
        dir_.file(
            "child.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  ownerReferences: "
            "[{apiVersion: v1, kind: ConfigMap, name: owner, blockOwnerDeletion: true, uid: " +
                uid + "}]\n")});
  };
  const auto left = [&] { return names({"get", "cm"}); };
  create();
  ok({"delete", "cm", "owner", "--cascade=foreground"});  // waits for the end
  EXPECT_EQ(left(), Words{});
  create();
  ok({"delete", "cm", "owner", "--cascade=background"});
  EXPECT_TRUE(test::eventually([&] { return left().empty(); }));
  create();
  ok({"delete", "cm", "owner", "--cascade=orphan"});
  EXPECT_EQ(left(), Words{"child"});
}

TEST_P(Kubectl, Watches) {
  ok({"create", "-f", dir_.file("a.yaml", pod("a", "", "n1"))});
  const auto log = dir_ / "watch.log";
  Words arguments = where_;
  arguments.insert(arguments.end(), {"get", "pods", "--watch", "-o", "name"});
  test::Process watch = environment_.start(program(), arguments, log);
  const auto has_told = [&](std::size_t lines) {
    return test::eventually([&] { return test::lines(test::read_file(log)).size() >= lines; });
  };
  ASSERT_TRUE(has_told(1));
  ok({"create", "-f", dir_.file("b.yaml", pod("b", "", "n1"))});
  ASSERT_TRUE(has_told(2));
  ok({"label", "pod", "a", "x=y"});
  ASSERT_TRUE(has_told(3));
  EXPECT_EQ(test::lines(test::read_file(log)), (Words{"pod/a", "pod/b", "pod/a"}));
  watch.signal(SIGTERM);
}

TEST_P(Kubectl, HandlesCustomResources) {
  ok({"apply", "-f", dir_.file("crd.yaml", R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tabs.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {plural: tabs, singular: tab, kind: Tab, shortNames: [tb], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [size], properties: {size: {type: integer}}}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
)")});
  ok({"wait", "--for=condition=Established", "crd/tabs.shop.example", "--timeout=30s"});
  const auto tab = [&](const std::string& size) {
    return dir_.file("tab.yaml",
                     "apiVersion: shop.example/v1\nkind: Tab\nmetadata: {name: mine}\n"
                     "spec: {size: " +
                         size + "}\n");
  };
  ok({"apply", "-f", tab("1")});
  EXPECT_EQ(names({"get", "tb"}), Words{"mine"});
  EXPECT_EQ(names({"get", "all"}), (Words{"kubernetes", "mine"}));
  ok({"apply", "-f", tab("2")});
  EXPECT_EQ(ok({"get", "tab", "mine", path(".spec.size")}), "2");
  EXPECT_EQ(table(ok({"get", "tabs"})), (std::vector<Words>{{"NAME", "SIZE"}, {"mine", "2"}}));
  EXPECT_THAT(ok({"explain", "tab.spec"}), HasSubstr("size\t<integer>"));
  EXPECT_THAT(refused({"apply", "--validate=false", "-f", tab("many")}),
              HasSubstr("spec.size in body must be of type integer: \"string\""));
  ok({"patch", "tabs.shop.example", "mine", "--type", "merge", "-p", R"({"spec":{"size":3}})"});
  EXPECT_EQ(ok({"get", "tabs", "mine", path(".spec.size")}), "3");
  ok({"delete", "tab", "mine"});
  EXPECT_EQ(names({"get", "tabs"}), Words{});
  ok({"apply", "-f", tab("1")});
  ok({"delete", "crd", "tabs.shop.example"});
  EXPECT_NE(kubectl({"get", "tabs"}).status, 0);
}

TEST_P(Kubectl, DeletesNamespacesWithTheirObjects) {
  ok({"create", "-f",
      dir_.file("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")});
  ok({"create", "-n", "team", "-f", dir_.file("cm.yaml", config_map("conf", ""))});
  EXPECT_EQ(names({"get", "cm", "-n", "team"}), Words{"conf"});
  ok({"delete", "namespace", "team"});  // waits for the end
  EXPECT_THAT(refused({"get", "ns", "team"}), HasSubstr("not found"));
  EXPECT_EQ(names({"get", "cm", "-A"}), Words{});
  EXPECT_THAT(refused({"create", "-n", "team", "-f", (dir_ / "cm.yaml").string()}),
              HasSubstr("namespaces \"team\" not found"));
}

TEST_P(KubectlInMemory, GetsAnErrorForLogsAndExec) {
  ok({"create", "-f", dir_.file("a.yaml", pod("a", "", "n1"))});
  EXPECT_THAT(refused({"logs", "a"}), HasSubstr("this server has none"));
  EXPECT_THAT(refused({"exec", "a", "--", "ls"}), HasSubstr("pods/exec needs a node"));
  EXPECT_THAT(refused({"attach", "a"}), HasSubstr("pods/attach needs a node"));
}

TEST_P(KubectlInMemory, UsesTheKubeconfigOfServe) {
  const test::CertificateAuthority authority;
  const test::KeyPair pair = authority.issue_local();
  const std::string kubeconfig = (dir_ / "config").string();
  const test::ServeProcess serve(
      environment_,
      {"--tls-cert", dir_.file("crt", pair.certificate), "--tls-key", dir_.file("key", pair.key),
       "--client-ca", dir_.file("ca", authority.certificate()), "--token-file",
       dir_.file("tokens", "secret,ann,1\n"), "--write-kubeconfig", kubeconfig});
  environment_.set("KUBECONFIG", kubeconfig);
  where_ = {};
  EXPECT_THAT(names({"get", "ns"}), Contains("default"));
  EXPECT_EQ(ok({"config", "current-context"}), "lookout\n");

  // Other clients set their field manager.
  where_ = {"--kubeconfig",        "/dev/null", "--server", serve.url(), "--certificate-authority",
            (dir_ / "ca").string()};
  const Words server = where_;
  where_.insert(where_.end(), {"--token", "secret"});
  EXPECT_THAT(names({"get", "ns"}), Contains("default"));
  where_.back() = "wrong";
  EXPECT_THAT(refused({"get", "ns"}), HasSubstr("You must be logged in to the server"));
  const test::KeyPair ann = authority.issue({.common_name = "ann"});
  where_ = server;
  where_.insert(where_.end(), {"--client-certificate", dir_.file("ann.crt", ann.certificate),
                               "--client-key", dir_.file("ann.key", ann.key)});
  EXPECT_THAT(names({"get", "ns"}), Contains("default"));
}

TEST_P(KubectlInMemory, ShowsMessagesOfWebhooks) {
  const apiserver::TestWebhook hook([](const api::Object& review) -> std::optional<std::string> {
    if (review["request"]["name"].as_string() == "bad") {
      return apiserver::review_answer(
          review, R"("allowed":false,"status":{"message":"no bad ones","code":403})");
    }
    return apiserver::review_answer(
        review,
        R"("allowed":true,"warnings":["this is an old way"],"patchType":"JSONPatch",)"
        R"("patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEvYWRkZWQiLCJ2YWx1ZSI6InllcyJ9XQ==")");
  });
  const std::string hooks =
      apiserver::webhook("check.example.com", hook.client_config(),
                         apiserver::rule("", "v1", "configmaps", R"("CREATE","UPDATE")"));
  ok({"create", "-f",
      dir_.file("hooks.json",
                R"({"apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"a"},)"
                R"("kind":"MutatingWebhookConfiguration","webhooks":[)" +
                    hooks + "]}")});
  EXPECT_THAT(refused({"create", "-f", dir_.file("bad.yaml", config_map("bad", "a: b"))}),
              HasSubstr("admission webhook \"check.example.com\" denied the request: no bad ones"));
  const auto created =
      kubectl({"create", "-f", dir_.file("good.yaml", config_map("good", "a: b"))});
  EXPECT_EQ(created.status, 0) << created.errors;
  EXPECT_THAT(created.errors, HasSubstr("Warning: this is an old way"));
  EXPECT_EQ(ok({"get", "configmap", "good", path(".data.added")}), "yes");
  // A dry run calls webhooks and writes nothing.
  const auto dry = kubectl({"create", "--dry-run=server", path(".data.added"), "-f",
                            dir_.file("dry.yaml", config_map("dry", "a: b"))});
  EXPECT_EQ(dry.output, "yes") << dry.errors;
  EXPECT_THAT(refused({"get", "configmap", "dry"}), HasSubstr("not found"));
  ok({"delete", "mutatingwebhookconfiguration", "a"});
  ok({"create", "-f", dir_.file("bad.yaml", config_map("bad", "a: b"))});
}

TEST_P(Kubectl, WorksWithASimulatedCluster) {
  auto flags = storage_->flags();
  flags.emplace_back("--simulate-cluster");
  const test::ServeProcess serve(environment_, flags);
  where_ = {"--server", serve.url()};
  const auto wait_for_rollout = [&] {
    ok({"rollout", "status", "deployment", "web", "--timeout=60s"});
  };
  ok({"create", "deployment", "web", "--image=web:1"});
  ok({"scale", "deployment", "web", "--replicas=2"});
  wait_for_rollout();
  ok({"set", "image", "deployment", "web", "web=web:2"});
  wait_for_rollout();
  EXPECT_THAT(ok({"rollout", "history", "deployment", "web"}),
              AllOf(HasSubstr("1"), HasSubstr("2")));
  ok({"rollout", "undo", "deployment", "web"});
  wait_for_rollout();
  EXPECT_EQ(ok({"get", "deployment", "web", path(".spec.template.spec.containers[0].image")}),
            "web:1");

  ok({"expose", "deployment", "web", "--port=80", "--target-port=8080"});
  const auto addresses = [&] {
    std::stringstream list(
        kubectl({"get", "endpoints", "web", path(".subsets[0].addresses[*].ip")}).output);
    return std::distance(std::istream_iterator<std::string>(list), {});
  };
  EXPECT_TRUE(test::eventually([&] { return addresses() == 2; }));
  EXPECT_THAT(ok({"describe", "service", "web"}), HasSubstr(":8080"));
  EXPECT_THAT(names({"get", "endpointslices", "-l", "kubernetes.io/service-name=web"}), SizeIs(1));
  EXPECT_TRUE(test::eventually([&] {
    const std::string events = ok({"get", "events"});
    for (const char* reason : {"ScalingReplicaSet", "SuccessfulCreate", "SuccessfulDelete",
                               "Scheduled", "Pulled", "Created", "Started", "Killing"}) {
      if (events.find(reason) == std::string::npos) return false;
    }
    return true;
  })) << ok({"get", "events"});
  EXPECT_THAT(ok({"describe", "deployment", "web"}),
              AllOf(HasSubstr("deployment-controller"), HasSubstr("Scaled up replica set web-")));

  ok({"wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s"});
  ok({"create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1"});
  ok({"drain", "node-1", "--ignore-daemonsets", "--timeout=60s"});
  EXPECT_THAT(ok({"get", "pods", path(".items[*].spec.nodeName")}), Not(HasSubstr("node-1")));
  ok({"create", "job", "sum", "--image=sum:1"});
  ok({"wait", "--for=condition=complete", "job", "sum", "--timeout=60s"});
  ok({"delete", "deployment", "web", "--wait=true", "--cascade=foreground", "--timeout=60s"});
  EXPECT_THAT(names({"get", "pods", "-l", "app=web"}), IsEmpty());
  ok({"delete", "service", "web"});
  EXPECT_TRUE(test::eventually([&] {
    return names({"get", "endpointslices", "-l", "kubernetes.io/service-name=web"}).empty();
  }));
}

std::string parameters_of(const testing::TestParamInfo<Kubectl::ParamType>& parameter) {
  return std::get<1>(parameter.param) + "_" + std::to_string(parameter.index);
}

INSTANTIATE_TEST_SUITE_P(E2e, Kubectl,
                         testing::Combine(testing::ValuesIn(kubectls()),
                                          testing::ValuesIn(test::ServedStorage::names())),
                         parameters_of);
INSTANTIATE_TEST_SUITE_P(E2e, KubectlInMemory,
                         testing::Combine(testing::ValuesIn(kubectls()),
                                          testing::Values(std::string("memory"))),
                         parameters_of);

}  // namespace
}  // namespace lookout
