#include "lookout/api/detail/object_editor.h"

#include <gtest/gtest.h>

#include "lookout/api/symbols.h"

namespace lookout::api {
namespace {

TEST(WithMetadata, SetsReplacesAndRemovesMembers) {
  const Object before = Object::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","resourceVersion":"1",
          "generation":3,"labels":{"app":"web"}},"spec":{"nodeName":"n1"},"unknown":[1,{"x":"y"}]})");
  const Object after = with_metadata(before, {{sym::kResourceVersion, std::string_view("42")},
                                              {sym::kUid, std::string_view("u-1")},
                                              {sym::kDeletionGracePeriodSeconds, std::int64_t{30}},
                                              {sym::kGeneration, std::monostate{}}});
  EXPECT_EQ(
      after,
      Object::parse(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"u-1",
          "resourceVersion":"42","deletionGracePeriodSeconds":30,"labels":{"app":"web"}},
          "spec":{"nodeName":"n1"},"unknown":[1,{"x":"y"}]})"));
  // The identity is that of the new object.
  EXPECT_EQ(after.resource_version(), "42");
  EXPECT_EQ(after.uid(), "u-1");
  EXPECT_EQ(after.key(), "shop/web");
  EXPECT_EQ(after.labels()["app"].as_string(), "web");
  EXPECT_EQ(before.resource_version(), "1");
}

TEST(WithMetadata, AddsMetadataIfAbsent) {
  EXPECT_EQ(with_metadata(Object::parse(R"({"kind":"Pod"})"),
                          {{sym::kResourceVersion, std::string_view("7")}}),
            Object::parse(R"({"kind":"Pod","metadata":{"resourceVersion":"7"}})"));
}

TEST(WithType, ReplacesOnlyTheType) {
  const Object before =
      Object::parse(R"({"kind":"A","apiVersion":"x/v1","metadata":{"name":"n"}})");
  EXPECT_EQ(with_type(before, "x/v2", "A"),
            Object::parse(R"({"kind":"A","apiVersion":"x/v2","metadata":{"name":"n"}})"));
  EXPECT_TRUE(with_type(before, "x/v1", "A").same(before));
}

TEST(PartialMetadata, KeepsTheMetadata) {
  EXPECT_EQ(partial_metadata(Object::parse(
                R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"},"spec":{}})")),
            Object::parse(R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
                              "metadata":{"name":"n"}})"));
}

}  // namespace
}  // namespace lookout::api
