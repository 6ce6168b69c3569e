#include "lookout/lister/lister.h"

#include <gtest/gtest.h>

#include <ranges>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/k8s/core/v1.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"

namespace lookout::lister {
namespace {

using api::labels::parse;
using k8s::core::v1::Node;
using k8s::core::v1::Pod;
using test::keys;
using test::pod;

static_assert(std::ranges::input_range<ListRange<Pod>>);
static_assert(std::same_as<std::ranges::range_value_t<ListRange<Pod>>, Pod>);

class ListerTest : public testing::Test {
 protected:
  ListerTest() {
    store_->put(pod("shop/web-1", 1, {{{"app", "web"}, {"tier", "front"}}, "n1"}));
    store_->put(pod("shop/web-2", 1, {{{"app", "web"}}, "n2"}));
    store_->put(pod("shop/db", 1, {{{"app", "db"}}, "n1"}));
    store_->put(pod("bank/web-1", 1, {{{"app", "web"}}, "n1"}));
    store_->put(pod("bank/bare", 1, {{}, "n1"}));
  }

  const std::shared_ptr<cache::Indexer> store_ = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace},
                      {"node", [](const api::Object& object, cache::IndexValues& values) {
                         values.add(object["spec"]["nodeName"].as_string());
                       }}});
  const Lister<Pod> pods_{store_, Pod::kResource};
};

TEST_F(ListerTest, ListsEverything) {
  EXPECT_THAT(keys(pods_.list()), UnorderedElementsAre("shop/web-1", "shop/web-2", "shop/db",
                                                       "bank/web-1", "bank/bare"));
  EXPECT_EQ(pods_.list().size(), 5u);
  EXPECT_FALSE(pods_.list().empty());
}

TEST_F(ListerTest, FindsTheKeysOfAWorkQueue) {
  store_->put(pod("cluster-wide"));
  EXPECT_EQ(pods_.find_by_key("shop/web-2").name(), "web-2");
  EXPECT_EQ(pods_.find_by_key("cluster-wide").name(), "cluster-wide");
  EXPECT_FALSE(pods_.find_by_key("web-2"));
  EXPECT_FALSE(pods_.find_by_key("shop/none"));
}

TEST_F(ListerTest, TheNothingSelectorListsNothing) {
  EXPECT_THAT(keys(pods_.list(api::labels::nothing())), IsEmpty());
  EXPECT_TRUE(pods_.list(api::labels::nothing()).empty());
  EXPECT_EQ(pods_.list(api::labels::nothing()).size(), 0u);
}

TEST_F(ListerTest, AnIndexByLabelGivesTheSameResult) {
  store_->put(pod("shop/nameless", 1, {{{"app", ""}}, "n1"}));
  const char* const selectors[] = {
      "app=web", "app==web", "app in (web)", "app in (web,db)", "app!=web", "app",
      "!app",    "app=",     "app=web,tier", "tier=front,app",  "app=none"};
  std::vector<std::vector<std::string>> scanned;
  for (const char* selector : selectors) scanned.push_back(keys(pods_.list(parse(selector))));
  store_->add_indexers({cache::index_by_label("app")});
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    EXPECT_THAT(keys(pods_.list(parse(selectors[i]))),
                testing::UnorderedElementsAreArray(scanned[i]))
        << selectors[i];
  }
}

TEST_F(ListerTest, AnIndexByLabelIsUsed) {
  // An index of that name with one pod only: the result shows that the index was used.
  store_->add_indexers(
      {{cache::label_index_name("app"), [](const api::Object& object, cache::IndexValues& values) {
          if (object.name() == "web-2") values.add("web");
        }}});
  EXPECT_THAT(keys(pods_.list(parse("app=web"))), ElementsAre("shop/web-2"));
  EXPECT_THAT(keys(pods_.list(parse("app in (web),!tier"))), ElementsAre("shop/web-2"));
  EXPECT_THAT(keys(pods_.list(parse("app=db"))), IsEmpty());
  EXPECT_THAT(keys(pods_.list(parse("app!=web"))), UnorderedElementsAre("shop/db", "bank/bare"));
  EXPECT_EQ(pods_.list().size(), 5u);
}

TEST_F(ListerTest, ListsSelectedObjects) {
  EXPECT_THAT(keys(pods_.list(parse("app in (web,api), !tier"))),
              UnorderedElementsAre("shop/web-2", "bank/web-1"));
  EXPECT_THAT(keys(pods_.list(parse("app!=web"))), UnorderedElementsAre("shop/db", "bank/bare"));
  const auto web = pods_.list(parse("app=web"));
  EXPECT_EQ(web.size(), 3u);
  EXPECT_FALSE(web.empty());
  EXPECT_EQ(keys(web), keys(web)) << "a range may be walked again";
  EXPECT_THAT(keys(pods_.list(parse("app=none"))), IsEmpty());
  EXPECT_TRUE(pods_.list(parse("app=none")).empty());
  EXPECT_EQ(pods_.list(parse("app=none")).size(), 0u);
}

TEST_F(ListerTest, ListsANamespace) {
  EXPECT_THAT(keys(pods_.ns("bank").list()), UnorderedElementsAre("bank/web-1", "bank/bare"));
  EXPECT_THAT(keys(pods_.ns("shop").list(parse("app=web"))),
              UnorderedElementsAre("shop/web-1", "shop/web-2"));
  EXPECT_THAT(keys(pods_.ns("none").list()), IsEmpty());
  EXPECT_EQ(pods_.ns("").list().size(), 5u) << "all of them, as in client-go";
}

TEST_F(ListerTest, ListsANamespaceWithoutTheIndexByNamespace) {
  const auto bare = std::make_shared<cache::Indexer>();
  for (const char* key : {"shop/web-1", "shop/db", "bank/web-1"}) bare->put(pod(key));
  const Lister<Pod> pods{bare, Pod::kResource};
  EXPECT_THAT(keys(pods.ns("shop").list()), UnorderedElementsAre("shop/web-1", "shop/db"));
  EXPECT_EQ(pods.ns("shop").list().size(), 2u);
  EXPECT_THAT(keys(pods.ns("none").list()), IsEmpty());
  EXPECT_EQ(pods.ns("").list().size(), 3u);
}

TEST_F(ListerTest, ANamespaceListUsesASmallerIndexByLabel) {
  // As above, an incomplete index: 3 pods are in shop, 2 in bank.
  store_->add_indexers(
      {{cache::label_index_name("app"), [](const api::Object& object, cache::IndexValues& values) {
          if (object.key() == "shop/web-2" || object.key() == "bank/web-1") values.add("web");
        }}});
  EXPECT_THAT(keys(pods_.ns("shop").list(parse("app=web"))), ElementsAre("shop/web-2"));
  EXPECT_EQ(pods_.ns("shop").list(parse("app=web")).size(), 1u);
  EXPECT_THAT(keys(pods_.ns("shop").list(parse("app=web,tier"))), IsEmpty());
  EXPECT_THAT(keys(pods_.ns("bank").list(parse("app=web"))), ElementsAre("bank/web-1"));
  EXPECT_THAT(keys(pods_.ns("none").list(parse("app=web"))), IsEmpty());
  EXPECT_THAT(keys(pods_.ns("shop").list(parse("app!=web"))), ElementsAre("shop/db"));
}

TEST_F(ListerTest, UsesTheSmallestOfSeveralIndexesByLabel) {
  store_->add_indexers(
      {{cache::label_index_name("app"),
        [](const api::Object&, cache::IndexValues& values) { values.add("web"); }},
       {cache::label_index_name("tier"), [](const api::Object&, cache::IndexValues&) {}}});
  EXPECT_THAT(keys(pods_.list(parse("app=web,tier=front"))), IsEmpty());
  EXPECT_THAT(keys(pods_.list(parse("tier=front,app=web"))), IsEmpty());
  EXPECT_EQ(pods_.list(parse("app=web")).size(), 3u);
}

TEST_F(ListerTest, FindsByName) {
  EXPECT_EQ(lookout::test::held(pods_.ns("shop").get("db")).spec().node_name(), "n1");
  EXPECT_EQ(pods_.ns("shop").find("db").key(), "shop/db");
  EXPECT_FALSE(pods_.ns("bank").find("db"));
  EXPECT_FALSE(pods_.find("db")) << "it lives in a namespace";
}

TEST_F(ListerTest, FindsManyByName) {
  const std::vector<cache::ObjectName> wanted{{"shop", "db"}, {"shop", "none"}, {"bank", "web-1"}};
  const auto found = pods_.find_many(wanted);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].spec().node_name(), "n1");
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(found[2].key(), "bank/web-1");
  const Lister<api::Object> untyped(store_, {"", "v1", "Pod", "pods", true});
  EXPECT_EQ(untyped.find_many(wanted)[2].key(), "bank/web-1");
}

TEST_F(ListerTest, AReadViewAnnouncesItselfOnce) {
  const std::vector<cache::ObjectName> wanted{{"bank", "bare"}, {"shop", "none"}};
  const auto view = pods_.read();
  EXPECT_EQ(view.find("shop", "web-2")->spec().node_name(), "n2");
  EXPECT_FALSE(view.find("shop", "none"));
  const auto found = view.find_many(wanted);
  EXPECT_EQ(found[0].key(), "bank/bare");
  EXPECT_FALSE(found[1]);
  store_->put(pod("shop/web-2", 2, {{{"app", "web"}}, "n3"}));
  EXPECT_EQ(view.find("shop", "web-2")->spec().node_name(), "n3") << "the newest version";
}

TEST_F(ListerTest, ReportsAbsentObjectsLikeClientGo) {
  try {
    pods_.ns("bank").get("db");
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_not_found(e));
    EXPECT_EQ(e.code(), 404);
    EXPECT_STREQ(e.what(), R"(pods "db" not found)");
    EXPECT_EQ(e.status().kind, "pods");
    EXPECT_EQ(e.status().name, "db");
  }
  const Lister<api::Object> deployments(store_, {"apps", "v1", "Deployment", "deployments", true});
  try {
    deployments.ns("shop").get("web");
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_STREQ(e.what(), R"(deployments.apps "web" not found)");
    EXPECT_EQ(e.status().group, "apps");
  }
}

TEST_F(ListerTest, FindsByIndex) {
  EXPECT_THAT(keys(pods_.by_index("node", "n1")),
              UnorderedElementsAre("shop/web-1", "shop/db", "bank/web-1", "bank/bare"));
  EXPECT_EQ(pods_.by_index("node", "n2").size(), 1u);
  EXPECT_TRUE(pods_.by_index("node", "n3").empty());
  EXPECT_THROW(pods_.by_index("colour", "red"), InvalidArgument);
}

TEST_F(ListerTest, ReadsClusterScopedObjects) {
  const auto store = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace}});
  store->put(test::object_of_kind("v1", "Node", "n1"));
  const Lister<Node> nodes(store, Node::kResource);
  EXPECT_EQ(nodes.get("n1").name(), "n1");
  EXPECT_FALSE(nodes.find("n2"));
  EXPECT_THROW(nodes.get("n2"), api::StatusError);
  EXPECT_THAT(keys(nodes.list()), ElementsAre("n1"));
}

TEST_F(ListerTest, EachCallReadsTheCurrentStore) {
  const auto before = pods_.list(parse("app=db"));
  const auto in_shop = pods_.ns("shop");
  store_->remove_key("shop/db");
  store_->put(pod("shop/db-2", 2, {{{"app", "db"}}, "n1"}));
  EXPECT_THAT(keys(before), ElementsAre("shop/db"));
  EXPECT_THAT(keys(pods_.list(parse("app=db"))), ElementsAre("shop/db-2"));
  EXPECT_FALSE(in_shop.find("db"));
  EXPECT_TRUE(in_shop.find("db-2"));
}

TEST_F(ListerTest, ARangeMayBeIteratedWhileTheStoreChanges) {
  std::size_t n = 0;
  for (const auto& p : pods_.list(parse("app=web"))) {
    store_->remove(p);
    ++n;
  }
  EXPECT_EQ(n, 3u);
  EXPECT_EQ(store_->size(), 2u);
}

TEST_F(ListerTest, KeepsItsStoreAlive) {
  auto store = std::make_shared<cache::Indexer>();
  store->put(pod("a/x"));
  const Lister<Pod> pods(store, Pod::kResource);
  store.reset();
  EXPECT_EQ(pods.list().size(), 1u);
}

}  // namespace
}  // namespace lookout::lister
