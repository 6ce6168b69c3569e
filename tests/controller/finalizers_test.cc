#include "lookout/controller/finalizers.h"

#include <gtest/gtest.h>

#include "lookout/k8s/core/v1_draft.h"

namespace lookout::controller {
namespace {

TEST(FinalizersTest, AreAddedAndRemovedOnce) {
  const auto map = k8s::core::v1::ConfigMap::draft("m", "b");
  EXPECT_TRUE(add_finalizer(map, "example.com/a"));
  EXPECT_FALSE(add_finalizer(map, "example.com/a"));
  EXPECT_TRUE(add_finalizer(map, "example.com/b"));
  EXPECT_TRUE(has_finalizer(map.build(), "example.com/a"));
  EXPECT_TRUE(remove_finalizer(map, "example.com/a"));
  EXPECT_FALSE(remove_finalizer(map, "example.com/a"));
  EXPECT_FALSE(has_finalizer(map.build(), "example.com/a"));
  EXPECT_TRUE(has_finalizer(map.build(), "example.com/b"));
}

TEST(FinalizersTest, ADeletionTimestampMeansDeleted) {
  EXPECT_FALSE(is_being_deleted(api::Object::parse(R"({"metadata":{"name":"a"}})")));
  EXPECT_FALSE(is_being_deleted(
      api::Object::parse(R"({"metadata":{"name":"a","deletionTimestamp":null}})")));
  EXPECT_TRUE(is_being_deleted(
      api::Object::parse(R"({"metadata":{"deletionTimestamp":"2026-11-20T11:14:57Z"}})")));
}

}  // namespace
}  // namespace lookout::controller
