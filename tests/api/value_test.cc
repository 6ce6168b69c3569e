#include "lookout/api/value.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/field_path.h"
#include "lookout/api/object.h"
#include "lookout/api/symbols.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

const Object& sample() {
  static const Object object = Object::parse(
      R"({"metadata":{"name":"n","labels":{"app.kubernetes.io/name":"web","":"empty"}},)"
      R"("spec":{"containers":[{"name":"a","image":"i"},{"name":"b"}],"nodeName":"node","own field":true},)"
      R"("n":null,"t":true,"f":false,"i":-5,"d":2.5,"s":"text","e":{},"l":[],"f:name":{"f:own":1}})");
  return object;
}

TEST(ValueTest, HasAKind) {
  using Kind = Value::Kind;
  const struct {
    const char* name;
    Kind kind;
  } cases[] = {{"none", Kind::kAbsent}, {"n", Kind::kNull},   {"t", Kind::kBool},
               {"f", Kind::kBool},      {"i", Kind::kNumber}, {"d", Kind::kNumber},
               {"s", Kind::kString},    {"e", Kind::kObject}, {"spec", Kind::kObject},
               {"l", Kind::kArray}};
  for (const auto& [name, kind] : cases) {
    const Value value = sample()[name];
    EXPECT_EQ(value.kind(), kind) << name;
    EXPECT_EQ(value.exists(), kind != Kind::kAbsent);
    EXPECT_EQ(value.is_null(), kind == Kind::kNull);
    EXPECT_EQ(value.is_bool(), kind == Kind::kBool);
    EXPECT_EQ(value.is_number(), kind == Kind::kNumber);
    EXPECT_EQ(value.is_string(), kind == Kind::kString);
    EXPECT_EQ(value.is_object(), kind == Kind::kObject);
    EXPECT_EQ(value.is_array(), kind == Kind::kArray);
  }
}

TEST(ValueTest, ReadsOnlyAsItsOwnKind) {
  EXPECT_EQ(sample()["s"].to_string_view(), "text");
  EXPECT_EQ(sample()["i"].to_int(), -5);
  EXPECT_EQ(sample()["i"].to_uint(), std::nullopt);
  EXPECT_EQ(sample()["i"].to_double(), -5.0);
  EXPECT_EQ(sample()["d"].to_double(), 2.5);
  EXPECT_EQ(sample()["d"].to_int(), std::nullopt);
  EXPECT_EQ(sample()["t"].to_bool(), true);
  EXPECT_EQ(sample()["f"].to_bool(), false);
  for (const char* name : {"none", "n", "e", "l"}) {
    const Value value = sample()[name];
    EXPECT_EQ(value.to_string_view(), std::nullopt);
    EXPECT_EQ(value.to_bool(), std::nullopt);
    EXPECT_EQ(value.to_int(), std::nullopt);
    EXPECT_EQ(value.to_uint(), std::nullopt);
    EXPECT_EQ(value.to_double(), std::nullopt);
    EXPECT_EQ(value.as_string("x"), "x");
    EXPECT_TRUE(value.as_bool(true));
    EXPECT_EQ(value.as_int(7), 7);
    EXPECT_EQ(value.as_double(7.5), 7.5);
  }
  EXPECT_EQ(sample()["i"].as_string("x"), "x");
  EXPECT_EQ(sample()["s"].as_int(7), 7);
}

TEST(ValueTest, FindsMembersAndElements) {
  const Value spec = sample()["spec"];
  EXPECT_EQ(spec["containers"][1]["name"].as_string(), "b");
  EXPECT_EQ(spec[sym::kContainers][0][sym::kImage].as_string(), "i");
  EXPECT_FALSE(spec["containers"][2].exists());
  EXPECT_FALSE(spec["containers"][-1].exists());
  EXPECT_FALSE(spec["containers"]["name"].exists());
  EXPECT_FALSE(spec[0].exists());
  EXPECT_FALSE(spec["nodeName"]["x"].exists());
  EXPECT_FALSE(spec["node"].exists());
  EXPECT_FALSE(spec[sym::kImage].exists());
  EXPECT_TRUE(spec["own field"].as_bool());
  EXPECT_EQ(sample()["metadata"]["labels"][""].as_string(), "empty");
  EXPECT_EQ(sample()["f:name"]["f:own"].as_int(), 1);
  EXPECT_FALSE(sample()["name"].exists());
  EXPECT_TRUE(spec.contains("nodeName"));
  EXPECT_FALSE(spec.contains("f:nodeName"));
}

TEST(ValueTest, FollowsPaths) {
  const lookout::test::TextCase cases[] = {
      {".spec.containers[0].image", "\"i\""},
      {"spec.containers[1].name", "\"b\""},
      {"metadata.labels['app.kubernetes.io/name']", "\"web\""},
      {"metadata.labels[\"\"]", "\"empty\""},
      {"['metadata']['name']", "\"n\""},
      {"spec['own field']", "true"},
      {"spec.containers[7].name", "null"},
      {"spec.containers[*].name", "null"},
      {"spec.containers.name", "null"},
      {"spec[0]", "null"},
  };
  for (const auto& [path, json] : cases) {
    EXPECT_EQ(sample().at(path).to_json(), json) << path;
    EXPECT_EQ(sample().at(FieldPath(path)).to_json(), json) << path;
  }
  EXPECT_EQ(sample().at(""), sample().body());
  EXPECT_THROW(sample().at("a..b"), InvalidArgument);
}

TEST(ValueTest, SchemaFieldsComeFirstThenNamesInOrder) {
  std::vector<std::string> names;
  const Object object = Object::parse(
      R"({"zz":1,"aa":2,"f:spec":3,"status":4,"spec":5,"metadata":6,"apiVersion":"v1","kind":"K","":7})");
  for (const auto& [name, value] : object.body().members()) names.emplace_back(name);
  EXPECT_THAT(names, ElementsAre("kind", "apiVersion", "metadata", "spec", "status", "", "aa",
                                 "f:spec", "zz"));
}

TEST(ValueTest, RangesCountAndEnd) {
  EXPECT_EQ(sample()["spec"].size(), 3u);
  EXPECT_EQ(sample()["spec"]["containers"].size(), 2u);
  for (const char* name : {"none", "n", "t", "i", "s", "e", "l"}) {
    EXPECT_EQ(sample()[name].size(), 0u) << name;
    EXPECT_TRUE(sample()[name].empty());
    EXPECT_TRUE(sample()[name].members().empty());
    EXPECT_TRUE(sample()[name].elements().empty());
  }
  std::vector<std::string> names;
  for (const Value container : sample()["spec"]["containers"].elements())
    names.emplace_back(container["name"].as_string());
  EXPECT_THAT(names, ElementsAre("a", "b"));
  const auto members = sample()["metadata"].members();
  auto it = members.begin();
  EXPECT_EQ((*it++).name, "name");
  EXPECT_EQ((*it).name, "labels");
  EXPECT_EQ(++it, members.end());
}

TEST(ValueTest, EqualityComparesKindAndContent) {
  const Object object = Object::parse(
      R"({"a":{"x":[1,2]},"b":{"x":[1,2]},"c":{"x":[1,2.0]},"d":null,"e":0,"f":false,"g":"","h":[],"i":{}})");
  EXPECT_EQ(object["a"], object["b"]);
  EXPECT_NE(object["a"], object["c"]);
  EXPECT_EQ(Value(), Value());
  EXPECT_EQ(object["none"], Value());
  const char* different[] = {"none", "d", "e", "f", "g", "h", "i"};
  for (const char* one : different) {
    for (const char* two : different) EXPECT_EQ(object[one] == object[two], one == two);
  }
}

TEST(ValueTest, PrintsJson) {
  EXPECT_EQ(Value().to_json(), "null");
  EXPECT_EQ(sample()["spec"]["containers"].to_json(), R"([{"name":"a","image":"i"},{"name":"b"}])");
  EXPECT_EQ(lookout::test::held(Object::parse(R"({"a":"\u0000\u001f\"\\\/é"})"))["a"].to_json(),
            R"("\u0000\u001F\"\\/é")");
}

}  // namespace
}  // namespace lookout::api
