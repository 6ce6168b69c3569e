#include "lookout/controller/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "lookout/api/labels.h"
#include "lookout/controller/builder.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::Namespace;
using k8s::core::v1::Node;
using test::refusal;

class CacheTest : public ManagerFixture {
 protected:
  void make_namespace(const std::string& name) const {
    client_.resource<Namespace>().create(Namespace::draft(name));
  }
  /// A view of the caches, once they have synced.
  static auto synced_view(Manager& manager) {
    EXPECT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
    return manager.cache().view();
  }
};

TEST_F(CacheTest, AnUndeclaredKindIsAClearError) {
  Manager manager{client_};
  manager.cache().declare<ConfigMap>();
  manager.cache().declare_metadata<Secret>();
  const Running running(manager);
  auto view = synced_view(manager);
  EXPECT_TRUE(view.list<ConfigMap>().empty());
  EXPECT_THAT(refusal<NotCachedError>([&] { view.list<Node>(); }),
              HasSubstr("nodes are not cached"));
  EXPECT_THAT(refusal<NotCachedError>([&] {
                view.find<Secret>({"default", "s"});
              }),
              HasSubstr("use find_metadata()"));
  EXPECT_THAT(refusal<NotCachedError>([&] {
                view.find_metadata<ConfigMap>({"default", "s"});
              }),
              HasSubstr("use find()"));
}

TEST_F(CacheTest, TheFirstReadStartsALazyCache) {
  put("m", "1");
  ManagerOptions options;
  options.cache.lazy = true;
  Manager manager{client_, options};
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_EQ(manager.cache().view().list<ConfigMap>("default").size(), 1u);
}

TEST_F(CacheTest, RefusesReadsBeforeFirstCompleteList) {
  Manager manager{client_};
  manager.cache().declare<ConfigMap>();
  std::stop_source stopped;
  stopped.request_stop();
  CacheView view(manager.cache().core(), stopped.get_token());
  EXPECT_THAT(refusal<NotCachedError>([&] { view.list<ConfigMap>(); }),
              HasSubstr("no complete list yet"));
  EXPECT_TRUE(manager.cache().check());
}

TEST_F(CacheTest, AReadBeforeTheRunDoesNotWait) {
  Manager manager{client_};
  manager.cache().declare<ConfigMap>();
  const auto begun = std::chrono::steady_clock::now();
  auto view = manager.cache().view();
  EXPECT_THAT(refusal<NotCachedError>([&] { view.list<ConfigMap>(); }),
              HasSubstr("before Manager::run()"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1min);
}

TEST_F(CacheTest, SeveralNamespacesAreReadAsOne) {
  for (const char* ns : {"a", "b", "c"}) {
    make_namespace(ns);
    put("m", ns, ns);
  }
  Manager manager{client_};
  KindOptions options;
  options.namespaces = {{"a", "b"}};
  manager.cache().declare<ConfigMap>(options);
  manager.cache().add_index<ConfigMap>(
      "value", [](const ConfigMap& map) { return std::string(map.data()["value"]); });
  const Running running(manager);
  auto view = synced_view(manager);
  EXPECT_EQ(view.list<ConfigMap>().size(), 2u);
  EXPECT_EQ(view.list<ConfigMap>("b").size(), 1u);
  EXPECT_TRUE(view.find<ConfigMap>({"a", "m"}));
  EXPECT_EQ(view.by_index<ConfigMap>("value", "b").size(), 1u);
  EXPECT_EQ(view.by_index<ConfigMap>("value", "b", "a").size(), 0u);
  // This differs from "not found".
  EXPECT_THAT(refusal<NotCachedError>([&] {
                view.find<ConfigMap>({"c", "m"});
              }),
              HasSubstr("\"c\" is not watched"));
}

TEST_F(CacheTest, SelectorsFieldsAndLabelIndexes) {
  const auto draft = ConfigMap::draft("web", "default");
  draft.metadata().labels().set("app", "web");
  draft.data().set("value", "1");
  maps_.create(draft);
  put("other", "1");
  Manager manager{client_};
  KindOptions options;
  options.label_selector = "app";
  options.projection = api::Projection::keep({"metadata"});
  manager.cache().declare<ConfigMap>(options);
  manager.cache().add_label_index<ConfigMap>("app");
  const Running running(manager);
  auto view = synced_view(manager);
  ASSERT_EQ(view.list<ConfigMap>().size(), 1u);
  EXPECT_TRUE(view.list<ConfigMap>().front().data().empty());
  EXPECT_EQ(view.list<ConfigMap>("", api::labels::parse("app=web")).size(), 1u);
  EXPECT_EQ(view.list<ConfigMap>("", api::labels::parse("app=x")).size(), 0u);
}

TEST_F(CacheTest, FindsByNamespaceAndNameOrByNameAlone) {
  put("m", "1");
  Manager manager{client_};
  manager.cache().declare<ConfigMap>();
  manager.cache().declare<Namespace>();
  const Running running(manager);
  auto view = synced_view(manager);
  EXPECT_TRUE(view.find<ConfigMap>({"default", "m"}));
  EXPECT_FALSE(view.find<ConfigMap>({"", "m"}));
  EXPECT_FALSE(view.find<ConfigMap>({"other", "m"}));
  EXPECT_TRUE(view.find<Namespace>({"", "default"}));
  EXPECT_FALSE(view.find<Namespace>({"default", "default"}));
}

TEST_F(CacheTest, DeclarationsMustAgree) {
  Manager manager{client_};
  KindOptions web;
  web.label_selector = "app=web";
  manager.cache().declare<ConfigMap>(web);
  manager.cache().declare<ConfigMap>(web);
  manager.cache().declare<ConfigMap>();
  KindOptions other;
  other.label_selector = "app=other";
  EXPECT_THROW(manager.cache().declare<ConfigMap>(other), InvalidArgument);
  KindOptions namespaced;
  namespaced.namespaces = {{"default"}};
  EXPECT_THROW(manager.cache().declare<Node>(namespaced), InvalidArgument);
  KindOptions mixed;
  mixed.namespaces = {{"", "default"}};
  EXPECT_THROW(manager.cache().declare<Secret>(mixed), InvalidArgument);
}

TEST_F(CacheTest, ADeclarationOfAllNamespacesConflictsWithDefaults) {
  make_namespace("a");
  ManagerOptions options;
  options.cache.namespaces = {"a"};
  Manager manager{client_, options};
  manager.cache().declare<ConfigMap>();
  KindOptions everywhere;
  everywhere.namespaces.emplace();
  EXPECT_THROW(manager.cache().declare<ConfigMap>(everywhere), InvalidArgument);
  KindOptions same;
  same.namespaces = {{"a"}};
  EXPECT_NO_THROW(manager.cache().declare<ConfigMap>(same));
  manager.cache().declare<Secret>(everywhere);
  EXPECT_NO_THROW(manager.cache().declare<Secret>(everywhere));
}

TEST_F(CacheTest, ClusterScopedKindsIgnoreDefaultNamespaces) {
  make_namespace("a");
  put("m", "1");
  put("m", "1", "a");
  ManagerOptions options;
  options.cache.namespaces = {"a"};
  Manager manager{client_, options};
  manager.cache().declare<ConfigMap>();
  manager.cache().declare<Namespace>();
  const Running running(manager);
  auto view = synced_view(manager);
  EXPECT_EQ(view.list<ConfigMap>().size(), 1u);
  EXPECT_TRUE(view.find<Namespace>({"", "a"}));
}

}  // namespace
}  // namespace lookout::controller
