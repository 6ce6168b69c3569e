#include "lookout/api/resource.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <set>
#include <string>

#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

TEST(ResourceTest, HasAllBuiltInResources) {
  EXPECT_EQ(schema_version(), "1.36");
  EXPECT_EQ(builtin_resources().size(), 68u);
  std::set<std::string> seen;
  for (const auto& info : builtin_resources()) {
    const Resource resource(info.type());
    EXPECT_TRUE(seen.insert(resource.root_path() + "/" + resource.plural).second) << info.plural;
    EXPECT_EQ(find_builtin(info.group, info.version, info.kind)->kind, info.kind);
    // The full name finds exactly this one; by plural alone some resource is found.
    const std::string full = resource.plural + "." + resource.version + "." + resource.group;
    ASSERT_EQ(find_builtin_by_name(full), &info) << full;
    ASSERT_NE(find_builtin_by_name(info.plural), nullptr);
    EXPECT_EQ(find_builtin_by_name(info.plural)->plural, info.plural);
  }
}

TEST(ResourceTest, TheTableEqualsTheServers) {
  for (const auto& [file, group_version] :
       {std::pair("api_v1", "v1"), std::pair("apis_apps_v1", "apps/v1")}) {
    const auto discovery = test::parse_json(lookout::test::read_file(
        lookout::test::testdata(std::string("kube-1.36/discovery/") + file + ".json")));
    for (const auto& resource : discovery["resources"].GetArray()) {
      const std::string name = resource["name"].GetString();
      if (name.find('/') != std::string::npos) continue;
      const auto gvk = GroupVersionKind::from(group_version, resource["kind"].GetString());
      const auto* info = find_builtin(gvk.group, gvk.version, gvk.kind);
      ASSERT_NE(info, nullptr) << name;
      EXPECT_EQ(info->plural, name);
      EXPECT_EQ(info->singular, resource["singularName"].GetString());
      EXPECT_EQ(info->namespaced, resource["namespaced"].GetBool());
      std::set<std::string> verbs;
      for (const auto& verb : resource["verbs"].GetArray()) verbs.emplace(verb.GetString());
      const auto own = split_list(info->verbs);
      EXPECT_EQ(std::set<std::string>(own.begin(), own.end()), verbs) << name;
    }
  }
}

TEST(ResourceTest, AcceptsAllFormsOfNames) {
  const struct {
    const char* name;
    const char* group;
    const char* version;
    const char* plural;
  } cases[] = {
      {"pods", "", "v1", "pods"},
      {"pod", "", "v1", "pods"},
      {"po", "", "v1", "pods"},
      {"Pod", "", "v1", "pods"},
      {"PODS", "", "v1", "pods"},
      {"pods.v1", "", "v1", "pods"},
      {"pods.v1.", "", "v1", "pods"},
      {"svc", "", "v1", "services"},
      {"deploy", "apps", "v1", "deployments"},
      {"deployments.apps", "apps", "v1", "deployments"},
      {"deployment.apps", "apps", "v1", "deployments"},
      {"deployments.v1.apps", "apps", "v1", "deployments"},
      {"hpa", "autoscaling", "v2", "horizontalpodautoscalers"},
      {"hpa.autoscaling", "autoscaling", "v2", "horizontalpodautoscalers"},
      {"hpa.v1.autoscaling", "autoscaling", "v1", "horizontalpodautoscalers"},
      {"events", "", "v1", "events"},
      {"events.events.k8s.io", "events.k8s.io", "v1", "events"},
      {"events.v1.events.k8s.io", "events.k8s.io", "v1", "events"},
      {"crd", "apiextensions.k8s.io", "v1", "customresourcedefinitions"},
  };
  for (const auto& [name, group, version, plural] : cases) {
    const auto* info = find_builtin_by_name(name);
    ASSERT_NE(info, nullptr) << name;
    EXPECT_EQ(info->group, group) << name;
    EXPECT_EQ(info->version, version) << name;
    EXPECT_EQ(info->plural, plural) << name;
  }
  for (const char* name : {"", ".", "nothing", "pods.apps", "deployments.v2.apps", "deployments.v1",
                           "PO", "pods/status", "pods ", "apps", "v1"})
    EXPECT_EQ(find_builtin_by_name(name), nullptr) << name;
  EXPECT_EQ(find_builtin("", "v1", "pod"), nullptr);
  EXPECT_EQ(find_builtin("apps", "v1", "Pod"), nullptr);
}

TEST(ResourceTest, TypesKnowTheirResource) {
  const Resource pods(k8s::core::v1::Pod::kResource);
  EXPECT_EQ(pods, Resource("", "v1", "Pod", "pods", true));
  EXPECT_EQ(pods.api_version(), "v1");
  EXPECT_EQ(pods.qualified_name(), "pods");
  EXPECT_EQ(pods.root_path(), "/api/v1");
  EXPECT_EQ(pods.gvk(), (GroupVersionKind{"", "v1", "Pod"}));
  const Resource deployments(k8s::apps::v1::Deployment::kResource);
  EXPECT_EQ(deployments.api_version(), "apps/v1");
  EXPECT_EQ(deployments.qualified_name(), "deployments.apps");
  EXPECT_EQ(deployments.root_path(), "/apis/apps/v1");
  EXPECT_FALSE(k8s::core::v1::Node::kResource.namespaced);
}

TEST(ResourceTest, GroupVersionKinds) {
  EXPECT_EQ(GroupVersionKind::from("apps/v1", "Deployment"),
            (GroupVersionKind{"apps", "v1", "Deployment"}));
  EXPECT_EQ(GroupVersionKind::from("v1", "Pod"), (GroupVersionKind{"", "v1", "Pod"}));
  EXPECT_EQ(GroupVersionKind::from("", ""), GroupVersionKind{});
  EXPECT_EQ((GroupVersionKind{"apps", "v1", "Deployment"}).to_string(), "apps/v1 Deployment");
  EXPECT_EQ((GroupVersionKind{"", "v1", "Pod"}).api_version(), "v1");
}

TEST(ResourceTest, ListsAreSplit) {
  EXPECT_THAT(split_list(""), IsEmpty());
  EXPECT_THAT(split_list("a"), ElementsAre("a"));
  EXPECT_THAT(split_list("a,b,c"), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace lookout::api
