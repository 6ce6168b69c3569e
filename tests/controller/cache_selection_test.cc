// The objects that a cache holds, and reads of them: typed, untyped and as metadata.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/labels.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/cache.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::Namespace;
using test::refusal;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

class CacheSelectionTest : public ManagerFixture {
 protected:
  void SetUp() override {
    for (const char* ns : {"a", "b"}) client_.resource<Namespace>().create(Namespace::draft(ns));
    put_labelled("a", "x", "web");
    put_labelled("a", "y", "db");
    put_labelled("b", "x", "web");
    put_labelled("default", "z", "cache");
  }

  void put_labelled(const std::string& ns, const std::string& name, const std::string& app) const {
    const auto draft = ConfigMap::draft(name, ns);
    draft.metadata().labels().set("app", app);
    draft.data().set("value", app);
    client_.resource<ConfigMap>(ns).create(draft);
  }

  template <class T>
  static std::vector<std::string> keys(const std::vector<T>& objects) {
    std::vector<std::string> out;
    out.reserve(objects.size());
    for (const T& object : objects) out.push_back(object.key());
    return out;
  }

  /// The keys in a cache with these options.
  std::vector<std::string> held(const CacheOptions& cache, const KindOptions& kind) const {
    ManagerOptions options;
    options.cache = cache;
    Manager manager{client_, options};
    manager.cache().declare<ConfigMap>(kind);
    const Running running(manager);
    EXPECT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
    return keys(manager.cache().view().list<ConfigMap>());
  }
};

TEST_F(CacheSelectionTest, SelectorsComeFromTheKindOrTheCache) {
  struct Case {
    std::string labels;
    std::string fields;
    std::vector<std::string> expected;
  };
  const Case cases[] = {
      {"", "", {"a/x", "a/y", "b/x", "default/z"}},
      {"", "metadata.name=y", {"a/y"}},
      {"", "metadata.name=x", {"a/x", "b/x"}},
      {"", "metadata.name=none", {}},
      {"", "metadata.namespace=a", {"a/x", "a/y"}},
      {"", "metadata.namespace=none", {}},
      {"app=db", "", {"a/y"}},
      {"app=web", "", {"a/x", "b/x"}},
      {"app in (db,cache)", "", {"a/y", "default/z"}},
      {"app=none", "", {}},
      {"app=web", "metadata.namespace=a", {"a/x"}},
      {"app=db", "metadata.name=x", {}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.labels + " " + each.fields);
    KindOptions kind;
    kind.label_selector = each.labels;
    kind.field_selector = each.fields;
    EXPECT_THAT(held(CacheOptions(), kind), UnorderedElementsAreArray(each.expected));
    CacheOptions cache;
    cache.label_selector = each.labels;
    cache.field_selector = each.fields;
    EXPECT_THAT(held(cache, KindOptions()), UnorderedElementsAreArray(each.expected));
  }
}

TEST_F(CacheSelectionTest, ProjectionsComeFromTheKindOrTheCache) {
  ManagerOptions options;
  options.cache.projection = api::Projection::drop({"data"});
  Manager manager{client_, options};
  manager.cache().declare<ConfigMap>();
  KindOptions whole;
  whole.projection = api::Projection();
  manager.cache().declare<Namespace>(whole);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
  auto view = manager.cache().view();
  const auto map = view.find<ConfigMap>({"a", "x"});
  ASSERT_TRUE(map);
  EXPECT_EQ(map->metadata().labels()["app"], "web");
  EXPECT_FALSE((*map)["data"].exists());
  const auto ns = view.find<Namespace>({"", "a"});
  ASSERT_TRUE(ns);
  EXPECT_TRUE((*ns)["spec"].exists());
}

TEST_F(CacheSelectionTest, OptionsOfAKindOverrideThoseOfTheCache) {
  CacheOptions cache;
  cache.namespaces = {"a"};
  cache.label_selector = "app=web";
  EXPECT_THAT(held(cache, KindOptions()), ElementsAre("a/x"));
  KindOptions all_labels;
  all_labels.label_selector = "";
  EXPECT_THAT(held(cache, all_labels), UnorderedElementsAre("a/x", "a/y"));
  KindOptions another;
  another.namespaces = {{"b"}};
  EXPECT_THAT(held(cache, another), ElementsAre("b/x"));
  // Both select all namespaces.
  KindOptions everywhere;
  everywhere.namespaces = {{""}};
  EXPECT_THAT(held(cache, everywhere), UnorderedElementsAre("a/x", "b/x"));
  everywhere.namespaces.emplace();
  EXPECT_THAT(held(cache, everywhere), UnorderedElementsAre("a/x", "b/x"));
}

TEST_F(CacheSelectionTest, TheDefaultOfAllNamespacesMayBeExplicit) {
  CacheOptions cache;
  cache.namespaces = {""};
  EXPECT_EQ(held(cache, KindOptions()).size(), 4u);
}

TEST_F(CacheSelectionTest, NamespacesMayHaveOptionsOfTheirOwn) {
  using Single = std::map<std::string, NamespaceOptions>;
  struct Case {
    std::vector<std::string> of_the_cache;
    std::optional<std::vector<std::string>> of_the_kind;
    Single single;
    std::vector<std::string> expected;
  };
  const NamespaceOptions web{.label_selector = "app=web"};
  const NamespaceOptions not_x{.field_selector = "metadata.name!=x"};
  const Case cases[] = {
      // Only these namespaces.
      {{}, {}, {{"a", web}, {"b", {}}}, {"a/x", "b/x"}},
      {{"default"}, {}, {{"a", not_x}}, {"a/y"}},
      {{}, {{"default"}}, {{"a", not_x}}, {"a/y", "default/z"}},
      {{}, {{"a", "b"}}, {{"a", not_x}}, {"a/y", "b/x"}},
      // All others as well.
      {{}, {}, {{"a", not_x}, {"", {}}}, {"a/y", "b/x", "default/z"}},
      {{}, {}, {{"a", {}}, {"", web}}, {"a/x", "a/y", "b/x"}},
      {{}, {std::vector<std::string>()}, {{"a", web}}, {"a/x", "b/x", "default/z"}},
      {{}, {}, {{"a", web}, {"b", web}, {"", not_x}}, {"a/x", "b/x", "default/z"}},
      {{}, {}, {{"", web}}, {"a/x", "b/x"}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::PrintToString(each.expected));
    CacheOptions cache;
    cache.namespaces = each.of_the_cache;
    KindOptions kind;
    kind.namespaces = each.of_the_kind;
    kind.by_namespace = each.single;
    EXPECT_THAT(held(cache, kind), UnorderedElementsAreArray(each.expected));
  }
}

TEST_F(CacheSelectionTest, OptionsOfANamespaceComeFromFourPlaces) {
  CacheOptions cache;
  cache.label_selector = "app=web";
  cache.by_namespace = {{"a", {.label_selector = "app=db"}}, {"b", {}}, {"", {}}};
  EXPECT_THAT(held(cache, KindOptions()), UnorderedElementsAre("a/y", "b/x"));
  KindOptions kind;
  kind.namespaces = {{"a", "default"}};
  EXPECT_THAT(held(cache, kind), ElementsAre("a/y"));
  kind.label_selector = "app in (web,cache)";
  EXPECT_THAT(held(cache, kind), UnorderedElementsAre("a/x", "default/z"));
  kind.by_namespace = {{"a", {.label_selector = ""}}};
  EXPECT_THAT(held(cache, kind), UnorderedElementsAre("a/x", "a/y", "default/z"));
}

TEST_F(CacheSelectionTest, ANamespaceMayHaveItsOwnProjection) {
  ManagerOptions options;
  options.cache.by_namespace = {{"a", {.projection = api::Projection::drop({"data"})}}, {"", {}}};
  Manager manager{client_, options};
  manager.cache().declare<ConfigMap>();
  manager.cache().declare<Namespace>();  // cluster-scoped: these defaults do not concern it
  KindOptions namespaced;
  namespaced.by_namespace = {{"a", {}}};
  EXPECT_THROW(manager.cache().declare<k8s::core::v1::Node>(namespaced), InvalidArgument);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
  auto view = manager.cache().view();
  EXPECT_TRUE(view.find<ConfigMap>({"a", "x"})->data().empty());
  EXPECT_EQ(view.find<ConfigMap>({"b", "x"})->data()["value"], "web");
  EXPECT_EQ(view.find<ConfigMap>({"default", "z"})->data()["value"], "cache");
  EXPECT_FALSE(view.find<ConfigMap>({"none", "z"}));
  EXPECT_EQ(keys(view.list<ConfigMap>("b")), std::vector<std::string>{"b/x"});
  EXPECT_TRUE(view.find<Namespace>({"", "a"}));
}

TEST_F(CacheSelectionTest, ADeclarationAgreesWithThatOfItsNamespaces) {
  Manager manager{client_};
  KindOptions kind;
  kind.by_namespace = {{"a", {.label_selector = "app=web"}}, {"", {.field_selector = "x=y"}}};
  manager.cache().declare<ConfigMap>(kind);
  EXPECT_NO_THROW(manager.cache().declare<ConfigMap>(kind));
  EXPECT_NO_THROW(manager.cache().declare<ConfigMap>());
  KindOptions part;
  part.by_namespace = {{"a", {}}};
  EXPECT_NO_THROW(manager.cache().declare<ConfigMap>(part));
  part.by_namespace = {{"a", {.label_selector = "app=db"}}};
  EXPECT_THROW(manager.cache().declare<ConfigMap>(part), InvalidArgument);
  part.by_namespace = {{"b", {}}};
  EXPECT_THROW(manager.cache().declare<ConfigMap>(part), InvalidArgument);
}

TEST_F(CacheSelectionTest, AWriteOutsideTheSelectionOfItsNamespaceReadsTheServer) {
  ManagerOptions options;
  options.cache.by_namespace = {{"a", {.label_selector = "app=web"}}, {"", {}}};
  Manager manager{client_, options};
  std::atomic<int> updated{0};
  std::atomic<int> others{0};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (request.ns != "default") return {};
    // The cache does not have a/y; it has b/x, and it does not have b/new.
    for (const Request& wanted : {Request("a", "y"), Request("b", "x"), Request("b", "new")}) {
      const auto result = context.create_or_update<ConfigMap>(
          wanted, [](const k8s::core::v1::ConfigMapDraft& draft) { draft.data().set("n", "1"); });
      ++(result.written == Written::kUpdated ? updated : others);
    }
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return updated == 2 && others == 1; }));
}

/// Reads the content of a cache in three ways.
class CacheReadTest : public CacheSelectionTest {
 protected:
  void start(const KindOptions& options = {}) {
    manager_ = std::make_unique<Manager>(client_);
    manager_->cache().declare<ConfigMap>(options);
    manager_->cache().declare_metadata<ConfigMap>(options);
    running_ = std::make_unique<Running>(*manager_);
    ASSERT_TRUE(eventually([&] { return manager_->cache().unsynced().empty(); }));
  }
  std::vector<std::string> all_ways(const std::string& ns, const std::string& labels = {}) const {
    auto view = manager_->cache().view();
    const auto selector = api::labels::parse(labels);
    auto typed = keys(view.list<ConfigMap>(ns, selector));
    EXPECT_THAT(keys(view.list_metadata<ConfigMap>(ns, selector)),
                UnorderedElementsAreArray(typed));
    const api::Resource resource(ConfigMap::kResource);
    EXPECT_THAT(keys(view.list(resource, false, ns, selector)), UnorderedElementsAreArray(typed));
    return typed;
  }

  std::unique_ptr<Manager> manager_;
  std::unique_ptr<Running> running_;
};

TEST_F(CacheReadTest, ListsByNamespaceAndLabels) {
  start();
  EXPECT_THAT(all_ways(""), UnorderedElementsAre("a/x", "a/y", "b/x", "default/z"));
  EXPECT_THAT(all_ways("a"), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_THAT(all_ways("", "app=web"), UnorderedElementsAre("a/x", "b/x"));
  EXPECT_THAT(all_ways("b", "app=web"), ElementsAre("b/x"));
  EXPECT_THAT(all_ways("b", "app=db"), IsEmpty());
}

TEST_F(CacheReadTest, FindsByNamespaceAndName) {
  start();
  auto view = manager_->cache().view();
  const api::Resource resource(ConfigMap::kResource);
  const auto found = view.find<ConfigMap>({"a", "x"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->data()["value"], "web");
  EXPECT_EQ(found->kind(), "ConfigMap");
  EXPECT_EQ(found->api_version(), "v1");
  EXPECT_EQ(view.find(resource, false, {"a", "x"}).uid(), found->uid());
  const auto metadata = view.find_metadata<ConfigMap>({"a", "x"});
  ASSERT_TRUE(metadata);
  EXPECT_EQ(metadata->uid(), found->uid());
  EXPECT_TRUE(metadata->data().empty());
  EXPECT_FALSE(view.find<ConfigMap>({"a", "none"}));
  EXPECT_FALSE(view.find_metadata<ConfigMap>({"a", "none"}));
  EXPECT_FALSE(view.find(resource, false, {"a", "none"}));
}

TEST_F(CacheReadTest, AnUnwatchedNamespaceIsAnErrorForEveryRead) {
  KindOptions options;
  options.namespaces = {{"a", "b"}};
  start(options);
  EXPECT_THAT(all_ways(""), UnorderedElementsAre("a/x", "a/y", "b/x"));
  EXPECT_THAT(all_ways("", "app=web"), UnorderedElementsAre("a/x", "b/x"));
  const api::Resource resource(ConfigMap::kResource);
  auto view = manager_->cache().view();
  const auto message = HasSubstr("\"default\" is not watched");
  EXPECT_THAT(refusal<NotCachedError>([&] { view.find<ConfigMap>({"default", "z"}); }), message);
  EXPECT_THAT(refusal<NotCachedError>([&] {
                view.find_metadata<ConfigMap>({"default", "z"});
              }),
              message);
  EXPECT_THAT(refusal<NotCachedError>([&] {
                view.find(resource, false, {"default", "z"});
              }),
              message);
  EXPECT_THAT(refusal<NotCachedError>([&] { view.list<ConfigMap>("default"); }), message);
  EXPECT_THAT(refusal<NotCachedError>([&] { view.list_metadata<ConfigMap>("default"); }), message);
}

TEST_F(CacheReadTest, ALazyReadWaitsForTheWholeList) {
  ManagerOptions options;
  options.cache.lazy = true;
  Manager manager{client_, options};
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_EQ(manager.cache().view().list<ConfigMap>().size(), 4u);
  EXPECT_EQ(manager.cache().view().list_metadata<ConfigMap>().size(), 4u);
}

TEST_F(CacheReadTest, AnIndexMayBeAddedWhileTheManagerRuns) {
  start();
  auto& caches = manager_->cache();
  caches.add_index<ConfigMap>(
      "app", [](const ConfigMap& map) { return std::string(map.labels()["app"].as_string()); });
  EXPECT_THAT(keys(caches.view().by_index<ConfigMap>("app", "web")),
              UnorderedElementsAre("a/x", "b/x"));
  EXPECT_THAT(keys(caches.view().by_index<ConfigMap>("app", "web", "b")), ElementsAre("b/x"));
  put_labelled("default", "late", "web");
  EXPECT_TRUE(
      eventually([&] { return caches.view().by_index<ConfigMap>("app", "web").size() == 3; }));
  EXPECT_THROW(caches.view().by_index<ConfigMap>("none", "web"), InvalidArgument);
  // A kind that the server does not serve delays nothing.
  caches.add_index(api::Resource("example.com", "v1", "Website", "websites", true), "host",
                   [](const api::Object&, cache::IndexValues&) {});
}

TEST_F(CacheReadTest, SeveralIndexesMatchTogether) {
  start();
  auto& caches = manager_->cache();
  caches.add_index<ConfigMap>(
      "app", [](const ConfigMap& map) { return std::string(map.labels()["app"].as_string()); });
  caches.add_index<ConfigMap>("name", [](const ConfigMap& map) {
    if (map.name() == "bad") throw Error("no index value");
    return std::string(map.name());
  });
  auto view = caches.view();
  const auto found = [&](const MatchingFields& fields, const std::string& ns = {},
                         const std::string& labels = {}) {
    return keys(view.matching_fields<ConfigMap>(fields, ns, api::labels::parse(labels)));
  };
  EXPECT_THAT(found({{"app", "web"}, {"name", "x"}}), UnorderedElementsAre("a/x", "b/x"));
  EXPECT_THAT(found({{"app", "web"}, {"name", "x"}}, "b"), ElementsAre("b/x"));
  EXPECT_THAT(found({{"app", "web"}, {"name", "x"}, {"namespace", "a"}}), ElementsAre("a/x"));
  EXPECT_THAT(found({{"app", "web"}, {"name", "y"}}), IsEmpty());
  EXPECT_THAT(found({{"app", "none"}, {"name", "x"}}), IsEmpty());
  EXPECT_THAT(found({{"name", "x"}}, "", "app!=web"), IsEmpty());
  EXPECT_THAT(found({{"name", "y"}}, "a", "app=db"), ElementsAre("a/y"));
  EXPECT_THAT(found({}, "a"), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_THAT(refusal<InvalidArgument>([&] {
                found({{"app", "web"}, {"none", "x"}});
              }),
              HasSubstr("none"));
  EXPECT_THROW(caches.add_index<ConfigMap>("app", [](const ConfigMap&) { return std::string(); }),
               InvalidArgument);
  // An object for which a function throws has no value of that index.
  put_labelled("default", "bad", "web");
  ASSERT_TRUE(
      eventually([&] { return caches.view().by_index<ConfigMap>("app", "web").size() == 3; }));
  EXPECT_EQ(caches.view().matching_fields<ConfigMap>({{"app", "web"}, {"name", "bad"}}).size(), 0u);
}

TEST_F(CacheReadTest, SeveralIndexesMatchInSeveralNamespaces) {
  KindOptions options;
  options.by_namespace = {{"a", {.label_selector = "app=web"}}, {"", {}}};
  start(options);
  auto& caches = manager_->cache();
  caches.add_label_index<ConfigMap>("app");
  caches.add_index<ConfigMap>("name", [](const ConfigMap& map) { return std::string(map.name()); });
  EXPECT_THAT(keys(caches.view().matching_fields<ConfigMap>({{"label:app", "web"}, {"name", "x"}})),
              UnorderedElementsAre("a/x", "b/x"));
}

TEST_F(CacheReadTest, MetadataHasIndexes) {
  start();
  auto& caches = manager_->cache();
  caches.add_index_metadata<ConfigMap>("app", [](const ConfigMap& map) {
    EXPECT_TRUE(map.data().empty());
    return std::string(map.labels()["app"].as_string());
  });
  caches.add_label_index_metadata<ConfigMap>("app");
  auto view = caches.view();
  EXPECT_THAT(keys(view.by_index_metadata<ConfigMap>("app", "web")),
              UnorderedElementsAre("a/x", "b/x"));
  EXPECT_THAT(keys(view.by_index_metadata<ConfigMap>("app", "web", "b")), ElementsAre("b/x"));
  EXPECT_THAT(keys(view.matching_fields_metadata<ConfigMap>({{"app", "db"}, {"label:app", "db"}})),
              ElementsAre("a/y"));
  EXPECT_EQ(view.by_index_metadata<ConfigMap>("app", "web").front().kind(), "ConfigMap");
  // The indexes of whole objects are others.
  EXPECT_THROW(view.by_index<ConfigMap>("app", "web"), InvalidArgument);
  put_labelled("default", "late", "web");
  EXPECT_TRUE(eventually(
      [&] { return caches.view().by_index_metadata<ConfigMap>("app", "web").size() == 3; }));
  EXPECT_TRUE(caches.undeclare_metadata<ConfigMap>());
  EXPECT_THROW(caches.view().by_index_metadata<ConfigMap>("app", "web"), NotCachedError);
}

TEST_F(CacheSelectionTest, AClusterScopedObjectIsWrittenWhateverNamespaceTheRequestHas) {
  Manager manager{client_};
  manager.cache().declare<Namespace>();
  std::atomic<int> unchanged{0};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (request.ns != "a") return {};
    const auto result = context.create_or_update<Namespace>(
        Request(request.ns, "b"), [](const k8s::core::v1::NamespaceDraft& draft) {
          draft.metadata().labels().set("seen", "yes");
        });
    EXPECT_NE(result.written, Written::kCreated);
    if (result.written == Written::kUnchanged) ++unchanged;
    return requeue_after(1ms);
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return unchanged > 0; }));
}

TEST_F(CacheReadTest, IndexesClusterScopedObjects) {
  Manager manager{client_};
  manager.cache().add_index<Namespace>("fixed", [](const Namespace&) {
    return std::vector<std::string>{"a", "b", "c"};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
  auto view = manager.cache().view();
  const auto all = view.list<Namespace>().size();
  EXPECT_GE(all, 3u);
  for (const char* value : {"a", "b", "c"})
    EXPECT_EQ(view.by_index<Namespace>("fixed", value).size(), all);
  EXPECT_EQ(view.by_index<Namespace>("fixed", "d").size(), 0u);
}

}  // namespace
}  // namespace lookout::controller
