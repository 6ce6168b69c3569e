#include "lookout/tools/cache/key.h"

#include <gtest/gtest.h>

#include "lookout/api/error.h"
#include "lookout/tools/cache/index.h"
#include "tests/support/objects.h"

namespace lookout::cache {
namespace {

using test::pod;

TEST(KeyTest, IsNamespaceAndName) {
  EXPECT_EQ(meta_namespace_key(pod("shop/web")), "shop/web");
  EXPECT_EQ(meta_namespace_key(pod("node-1")), "node-1");
}

TEST(KeyTest, AnObjectWithoutANameHasNone) {
  EXPECT_THROW(meta_namespace_key(pod("shop/")), InvalidArgument);
  EXPECT_THROW(meta_namespace_key({}), InvalidArgument);
}

TEST(KeyTest, SplitsIntoItsParts) {
  EXPECT_EQ(split_meta_namespace_key("shop/web"), (ObjectName{"shop", "web"}));
  EXPECT_EQ(split_meta_namespace_key("node-1"), (ObjectName{"", "node-1"}));
  EXPECT_EQ(split_meta_namespace_key(""), (ObjectName{"", ""}));
  EXPECT_EQ(split_meta_namespace_key("shop/"), (ObjectName{"shop", ""}));
  EXPECT_THROW(split_meta_namespace_key("a/b/c"), InvalidArgument);
}

TEST(IndexValuesTest, HoldsTheValuesOfOneObjectAtATime) {
  IndexValues values;
  values.add("one");
  values.add("two");
  EXPECT_EQ(values.values().size(), 2u);
  values.clear();
  EXPECT_TRUE(values.values().empty());
  values.add("three");
  ASSERT_EQ(values.values().size(), 1u);
  EXPECT_EQ(values.values()[0], "three");
}

}  // namespace
}  // namespace lookout::cache
