#include "lookout/tools/cache/reflector_store.h"

#include <gtest/gtest.h>

#include "lookout/api/error.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

using api::EventType;
using test::pod;
using test::ReflectorTest;

TEST_F(ReflectorTest, FillsAnIndexerWithoutAnInformer) {
  Indexer store({{std::string(kNamespaceIndex), index_by_namespace}});
  IndexerStore target(store);
  start(target);
  const auto same = pod("a/same", 1);
  list({{same, pod("a/x", 1)}, "10"});
  EXPECT_EQ(store.by_index(kNamespaceIndex, "a").size(), 2u);
  EXPECT_EQ(store.resource_version(), "10");
  open_watch();
  const auto before = store.snapshot().version();
  send({{EventType::kAdded, pod("b/y", 11)},
        {EventType::kModified, pod("a/x", 12)},
        {EventType::kDeleted, pod("b/y", 13)}});
  EXPECT_EQ(store.snapshot().version(), before + 1) << "what comes together is one version";
  EXPECT_EQ(store.get("a", "x").resource_version(), "12");
  EXPECT_FALSE(store.get("b", "y"));
  EXPECT_EQ(store.resource_version(), "13");
  bookmark("20");
  EXPECT_EQ(store.resource_version(), "20");
  fail_watch(api::StatusError::expired("too old"));
  back_off();
  list({{pod("a/same", 1)}, "30"});
  EXPECT_EQ(store.size(), 1u);
  EXPECT_TRUE(store.get("a", "same").same(same));
}

class UndeltaStoreTest : public testing::Test {
 protected:
  std::vector<std::vector<std::string>> pushed() { return std::exchange(pushed_, {}); }

  std::vector<std::vector<std::string>> pushed_;
  UndeltaStore store_{[this](const Snapshot& now) {
    std::vector<std::string> all;
    for (const auto& object : now) all.push_back(test::text(object));
    std::sort(all.begin(), all.end());
    pushed_.push_back(std::move(all));
  }};
};

TEST_F(UndeltaStoreTest, AnAdditionOrUpdatePushesAllObjects) {
  store_.add(pod("a/x", 1));
  EXPECT_THAT(pushed(), ElementsAre(ElementsAre("a/x@1")));
  store_.add(pod("a/y", 2));
  EXPECT_THAT(pushed(), ElementsAre(ElementsAre("a/x@1", "a/y@2")));
  store_.update(pod("a/x", 3));
  EXPECT_THAT(pushed(), ElementsAre(ElementsAre("a/x@3", "a/y@2")));
}

TEST_F(UndeltaStoreTest, ADeletionPushesAllObjects) {
  store_.add(pod("a/x", 1));
  pushed();
  store_.remove(pod("a/x", 2));
  EXPECT_THAT(pushed(), ElementsAre(IsEmpty()));
}

TEST_F(UndeltaStoreTest, AListPushesAllObjects) {
  store_.add(pod("a/gone", 1));
  pushed();
  store_.replace({pod("a/x", 1), pod("a/y", 2)}, "5");
  EXPECT_THAT(pushed(), ElementsAre(ElementsAre("a/x@1", "a/y@2")));
  EXPECT_EQ(store_.store().resource_version(), "5");
}

TEST_F(UndeltaStoreTest, ReadingPushesNothing) {
  store_.add(pod("a/x", 1));
  pushed();
  EXPECT_EQ(store_.store().list().size(), 1u);
  EXPECT_TRUE(store_.store().get("a", "x"));
  EXPECT_TRUE(store_.store().get_by_key("a/x"));
  EXPECT_EQ(store_.store().list_keys().size(), 1u);
  store_.resync();
  EXPECT_THAT(pushed(), IsEmpty());
}

TEST_F(UndeltaStoreTest, AFailedChangePushesNothing) {
  EXPECT_THROW(store_.add(pod("a/", 1)), InvalidArgument);
  EXPECT_THAT(pushed(), IsEmpty());
}

}  // namespace
}  // namespace lookout::cache
