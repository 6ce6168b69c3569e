#include "lookout/api/object.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

namespace lookout::api {
namespace {

TEST(ObjectTest, AnEmptyHandleReadsAsNothing) {
  const Object object;
  EXPECT_FALSE(object);
  EXPECT_EQ(object.name(), "");
  EXPECT_EQ(object.key(), "");
  EXPECT_FALSE(object["spec"]["containers"][0].exists());
}

TEST(ObjectTest, IdentityIsReadFromMetadata) {
  const Object object = Object::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}})");
  EXPECT_EQ(object.name(), "a");
  EXPECT_EQ(object.ns(), "b");
  EXPECT_EQ(object.uid(), "u");
  EXPECT_EQ(object.resource_version(), "7");
  EXPECT_EQ(object.key(), "b/a");
  EXPECT_EQ(object.gvk(), (GroupVersionKind{"", "v1", "Pod"}));
}

}  // namespace
}  // namespace lookout::api
