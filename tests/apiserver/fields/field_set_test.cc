// Sets of fields, and their JSON form.
#include "apiserver/fields/field_set.h"

#include <gtest/gtest.h>

#include <string>

#include "apiserver/fields/fields_v1.h"
#include "tests/apiserver/fields/field_texts.h"

namespace lookout::apiserver::fields {
namespace {

std::optional<FieldSet> parsed(const std::string& text) {
  json::Document document;
  document.Parse(text.c_str());
  return parse_fields_v1(document);
}

FieldSet set(const std::string& text) { return parsed(text).value(); }

std::vector<PathElement> path(std::initializer_list<const char*> names) {
  std::vector<PathElement> out;
  for (const char* name : names) out.push_back(PathElement::field(name));
  return out;
}

TEST(FieldsV1, RoundTrips) {
  for (
      const char* fields : {
          R"({})",
          R"({"f:spec":{"f:replicas":{}}})",
          R"({"f:data":{"f:a":{},".":{}}})",
          R"({"f:l":{"k:{\"name\":\"c\"}":{"f:name":{},".":{}}}})",
          R"({"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:hostPort":{},".":{}}}})",
          R"({"f:set":{"v:\"blue\"":{},"v:7":{},"v:true":{}}})",
          R"({"f:list":{"i:3":{}}})",
          R"({"f:":{}})",
      })
    EXPECT_EQ(text(set(fields)), fields);
}

TEST(FieldsV1, NumbersAreUnchanged) {
  for (const char* fields : {R"({"f:set":{"v:123456789.12345679":{}}})",
                             R"({"f:l":{"k:{\"a\":2.225073858507201e-308}":{}}})"})
    EXPECT_EQ(text(set(fields)), fields);
}

TEST(FieldsV1, DotMarksAParentAsAMember) {
  const FieldSet fields = set(R"({"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}})");
  EXPECT_TRUE(fields.contains(path({"a"})));
  EXPECT_TRUE(fields.contains(path({"a", "b"})));
  EXPECT_FALSE(fields.contains(path({"c"})));
  EXPECT_TRUE(fields.contains(path({"c", "d"})));
  EXPECT_EQ(fields.size(), 3u);
}

TEST(FieldsV1, SpellingsOfOneKeyAreOneElement) {
  const FieldSet fields = set(
      R"({"k:{\"b\":1.0,\"a\":\"\\u0078\"}":{"f:one":{}},"k:{\"a\":\"x\",\"b\":1}":{"f:two":{}}})");
  ASSERT_EQ(fields.nodes().size(), 1u);
  EXPECT_EQ(fields.nodes()[0].element.text, R"({"a":"x","b":1})");
  EXPECT_EQ(fields.size(), 2u);
}

TEST(FieldsV1, IgnoresElementsOfUnknownKinds) {
  EXPECT_EQ(text(set(R"({"f:a":{},"x:what":{"f:b":{}}})")), R"({"f:a":{}})");
}

TEST(FieldsV1, RejectsInvalidSets) {
  for (const char* fields :
       {R"([])", R"({"f:a":1})", R"({"a":{}})", R"({"f":{}})", R"({"k:":{}})", R"({"k:{}":{}})",
        R"({"k:[1]":{}})", R"({"k:{\"a\":[1]}":{}})", R"({"v:{\"a\"":{}})", R"({"v:[1]":{}})",
        R"({"i:x":{}})", R"({"i:-1":{}})", R"({"i:99999999999":{}})"})
    EXPECT_FALSE(parsed(fields)) << fields;
}

TEST(FieldsV1, IsCanonical) {
  for (const char* fields : {"{}", R"({"f:a":{},"f:b":{"f:c":{},".":{}}})",
                             R"({"k:{\"a\":\"x\",\"b\":1}":{"f:two":{}},"v:1":{},"i:3":{}})"})
    EXPECT_TRUE(is_written_fields_v1(value(fields))) << fields;
  for (const char* fields :
       {R"({".":{},"f:a":{}})", R"({"f:a":{".":{}}})", R"({"f:a":{".":{"f:b":{}},"f:c":{}}})",
        R"({"f:a":{},"x:what":{}})", R"({"k:{\"b\":1,\"a\":\"x\"}":{}})", R"({"v:1.0":{}})",
        R"({"f:a":1})", R"([])", R"({"a":{}})"})
    EXPECT_FALSE(is_written_fields_v1(value(fields))) << fields;
}

TEST(FieldsV1, HasAllOrNoneOfASet) {
  const auto fields = value(R"({"f:a":{},"f:b":{"f:c":{},"f:d":{"f:e":{},".":{}}}})");
  for (const char* all : {"{}", R"({"f:a":{}})", R"({"f:b":{"f:c":{},"f:d":{}}})",
                          R"({"f:b":{"f:d":{"f:e":{},".":{}}}})"})
    EXPECT_TRUE(has_all(fields, set(all))) << all;
  for (const char* none :
       {"{}", R"({"f:b":{}})", R"({"f:a":{"f:b":{}}})", R"({"f:c":{},"f:b":{"f:f":{}}})"})
    EXPECT_TRUE(has_none(fields, set(none))) << none;
  for (const char* some : {R"({"f:a":{},"f:b":{"f:f":{}}})", R"({"f:b":{"f:c":{},".":{}}})",
                           R"({"f:c":{},"f:b":{"f:d":{"f:e":{}}}})"}) {
    EXPECT_FALSE(has_all(fields, set(some))) << some;
    EXPECT_FALSE(has_none(fields, set(some))) << some;
  }
}

TEST(FieldsV1, RejectsDeepNesting) {
  std::string deep;
  for (int i = 0; i <= kMaxFieldDepth; ++i) deep += R"({"f:a":)";
  deep += "{}";
  for (int i = 0; i <= kMaxFieldDepth; ++i) deep += "}";
  EXPECT_FALSE(parsed(deep));
}

TEST(FieldSets, AreUnited) {
  EXPECT_EQ(text(set(R"({"f:a":{"f:b":{}},"f:c":{}})").united(set(R"({"f:a":{},"f:d":{}})"))),
            R"({"f:a":{"f:b":{},".":{}},"f:c":{},"f:d":{}})");
}

TEST(FieldSets, HaveAnIntersection) {
  EXPECT_EQ(text(set(R"({"f:a":{".":{},"f:b":{}},"f:c":{}})")
                     .intersected(set(R"({"f:a":{"f:b":{},"f:x":{}},"f:c":{"f:d":{}}})"))),
            R"({"f:a":{"f:b":{}}})");
}

TEST(FieldSets, DifferenceKeepsChildren) {
  const FieldSet fields = set(R"({"f:a":{".":{},"f:b":{}},"f:c":{}})");
  EXPECT_EQ(text(fields.without(set(R"({"f:a":{},"f:c":{}})"))), R"({"f:a":{"f:b":{}}})");
  EXPECT_EQ(text(fields.without(set(R"({"f:a":{"f:b":{}}})"))), R"({"f:a":{},"f:c":{}})");
  EXPECT_TRUE(fields.without(fields).empty());
}

TEST(FieldSets, RecursiveDifferenceRemovesChildren) {
  const FieldSet fields = set(R"({"f:a":{"f:b":{},"f:x":{"f:y":{}}},"f:c":{}})");
  EXPECT_EQ(text(fields.without_below(set(R"({"f:a":{}})"))), R"({"f:c":{}})");
  EXPECT_EQ(text(fields.without_below(set(R"({"f:a":{"f:x":{}}})"))),
            R"({"f:a":{"f:b":{}},"f:c":{}})");
}

TEST(FieldSets, AreBuiltFromPaths) {
  FieldSet fields;
  fields.insert(path({"b", "c"}));
  fields.insert(path({"a"}));
  fields.insert(path({"b"}));
  fields.insert({});
  EXPECT_EQ(text(fields), R"({"f:a":{},"f:b":{"f:c":{},".":{}}})");
}

TEST(FieldSets, FormatPaths) {
  const FieldSet fields = set(R"({"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{}},)"
                              R"("k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}},)"
                              R"("f:set":{"v:\"a\\\"b\"":{}},"f:list":{"i:3":{}},"f:a":{}})");
  EXPECT_EQ(fields.paths(), (std::vector<std::string>{
                                ".a", ".list[3]", R"(.ports[port=80,protocol="TCP"])",
                                R"(.ports[port=443,protocol="TCP"])",
                                R"(.ports[port=80,protocol="TCP"].name)", R"(.set[="a\"b"])"}));
}

}  // namespace
}  // namespace lookout::apiserver::fields
