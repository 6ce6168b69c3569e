#include "lookout/tools/cache/read_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <string>
#include <vector>

#include "lookout/api/detail/object_header.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/tools/cache/indexer.h"
#include "tests/support/objects.h"

namespace lookout::cache {
namespace {

using k8s::core::v1::Pod;
using test::pod;
using testing::ElementsAre;
using testing::IsEmpty;

std::uint32_t references(const api::Object& object) { return object.header()->references.load(); }

template <class List>
std::vector<std::string> keys(const List& list) {
  std::vector<std::string> out;
  for (const auto& object : list) out.push_back(object ? object.key() : "-");
  return out;
}

TEST(ReadViewTest, LendsObjectsWithoutReferenceCounting) {
  Indexer store;
  const api::Object web = pod("shop/web");
  store.put(web);
  const auto before = references(web);
  const ObjectName key{"shop", "web"};
  {
    const auto view = store.read();
    const auto one = view.get("shop", "web");
    const auto many = view.get_many({&key, 1});
    EXPECT_TRUE(one->same(web));
    EXPECT_TRUE(many[0].same(web));
    EXPECT_EQ(references(web), before);
  }
  EXPECT_EQ(references(web), before);
  const api::Object kept = *store.read().get("shop", "web");
  EXPECT_EQ(references(web), before + 1);
}

TEST(ReadViewTest, FindsManyInTheOrderOfTheirNames) {
  Indexer store;
  // More names than one batch of look-ups; every third is absent.
  std::list<std::string> names;
  std::vector<ObjectName> wanted;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string& name = names.emplace_back("web-" + std::to_string(i * 37 % 100));
    if (i % 3 != 0) store.put(pod("shop/" + name));
    wanted.push_back({"shop", name});
    expected.push_back(i % 3 != 0 ? "shop/" + name : "-");
  }
  wanted.push_back(wanted[1]);
  expected.push_back(expected[1]);
  const auto view = store.read();
  const auto found = view.get_many(wanted);
  EXPECT_EQ(found.size(), 101u);
  EXPECT_EQ(keys(found), expected);
  EXPECT_THAT(keys(view.get_many({})), IsEmpty());
}

TEST(ReadViewTest, FindsManyOfAnotherType) {
  Indexer store;
  store.put(pod("shop/web", 1, {{}, "node-7"}));
  store.put(test::object_of_kind("v1", "Node", "n1"));
  const std::vector<ObjectName> wanted{{"shop", "web"}, {"", "n1"}, {"bank", "web"}};
  const auto view = store.read();
  const auto found = view.get_many<Pod>(wanted);
  EXPECT_THAT(keys(found), ElementsAre("shop/web", "n1", "-"));
  EXPECT_EQ(found[0].spec().node_name(), "node-7");
  EXPECT_EQ(view.get<Pod>("shop", "web")->spec().node_name(), "node-7");
}

TEST(ReadViewTest, FindsNothingByNameUnderKeysOfAnotherKind) {
  Indexer store([](const api::Object& object) { return std::string(object.name()); }, {});
  store.put(pod("shop/web"));
  const ObjectName key{"shop", "web"};
  const auto view = store.read();
  EXPECT_FALSE(view.get("shop", "web"));
  EXPECT_THAT(keys(view.get_many({&key, 1})), ElementsAre("-"));
  EXPECT_TRUE(view.get_by_key("web"));
}

}  // namespace
}  // namespace lookout::cache
