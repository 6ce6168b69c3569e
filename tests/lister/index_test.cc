#include "lookout/lister/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lister/lister.h"
#include "tests/support/objects.h"

namespace lookout::lister {
namespace {

using k8s::core::v1::Pod;
using test::keys;
using test::pod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class IndexTest : public testing::Test {
 protected:
  IndexTest() {
    store_->put(pod("shop/web-1", 1, {{{"app", "web"}}, "n1"}));
    store_->put(pod("shop/web-2", 1, {{{"app", "web"}}, "n2"}));
    store_->put(pod("shop/db", 1, {{}, "n1"}));
  }
  template <class F>
  Index<Pod> add(std::string name, F function) {
    store_->add_indexers({{name, informer::index_func<Pod>(std::move(function))}});
    return {store_, std::move(name)};
  }

  std::shared_ptr<cache::Indexer> store_ = std::make_shared<cache::Indexer>();
};

TEST_F(IndexTest, FindsTypedObjects) {
  const auto by_node = add("by-node", [](const Pod& p) { return p.spec().node_name(); });
  EXPECT_THAT(keys(by_node.get("n1")), UnorderedElementsAre("shop/web-1", "shop/db"));
  EXPECT_EQ(by_node.count("n1"), 2u);
  for (const Pod& p : by_node.get(std::string("n2"))) EXPECT_EQ(p.spec().node_name(), "n2");
  EXPECT_TRUE(by_node.get("n3").empty());
  EXPECT_THAT(by_node.values(), UnorderedElementsAre("n1", "n2"));
  EXPECT_THAT(by_node.values_of(Pod(pod("a/b", 1, {{}, "n9"}))), ElementsAre("n9"));
  EXPECT_EQ(by_node.name(), "by-node");
}

TEST_F(IndexTest, FollowsTheStore) {
  const auto by_node = add("by-node", [](const Pod& p) { return p.spec().node_name(); });
  const auto before = store_->snapshot();
  store_->put(pod("shop/db", 2, {{}, "n2"}));
  EXPECT_THAT(keys(by_node.get("n1")), ElementsAre("shop/web-1"));
  EXPECT_THAT(keys(by_node.get(before, "n1")), UnorderedElementsAre("shop/web-1", "shop/db"));
}

TEST_F(IndexTest, IndexesByNumbersAndOmitsObjects) {
  const auto by_length =
      add("by-length", [](const Pod& p) { return static_cast<int>(p.name().size()); });
  EXPECT_THAT(keys(by_length.get(2)), ElementsAre("shop/db"));
  EXPECT_THAT(keys(by_length.get(5)), UnorderedElementsAre("shop/web-1", "shop/web-2"));
  EXPECT_THAT(keys(by_length.get("5")), UnorderedElementsAre("shop/web-1", "shop/web-2"));
  const auto by_app = add("by-app", [](const Pod& p) -> std::optional<std::string> {
    if (!p.labels().contains("app")) return std::nullopt;
    return std::string(p.labels()["app"].as_string());
  });
  EXPECT_THAT(by_app.values(), ElementsAre("web"));
  const auto by_either = add("by-either", [](const Pod& p) {
    return std::vector<std::string>{p.key(), std::string(p.spec().node_name())};
  });
  EXPECT_THAT(keys(by_either.get("shop/db")), ElementsAre("shop/db"));
  EXPECT_EQ(by_either.count("n1"), 2u);
}

TEST_F(IndexTest, KeepsItsStoreAlive) {
  auto by_node = add("by-node", [](const Pod& p) { return p.spec().node_name(); });
  store_.reset();
  EXPECT_EQ(by_node.count("n1"), 2u);
}

TEST_F(IndexTest, IsFoundByNameOrThrows) {
  add("by-node", [](const Pod& p) { return p.spec().node_name(); });
  const Lister<Pod> pods(store_, Pod::kResource);
  EXPECT_EQ(pods.index("by-node").count("n1"), 2u);
  EXPECT_THROW(pods.index("by-nod"), InvalidArgument);
}

TEST_F(IndexTest, MayBeAssignedLater) {
  Index<Pod> by_node;
  EXPECT_FALSE(by_node);
  EXPECT_THROW(by_node.get("n1"), InvalidArgument);
  EXPECT_THROW(by_node.values(), InvalidArgument);
  EXPECT_THROW(by_node.values_of(Pod()), InvalidArgument);
  by_node = add("by-node", [](const Pod& p) { return p.spec().node_name(); });
  EXPECT_TRUE(by_node);
  EXPECT_EQ(by_node.count("n2"), 1u);
}

TEST_F(IndexTest, WorksOnAStoreWithoutInformer) {
  cache::Indexer store;
  const cache::IndexHandle by_node =
      store.add_index("by-node", [](const api::Object& object, cache::IndexValues& values) {
        values.add(object["spec"]["nodeName"].as_string());
      });
  store.put(pod("shop/db", 1, {{}, "n1"}));
  EXPECT_THAT(keys(by_node.get("n1")), ElementsAre("shop/db"));
  EXPECT_THAT(keys(by_node.get("n2")), IsEmpty());
  EXPECT_THAT(by_node.values(), ElementsAre("n1"));
  EXPECT_EQ(by_node.name(), "by-node");
  EXPECT_THROW(store.add_index("by-node", cache::index_by_namespace), InvalidArgument);
}

}  // namespace
}  // namespace lookout::lister
