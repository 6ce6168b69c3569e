// lookout get.
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "cmd/custom_columns.h"
#include "cmd/sorting.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/symbols.h"
#include "tests/cmd/cmd_fixture.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace lookout::cmd {
namespace {

class Get : public CmdTest {
 protected:
  Get() {
    create("pods", "default", pod("web-1", R"("app":"web","tier":"front")", "node-1"));
    create("pods", "default", pod("web-2", R"("app":"web","tier":"back")", "node-2"));
    create("pods", "default", pod("api", R"("app":"api")", "node-1"));
    create("pods", "kube-system", pod("dns", R"("app":"dns")", "node-1"));
  }
};

TEST_F(Get, ShowsATable) {
  const auto result = lookout({"get", "pods"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  EXPECT_THAT(test::lines(result.output),
              ElementsAre("NAME    READY   STATUS    RESTARTS   AGE",
                          MatchesRegex("api     0/1     Pending   0          [0-9]+s"),
                          MatchesRegex("web-1   0/1     Pending   0          [0-9]+s"),
                          MatchesRegex("web-2   0/1     Pending   0          [0-9]+s")));
}

TEST_F(Get, ShowsTheColumnsOfItsKind) {
  create("deployments", "default",
         R"({"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},)"
         R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)"
         R"("image":"i"}]}}}})");
  create(
      "services", "default",
      R"({"metadata":{"name":"web"},"spec":{"ports":[{"port":80,"name":"http"},{"port":53,"name":"dns",)"
      R"("protocol":"UDP"}]}})");
  const auto first_lines = [&](const std::string& resource) {
    return test::lines(lookout({"get", resource}).output);
  };
  EXPECT_THAT(first_lines("deploy"),
              ElementsAre("NAME   READY   UP-TO-DATE   AVAILABLE   AGE",
                          MatchesRegex("web    0/3     0            0           [0-9]+s")));
  EXPECT_EQ(first_lines("svc")[0].substr(0, 16), "NAME   TYPE     ");
  EXPECT_THAT(first_lines("namespaces"),
              testing::Contains(MatchesRegex("default +Active +[0-9]+s")));
}

TEST_F(Get, ShowsNamespacesWithAllNamespaces) {
  const auto lines = test::lines(lookout({"get", "po", "-A"}).output);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "NAMESPACE     NAME    READY   STATUS    RESTARTS   AGE");
  EXPECT_THAT(lines[4], MatchesRegex("kube-system   dns     0/1     Pending   0          [0-9]+s"));
}

struct Selection {
  std::vector<std::string> flags;
  std::vector<std::string> names;
};
void PrintTo(const Selection& selection, std::ostream* out) {
  *out << testing::PrintToString(selection.flags);
}
class Selections : public Get, public testing::WithParamInterface<Selection> {};

TEST_P(Selections, ChooseObjects) {
  std::vector<std::string> arguments{"get", "pods", "-o", "name"};
  arguments.insert(arguments.end(), GetParam().flags.begin(), GetParam().flags.end());
  const auto result = lookout(arguments);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(test::lines(result.output), GetParam().names);
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, Selections,
    testing::Values(Selection{{}, {"pod/api", "pod/web-1", "pod/web-2"}},
                    Selection{{"web-1"}, {"pod/web-1"}},
                    Selection{{"-n", "kube-system"}, {"pod/dns"}},
                    Selection{{"--namespace=kube-system"}, {"pod/dns"}},
                    Selection{{"-A"}, {"pod/api", "pod/web-1", "pod/web-2", "pod/dns"}},
                    Selection{{"--all-namespaces", "-l", "app!=web"}, {"pod/api", "pod/dns"}},
                    Selection{{"-l", "app=web"}, {"pod/web-1", "pod/web-2"}},
                    Selection{{"-l", "tier in (front,middle)"}, {"pod/web-1"}},
                    Selection{{"--selector", "app,!tier"}, {"pod/api"}},
                    Selection{{"-A", "--field-selector", "spec.nodeName=node-1"},
                              {"pod/api", "pod/web-1", "pod/dns"}},
                    Selection{{"--field-selector", "metadata.name=api"}, {"pod/api"}},
                    Selection{{"-l", "app=web", "--field-selector=spec.nodeName=node-2"},
                              {"pod/web-2"}},
                    Selection{{"-l", "app=none"}, {}}));

TEST_F(Get, AcceptsTypeAndNameInOneWord) {
  EXPECT_EQ(lookout({"get", "pods/web-1", "-o", "name"}).output, "pod/web-1\n");
  EXPECT_EQ(lookout({"get", "pod/dns", "-n", "kube-system", "-o", "name"}).output, "pod/dns\n");
}

TEST_F(Get, ShowsSeveralObjects) {
  EXPECT_EQ(lookout({"get", "pods", "web-2", "api", "-o", "name"}).output, "pod/web-2\npod/api\n");
  EXPECT_EQ(lookout({"get", "pods/web-2", "po/api", "ns/default", "-o", "name"}).output,
            "pod/web-2\npod/api\nnamespace/default\n");
  EXPECT_THAT(test::lines(lookout({"get", "pod", "web-2", "api"}).output),
              ElementsAre("NAME    READY   STATUS    RESTARTS   AGE",
                          MatchesRegex("web-2   0/1     Pending   0          [0-9]+s"),
                          MatchesRegex("api     0/1     Pending   0          [0-9]+s")));
  const auto list = api::Object::parse(lookout({"get", "pods", "web-2", "api", "-o=json"}).output);
  EXPECT_EQ(list.kind(), "List");
  EXPECT_EQ(list["items"][1]["metadata"]["name"].as_string(), "api");
}

TEST_F(Get, ShowsSeveralResources) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  create("leases", "default", R"({"metadata":{"name":"leader"}})");
  const auto result = lookout({"get", "leases,cm,secrets", "-A"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  // As in kubectl, names have their kinds.
  EXPECT_THAT(test::lines(result.output),
              ElementsAre(MatchesRegex("NAMESPACE +NAME +HOLDER +AGE"),
                          MatchesRegex("default +lease.coordination.k8s.io/leader +[0-9]+s"), "",
                          MatchesRegex("NAMESPACE +NAME +DATA +AGE"),
                          MatchesRegex("default +configmap/settings +0 +[0-9]+s")));
  EXPECT_EQ(lookout({"get", "cm,leases", "-o", "name"}).output,
            "configmap/settings\nlease.coordination.k8s.io/leader\n");
  EXPECT_EQ(lookout({"get", "secrets,pvc"}).errors, "No resources found in default namespace.\n");
}

TEST_F(Get, ShowsTheResourcesOfACategory) {
  create("deployments", "default",
         R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},)"
         R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)"
         R"("image":"i"}]}}}})");
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  create(
      "horizontalpodautoscalers", "default",
      R"({"metadata":{"name":"web"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment",)"
      R"("apiVersion":"apps/v1","name":"web"}}})");
  const std::vector<std::string> names = test::lines(lookout({"get", "all", "-o", "name"}).output);
  EXPECT_THAT(names,
              testing::IsSupersetOf({"pod/api", "pod/web-1", "pod/web-2", "deployment.apps/web"}));
  EXPECT_EQ(std::ranges::count(names, "horizontalpodautoscaler.autoscaling/web"), 1);
  EXPECT_THAT(names, testing::Not(testing::Contains("configmap/settings")));
}

TEST_F(Get, ShowsTheOthersIfOneIsNotFound) {
  for (const char* const format : {"table", "name", "json"}) {
    const auto result = lookout({"get", "pods", "nobody", "api", "-o", format});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.output, HasSubstr("api")) << format;
    EXPECT_EQ(result.errors, "lookout: pods \"nobody\" not found\n");
  }
  const auto none = lookout({"get", "pods", "nobody", "either", "-o", "json"});
  EXPECT_EQ(none.output, "");
  EXPECT_EQ(none.errors,
            "lookout: pods \"nobody\" not found\nlookout: pods \"either\" not found\n");
}

TEST_F(Get, ShowsWideTables) {
  const auto lines = test::lines(lookout({"get", "pods", "web-1", "-o", "wide"}).output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], MatchesRegex("NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE "
                                     "+READINESS GATES"));
  EXPECT_THAT(lines[1], MatchesRegex("web-1 +0/1 +Pending +0 +[0-9]+s +<none> +node-1 +<none> "
                                     "+<none>"));
}

TEST_F(Get, ShowsATemplate) {
  EXPECT_EQ(
      lookout({"get", "pods", "web-1", "-o", "jsonpath={.metadata.labels.app} {.kind}"}).output,
      "web Pod");
  EXPECT_EQ(lookout({"get", "pods", "-o=jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"})
                .output,
            "api\nweb-1\nweb-2\n");
  EXPECT_EQ(lookout({"get", "pods", "web-1", "api", "-ojsonpath={.items[*].metadata.name}"}).output,
            "web-1 api");
  EXPECT_EQ(lookout({"get", "secrets", "-o", "jsonpath={.items}"}).output, "[]");
}

TEST_F(Get, RefusesAnIndexOutOfBounds) {
  const auto result = lookout({"get", "pods", "-o", "jsonpath={.kind}{.items[5].kind}"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors, "lookout: array index out of bounds: index 5, length 3\n");
  EXPECT_EQ(lookout({"get", "pods", "-o",
                     "jsonpath={.items[0]['metadata.name','spec.nodeName']} "
                     "{.items[0,2].metadata.name}"})
                .output,
            "api node-1 api web-2");
}

TEST_F(Get, ShowsLabels) {
  EXPECT_THAT(test::lines(lookout({"get", "pods", "--show-labels"}).output),
              ElementsAre(MatchesRegex("NAME +READY +STATUS +RESTARTS +AGE +LABELS"),
                          MatchesRegex("api +0/1 +Pending +0 +[0-9]+s +app=api"),
                          MatchesRegex("web-1 +0/1 +Pending +0 +[0-9]+s +app=web,tier=front"),
                          MatchesRegex("web-2 +0/1 +Pending +0 +[0-9]+s +app=web,tier=back")));
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-L", "app,example.com/tier", "-L=tier"},
        {"-Lapp,example.com/tier", "--label-columns=tier"}}) {
    std::vector<std::string> arguments{"get", "-A", "--show-labels", "--no-headers=false"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.emplace_back("pods");
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    const auto lines = test::lines(result.output);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_THAT(lines[0], MatchesRegex("NAMESPACE +NAME +.* AGE +APP +TIER +TIER +LABELS"));
    EXPECT_THAT(lines[2], MatchesRegex("default +web-1 .*s +web  +front +app=web,tier=front"));
  }
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  EXPECT_THAT(lookout({"get", "cm", "--show-labels", "--no-headers"}).output,
              MatchesRegex("settings +0 +[0-9]+s +<none>\n"));
}

TEST_F(Get, ShowsKinds) {
  EXPECT_THAT(lookout({"get", "pods", "api", "--show-kind", "--no-headers"}).output,
              testing::StartsWith("pod/api "));
}

TEST_F(Get, IgnoresMissingObjects) {
  for (const char* const format : {"table", "name", "json", "jsonpath={.kind}"}) {
    const auto none = lookout({"get", "pods", "nobody", "--ignore-not-found", "-o", format});
    EXPECT_EQ(none.status, 0) << none.errors;
    EXPECT_EQ(none.output, "");
    EXPECT_EQ(none.errors, "");
  }
  EXPECT_EQ(lookout({"get", "pods", "nobody", "api", "--ignore-not-found", "-o", "name"}).output,
            "pod/api\n");
  EXPECT_EQ(lookout({"get", "unicorns", "--ignore-not-found"}).status, 1);
}

TEST_F(Get, ShowsTheObjectsOfFiles) {
  const test::TempDir dir;
  const std::string file =
      dir.file("a.yaml",
               "apiVersion: v1\nkind: Pod\nmetadata: {name: web-2}\n---\n"
               "apiVersion: v1\nkind: Pod\nmetadata: {name: api, namespace: default}\n---\n"
               "apiVersion: v1\nkind: Pod\nmetadata: {name: dns, namespace: kube-system}\n");
  EXPECT_EQ(lookout({"get", "-f", file, "-o", "name"}).output, "pod/web-2\npod/api\npod/dns\n");
  EXPECT_THAT(
      test::lines(lookout({"get", "-f", file}).output),
      ElementsAre(MatchesRegex("NAME +READY .*"), MatchesRegex("web-2 .*"), MatchesRegex("api .*"),
                  "", MatchesRegex("NAME +READY .*"), MatchesRegex("dns .*")));
  const std::string bad = dir.file("bad.yaml",
                                   "apiVersion: v1\nkind: Pod\nmetadata: {name: nobody}\n---\n"
                                   "apiVersion: v1\nkind: Unicorn\nmetadata: {name: a}\n---\n"
                                   "apiVersion: v1\nkind: Pod\nmetadata: {name: api}\n");
  const auto result = lookout({"get", "-f", bad, "-o", "json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("bad.yaml:5: the server has no kind Unicorn in v1"),
                                   HasSubstr("lookout: pods \"nobody\" not found\n")));
  const auto list = api::Object::parse(result.output);
  EXPECT_EQ(list["items"].size(), 1u);
}

TEST_F(Get, ShowsTheAnswerForAPath) {
  const auto result = lookout({"get", "--raw", "/api/v1/namespaces/default/pods/api"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(api::Object::parse(result.output).name(), "api");
  const auto missing = lookout({"get", "--raw=/nothing"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.output, "");
}

TEST_F(Get, LeavesOutHeaders) {
  EXPECT_THAT(lookout({"get", "pods", "api", "--no-headers"}).output,
              MatchesRegex("api   0/1   Pending   0     [0-9]+s\n"));
  EXPECT_THAT(test::lines(lookout({"get", "pods", "-A", "--no-headers"}).output),
              ElementsAre(MatchesRegex("default +api .*"), MatchesRegex("default +web-1 .*"),
                          MatchesRegex("default +web-2 .*"), MatchesRegex("kube-system +dns .*")));
  EXPECT_EQ(lookout({"get", "secrets", "--no-headers"}).errors,
            "No resources found in default namespace.\n");
}

TEST(CustomColumns, ShowValuesAsGoDoes) {
  const auto object =
      api::Object::parse(R"({"kind":"X","args":["","a"],"size":1.5,"map":{"b":1,"a":[true]}})");
  EXPECT_THAT(CustomColumns::parse("A:.args,S:.size,M:.map").values(object.body()),
              ElementsAre("[ a]", "1.5", "map[a:[true] b:1]"));
}

TEST(Sorting, ComparesQuantitiesOnlyIfAllTextsAreQuantities) {
  const Sorting sorting(".v");
  const auto order = [&](const std::vector<std::string>& values) {
    std::vector<SortKey> keys;
    for (const std::string& value : values) {
      const auto object = api::Object::parse(R"({"v":")" + value + R"("})");
      keys.push_back(sorting.key(object.body()));
    }
    return sorting.order(keys);
  };
  EXPECT_THAT(order({"1Gi", "2Mi"}), ElementsAre(1, 0));
  EXPECT_THAT(order({"1Gi", "2Mi", "web"}), ElementsAre(0, 1, 2));
}

TEST_F(Get, ShowsCustomColumns) {
  const auto columns = [&](const std::string& spec, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"get", "pods", "-o", "custom-columns=" + spec};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  };
  // The expectations are what kubectl prints.
  EXPECT_EQ(columns("NAME:.metadata.name,Tier:{.metadata.labels.tier},N:spec.nodeName", {}),
            "NAME    Tier     N\n"
            "api     <none>   node-1\n"
            "web-1   front    node-1\n"
            "web-2   back     node-2\n");
  EXPECT_EQ(columns("A:.kind,B:.metadata.labels,C:.spec.containers[*]['name'],D:.spec.containers",
                    {"web-1", "--no-headers"})
                .substr(0, 46),
            "Pod   map[app:web tier:front]   main   [map[im");
  EXPECT_EQ(columns("A:.spec.terminationGracePeriodSeconds,B:.kind", {"api"}),
            "A     B\n0     Pod\n");
  EXPECT_EQ(columns("NAME:.metadata.name", {"-l", "app=none"}), "NAME\n");
  EXPECT_EQ(lookout({"get", "pods/api", "ns/default", "-o=custom-columns=K:.kind,N:.metadata.name"})
                .output,
            "K           N\nPod         api\nNamespace   default\n");
}

TEST_F(Get, ReadsCustomColumnsFromAFile) {
  const std::string file = (environment_.home() / "columns").string();
  test::write_file(file, "NAME          NODE\nmetadata.name {.spec.nodeName}\n");
  EXPECT_EQ(lookout({"get", "pods", "web-2", "-o", "custom-columns-file=" + file}).output,
            "NAME    NODE\nweb-2   node-2\n");
  test::write_file(file, "NAME NODE\nmetadata.name\n");
  const auto uneven = lookout({"get", "pods", "-o", "custom-columns-file=" + file});
  EXPECT_EQ(uneven.status, 2);
  EXPECT_THAT(uneven.errors, HasSubstr("has 2 headers, but 1 paths"));
  test::write_file(file, "NAME NODE\n");
  EXPECT_THAT(lookout({"get", "pods", "-o", "custom-columns-file=" + file}).errors,
              HasSubstr("needs a line of headers and a line of paths"));
}

TEST_F(Get, SortsByAPath) {
  const auto map = [&](const std::string& name, const std::string& annotations) {
    create("configmaps", "default",
           R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations + "}}}");
  };
  map("c10", R"("size":"1Gi","rank":"b")");
  map("c9", R"("size":"900Mi","rank":"a")");
  map("c2", R"("rank":"c")");
  const auto names = [&](const std::string& path, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"get", "cm", "--sort-by", path};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    std::string out;
    for (const std::string& line : test::lines(result.output))
      out += line.substr(0, line.find(' ')) + " ";
    return out;
  };
  // The server's table, and objects.
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--no-headers"},
        {"--no-headers", "-o", "custom-columns=NAME:.metadata.name"},
        {"-o", "jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}"}}) {
    EXPECT_EQ(names(".metadata.name", flags), "c2 c9 c10 ");
    EXPECT_EQ(names("{.metadata.annotations.size}", flags), "c2 c9 c10 ");
    EXPECT_EQ(names("metadata.annotations.rank", flags), "c9 c10 c2 ");
  }
  for (const char* const format : {"table", "name"}) {
    const auto none = lookout({"get", "cm", "--sort-by", ".nothing", "-o", format});
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.output, "");
    EXPECT_EQ(none.errors, "lookout: --sort-by: no object has .nothing\n");
    EXPECT_EQ(lookout({"get", "cm", "--sort-by", ".metadata", "-o", format}).errors,
              "lookout: --sort-by: .metadata has values that cannot be sorted\n");
  }
  EXPECT_EQ(lookout({"get", "secrets", "--sort-by", ".metadata.name"}).status, 0);
}

TEST_F(Get, SortsNumbersAndTimes) {
  for (const auto& [name, port] : {std::pair{"a", "10"}, {"b", "9"}, {"c", "100"}}) {
    create("services", "default",
           R"({"metadata":{"name":")" + std::string(name) + R"("},"spec":{"ports":[{"port":)" +
               port + "}]}}");
  }
  EXPECT_EQ(lookout({"get", "svc", "--sort-by=.spec.ports[0].port", "-o", "name"}).output,
            "service/b\nservice/a\nservice/c\n");
  EXPECT_EQ(lookout({"get", "svc", "--sort-by=.metadata.creationTimestamp"}).status, 0);
}

TEST_F(Get, PrintsWhatKubectlPrints) {
  const std::string kubectl = test::find_program("kubectl");
  if (kubectl.empty()) GTEST_SKIP() << "there is no kubectl";
  create(
      "configmaps", "default",
      R"({"metadata":{"name":"settings","annotations":{"b":"<a>","a.b/c":"& d"}},"data":{"n":"1",)"
      R"("z":"10:30","script":"  set -e\n  exit 1\n","hash":"1c4de77d","text":"one\ntwo"}})");
  create("services", "default",
         R"({"metadata":{"name":"web"},"spec":{"ports":[{"port":80,"name":"http"},{"port":53,)"
         R"("protocol":"UDP","name":"dns"}]}})");
  const auto with_kubectl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server_.url()});
    return environment_.run(kubectl, arguments);
  };
  // (Before 1.21, it printed managedFields.)
  const bool is_old =
      with_kubectl({"get", "cm", "settings", "-o", "yaml"}).output.find("managedFields") !=
      std::string::npos;
  const std::vector<std::vector<std::string>> selections = {
      {"cm", "settings"}, {"pods"}, {"pods/api", "svc/web"}, {"cm,svc"}};
  for (const std::string format :
       {"json", "yaml", "name", "custom-columns=A:.metadata.annotations,P:.spec.ports",
        "jsonpath={.items[*].metadata.labels} {.metadata.annotations} {.items[*].spec.ports[0]}"}) {
    if (is_old && (format == "json" || format == "yaml")) continue;
    for (const std::vector<std::string>& selection : selections) {
      std::vector<std::string> arguments{"get", "-o", format};
      arguments.insert(arguments.end(), selection.begin(), selection.end());
      const auto expected = with_kubectl(arguments);
      EXPECT_EQ(expected.status, 0) << expected.errors;
      EXPECT_EQ(lookout(arguments).output, expected.output)
          << format << testing::PrintToString(selection);
    }
  }
}

TEST_F(Get, ShowsJson) {
  const auto one = lookout({"get", "pods", "web-1", "-o", "json"});
  EXPECT_EQ(one.status, 0) << one.errors;
  const auto object = api::Object::parse(one.output);
  // As in kubectl, managedFields are shown only on request.
  const auto whole = lookout({"get", "pods", "web-1", "-o", "json", "--show-managed-fields"});
  EXPECT_EQ(api::Object::parse(whole.output), client_.resource(kPods, "default").get("web-1"));
  EXPECT_EQ(object, api::with_metadata(api::Object::parse(whole.output),
                                       {{api::sym::kManagedFields, std::monostate()}}));
  EXPECT_NE(object, api::Object::parse(whole.output));
  const auto all = lookout({"get", "pods", "-o", "json"});
  const auto list = api::Object::parse(all.output);
  EXPECT_EQ(list.kind(), "List");
  EXPECT_EQ(list["items"].size(), 3u);
  EXPECT_EQ(list["items"][1].to_json(), object.to_json());
  // In the order of names, as with kubectl.
  EXPECT_EQ(one.output.find("{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"Pod\",\n"
                            "    \"metadata\": {\n        \"creationTimestamp\": \""),
            0u)
      << one.output;
  EXPECT_THAT(one.output, HasSubstr("        \"labels\": {\n            \"app\": \"web\",\n"
                                    "            \"tier\": \"front\"\n        },\n"));
  EXPECT_THAT(
      lookout({"get", "pods", "web-1", "-o=jsonpath={.metadata.managedFields[0].operation}"})
          .output,
      "Update");
  // The same without objects.
  const auto none = lookout({"get", "pods", "-l", "app=none", "-o", "json"});
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(lookout::test::held(api::Object::parse(none.output))["items"].size(), 0u);
}

TEST_F(Get, ShowsYaml) {
  const std::string json = lookout({"get", "pods", "web-1", "-o", "json"}).output;
  const auto one = lookout({"get", "pods", "web-1", "-o", "yaml"});
  EXPECT_EQ(one.status, 0) << one.errors;
  const YAML::Node node = YAML::Load(one.output);
  EXPECT_EQ(node["kind"].as<std::string>(), "Pod");
  EXPECT_EQ(node["metadata"]["labels"]["tier"].as<std::string>(), "front");
  EXPECT_EQ(node["metadata"]["resourceVersion"].Tag(), "!") << "a string, not a number";
  const YAML::Node list = YAML::Load(lookout({"get", "pods", "-o", "yaml"}).output);
  EXPECT_EQ(list["kind"].as<std::string>(), "List");
  EXPECT_EQ(list["items"].size(), 3u);
  EXPECT_EQ(YAML::Dump(list["items"][1]), YAML::Dump(node));
}

TEST_F(Get, ShowsNamesWithTheirGroup) {
  EXPECT_THAT(lookout({"get", "ns", "default", "-o", "name"}).output, "namespace/default\n");
  create("leases", "default", R"({"metadata":{"name":"l"}})");
  EXPECT_EQ(lookout({"get", "leases", "-o", "name"}).output, "lease.coordination.k8s.io/l\n");
}

TEST_F(Get, ReadsLongListsInPages) {
  for (int i = 0; i < 1100; ++i)
    create("configmaps", "default", R"({"metadata":{"name":"c)" + std::to_string(i) + R"("}})");
  const auto before = server_.stats().lists;
  EXPECT_EQ(test::lines(lookout({"get", "cm", "-o", "name"}).output).size(), 1100u);
  EXPECT_EQ(server_.stats().lists, before + 3);
  for (const char* const format : {"name", "table"}) {
    const auto lists = server_.stats().lists;
    const auto lines = test::lines(
        lookout({"get", "cm", "--chunk-size=400", "--no-headers", "-o", format}).output);
    EXPECT_EQ(lines.size(), 1100u);
    EXPECT_EQ(server_.stats().lists, lists + 3) << format;
    const auto at_once = lookout({"get", "cm", "--chunk-size=0", "-o", format});
    EXPECT_EQ(at_once.status, 0) << at_once.errors;
    EXPECT_EQ(server_.stats().lists, lists + 4) << format;
  }
}

TEST_F(Get, FailsIfItsOutputCannotBeWritten) {
  for (const char* const format : {"name", "yaml", "table"}) {
    const auto result =
        environment_.run("sh", {"-c", R"(exec "$0" "$@" > /dev/full)", test::lookout_program(),
                                "--server", server_.url(), "get", "pods", "-o", format});
    EXPECT_EQ(result.status, 1) << format;
    EXPECT_EQ(result.errors, "lookout: standard output cannot be written\n") << format;
  }
}

// Far more than a pipe's buffer: the program still writes after the reader has closed it.
TEST_F(Get, PrintsNoErrorAfterItsReaderHasClosed) {
  const std::string text(1000, 'x');
  for (int i = 0; i < 300; ++i)
    create("configmaps", "default",
           R"({"metadata":{"name":"c)" + std::to_string(i) + R"("},"data":{"text":")" + text +
               R"("}})");
  const auto result = environment_.run(
      "sh", {"-c", R"({ "$0" "$@"; echo "status $?" >&2; } | head -c 1)", test::lookout_program(),
             "--server", server_.url(), "get", "cm", "-o", "yaml"});
  EXPECT_EQ(result.output, "a");
  EXPECT_EQ(result.errors, "status 0\n");
}

// Like Go's fmt.Fprint(os.Stderr), whose errors kubectl ignores.
TEST_F(Get, IgnoresErrorsOfStandardError) {
  for (const char* const errors : {"2>&-", "2>/dev/full"}) {
    for (const auto& [resource, status] : {std::pair{"secrets", 0}, std::pair{"nothings", 1}}) {
      const auto result = environment_.run(
          "sh", {"-c", std::string(R"("$0" "$@" )") + errors + "; echo status $?",
                 test::lookout_program(), "--server", server_.url(), "get", resource});
      EXPECT_EQ(result.output, "status " + std::to_string(status) + "\n") << errors << resource;
    }
  }
}

TEST_F(Get, ParsesShortOptionsLikeKubectl) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-n=kube-system", "-o=name"},
        {"-nkube-system", "-oname"},
        {"-A=false", "-n=kube-system", "-l=app=dns", "-o", "name"},
        {"-A", "-l=app=dns", "-o=name", "-v=error"}}) {
    std::vector<std::string> arguments{"get", "pods"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.output, "pod/dns\n") << testing::PrintToString(flags);
  }
}

// In kubectl, they are options of all commands.
TEST_F(Get, AcceptsServerAndNamespaceBeforeTheCommand) {
  for (const std::vector<std::string>& before : {std::vector<std::string>{"-n", "kube-system"},
                                                 {"-nkube-system"},
                                                 {"-n=kube-system"},
                                                 {"--namespace", "kube-system"},
                                                 {"-v", "error", "--namespace=kube-system"}}) {
    std::vector<std::string> arguments = before;
    arguments.insert(arguments.end(), {"-s", server_.url(), "get", "pods", "-o", "name"});
    const auto result = environment_.run(test::lookout_program(), arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.output, "pod/dns\n") << testing::PrintToString(before);
  }
  const auto registry = environment_.run(
      test::lookout_program(), {"-n", "nowhere", "--server", server_.url(), "registry", "ls"});
  EXPECT_EQ(registry.status, 0) << registry.errors;
}

TEST_F(Get, TheLastOfSeveralOptionsCounts) {
  const auto result =
      environment_.run(test::lookout_program(),
                       {"-n", "nowhere", "get", "pods", "--server", "http://127.0.0.1:1", "-n",
                        "kube-system", "-s", server_.url(), "-o", "yaml", "-o", "name"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "pod/dns\n");
}

TEST_F(Get, IgnoresTheCaseOfResourcesAndFormats) {
  for (const char* const name : {"Pods", "PO", "Pod", "Deployments.apps"})
    EXPECT_EQ(lookout({"get", name}).status, 0) << name;
  EXPECT_EQ(lookout({"get", "Pod/api", "-o", "Name"}).output, "pod/api\n");
}

TEST_F(Get, EscapesControlCharactersOfObjects) {
  create("events", "default",
         R"({"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"type":"Normal",)"
         R"("message":"a\u001b]0;title\u0007\u009b2Jb"})");
  for (const auto& command :
       {std::vector<std::string>{"get", "events"}, {"watch", "events", "--exit-after-sync"}}) {
    const auto result = lookout(command);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("a?]0;title??2Jb\n")) << command[0];
  }
}

TEST_F(Get, ReportsThatThereAreNoObjects) {
  const auto result = lookout({"get", "secrets"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors, "No resources found in default namespace.\n");
  EXPECT_EQ(lookout({"get", "secrets", "-A"}).errors, "No resources found.\n");
}

TEST_F(Get, FindsCustomResources) {
  create(
      "customresourcedefinitions", "",
      R"({"metadata":{"name":"tabs.shop.example"},"spec":{"group":"shop.example","scope":)"
      R"("Namespaced","names":{"plural":"tabs","singular":"tab","kind":"Tab","shortNames":)"
      R"(["tb"]},"versions":[{"name":"v1","served":true,"storage":true,"schema":)"
      R"({"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
  client_.resource({"shop.example", "v1", "Tab", "tabs", true}, "default")
      .create(api::Object::parse(
          R"({"apiVersion":"shop.example/v1","kind":"Tab","metadata":{"name":"mine"}})"));
  for (const char* name : {"tabs", "tab", "tb", "Tab", "tabs.shop.example"})
    EXPECT_EQ(lookout({"get", name, "-o", "name"}).output, "tab.shop.example/mine\n") << name;
}

TEST_F(Get, ReportsErrors) {
  constexpr const char* kNoUnicorns =
      "lookout: the server has no resource \"unicorns\": lookout api-resources shows what it has\n";
  const auto missing = lookout({"get", "pods", "nobody"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.output, "");
  EXPECT_EQ(missing.errors, "lookout: pods \"nobody\" not found\n");
  const auto unknown = lookout({"get", "deploymnets"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_EQ(unknown.errors,
            "lookout: the server has no resource \"deploymnets\": did you mean \"deployments\"?\n");
  const auto strange = lookout({"get", "unicorns"});
  EXPECT_EQ(strange.status, 1);
  EXPECT_EQ(strange.errors, kNoUnicorns);
  const auto second = lookout({"get", "pods,unicorns"});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.output, "");
  EXPECT_EQ(second.errors, kNoUnicorns);
  const auto field = lookout({"get", "pods", "--field-selector", "spec.nothing=1"});
  EXPECT_EQ(field.status, 1);
  EXPECT_THAT(field.errors, HasSubstr("spec.nothing"));
}

}  // namespace
}  // namespace lookout::cmd
