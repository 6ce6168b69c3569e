// Field sets of managed fields have a special form in objects, which readers must not notice.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/symbol.h"
#include "tests/api/recordings.h"
#include "tests/support/held.h"

namespace lookout::api {
namespace {

using lookout::test::held;

bool is_set(Value value) { return detail::is_field_set(value.data()); }

std::string nested(int levels) {
  std::string out = "{}";
  for (int i = 0; i < levels; ++i) out = R"({"f:a":)" + out + "}";
  return out;
}

const std::vector<std::string>& sets() {
  static const std::vector<std::string> kSets = {
      R"({".":{}})",
      R"({"f:metadata":{}})",
      R"({"f:":{}})",
      R"({"f:.":{}})",
      R"({"f:unheard-of":{}})",
      R"({".":{},"f:name":{},"f:unheard-of":{},"i:3":{},"k:{\"type\":\"Ready\"}":{},"v:\"a\"":{}})",
      R"({"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{}}},"f:phase":{}}})",
      R"({"k:{\"name\":\"web\"}":{".":{},"f:image":{}},"k:{\"name\":\"web-2\"}":{".":{}}})",
      R"({"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}})",
      R"({"f:a":{"f:b":{}},"f:c":{"f:d":{"f:e":{}}}})",
      R"({"f:)" + std::string(200, 'x') + R"(":{"f:)" + std::string(20000, 'y') + R"(":{}}})",
      R"({"f:\u00e4":{},"f:caf\u00e9":{"f:a":{}}})",
      nested(40),
      nested(900),
  };
  return kSets;
}

const std::vector<std::string>& others() {
  static const std::vector<std::string> kOthers = {
      R"({})",
      R"({"f":{}})",
      R"({"f-a":{}})",
      R"({"x:a":{}})",
      R"({"..":{}})",
      R"({"":{}})",
      R"({"f:a":1})",
      R"({"f:a":null})",
      R"({"f:a":[]})",
      R"({"f:a":[{"f:b":{}}]})",
      R"({"f:a":{},"name":{}})",
      R"({"f:a":{"f:b":{}},"f:c":"text"})",
      R"({"f:a":{"f:b":{"name":{}}}})",
      R"({"f:a":{"f:b":{},"f:c":false}})",
  };
  return kOthers;
}

/// JSON objects with a value in every possible place.
std::vector<std::string> places(const std::string& value) {
  return {R"({"metadata":{"managedFields":[{"fieldsType":"FieldsV1","fieldsV1":)" + value +
              R"(,"manager":"m"}]}})",
          R"({"fieldsV1":)" + value + "}", R"({"a":)" + value + R"(,"spec":{"b":)" + value + "}}",
          R"({"a":[)" + value + "," + value + "]}", value};
}

/// The object, created in all ways.
std::vector<Object> by_every_way(const std::string& json) {
  const Object object = Object::parse(json);
  std::vector<Object> out{object, Object::parse(object.to_json()),
                          Object::parse(object.to_pretty_json()),
                          Object::from(object.to_document()), with_metadata(object, {})};
  JsonDecoder decoder;
  for (int i = 0; i < 4; ++i) {
    std::string text = json;
    out.push_back(decoder.decode(text));
  }
  std::string event = R"({"type":"ADDED","object":)" + json + "}";
  out.push_back(JsonDecoder().decode_event(event)->object);
  if (!object["metadata"].exists()) out[4] = object;  // metadata was created
  return out;
}

void expect_readable(Value value) {
  std::size_t n = 0;
  for (const auto& [name, member] : value.members()) {
    EXPECT_EQ(value[name], member) << name;
    EXPECT_EQ(value[name].data(), member.data()) << name;
    if (const auto symbol = Symbol::find(name)) {
      EXPECT_EQ(value[*symbol], member) << name;
    }
    EXPECT_EQ(Value(detail::find_member(value.data(), detail::encode_whole_key(name))), member);
    if (!is_set(member)) expect_readable(member);
    ++n;
  }
  for (const Value element : value.elements()) expect_readable(element);
  EXPECT_EQ(value.size(), n + static_cast<std::size_t>(
                                  std::distance(value.elements().begin(), value.elements().end())));
  EXPECT_FALSE(value["f:absent"].exists());
  EXPECT_FALSE(value["absent"].exists());
  EXPECT_FALSE(value[0].exists() && value.is_object());
}

TEST(FieldSetTest, IsEqualHoweverItIsCreated) {
  for (const auto* texts : {&sets(), &others()}) {
    for (const auto& text : *texts) {
      for (const auto& json : places(text)) {
        SCOPED_TRACE(json.substr(0, 300));
        const Object object = Object::parse(json);
        EXPECT_EQ(test::parse_json(object.to_json()), test::parse_json(json));
        for (const Object& other : by_every_way(json)) EXPECT_EQ(other, object);
        expect_readable(object.body());
      }
    }
  }
}

TEST(FieldSetTest, IsRecognisedByItsContent) {
  for (const auto& text : sets())
    EXPECT_TRUE(is_set(held(Object::parse(text)).body())) << text.substr(0, 300);
  for (const auto& text : others()) EXPECT_FALSE(is_set(held(Object::parse(text)).body())) << text;
}

TEST(FieldSetTest, ReadsAsAnObject) {
  const Object object = Object::parse(
      R"({"a":{".":{},"f:spec":{"f:nodeName":{}},"k:{\"name\":\"web\"}":{"f:image":{}}}})");
  const Value set = object["a"];
  EXPECT_EQ(set.kind(), Value::Kind::kObject);
  EXPECT_FALSE(set.empty());
  EXPECT_EQ(set.size(), 3u);
  EXPECT_TRUE(set["."].is_object());
  EXPECT_TRUE(set["."].empty());
  EXPECT_TRUE(set["f:spec"]["f:nodeName"].is_object());
  EXPECT_TRUE(set[R"(k:{"name":"web"})"].contains("f:image"));
  EXPECT_FALSE(set.contains("spec"));
  EXPECT_EQ(set["."], held(Object::parse(R"({"x":{}})"))["x"]);
  std::vector<std::string> names;
  for (const auto& member : set.members()) names.emplace_back(member.name);
  EXPECT_EQ(names, (std::vector<std::string>{".", "f:spec", R"(k:{"name":"web"})"}));
  EXPECT_EQ(set.to_json(),
            R"({".":{},"f:spec":{"f:nodeName":{}},"k:{\"name\":\"web\"}":{"f:image":{}}})");
}

TEST(FieldSetTest, TheOrderOfMembersDoesNotMatter) {
  const std::string sorted =
      R"({"a":{".":{},"f:image":{},"f:name":{"f:b":{},"f:c":{}},"f:ports":{}}})";
  for (
      const auto* text :
      {R"({"a":{"f:ports":{},"f:name":{"f:c":{},"f:b":{}},"f:image":{},".":{}}})",
       R"({"a":{".":{},"f:name":{"f:b":{},"f:c":{}},"f:image":{},"f:ports":{}}})",
       R"({"a":{".":{},"f:image":{"f:x":{}},"f:image":{},"f:name":{"f:b":{},"f:c":{}},"f:ports":{}}})",
       R"({"fieldsV1":1,"a":{".":{},"f:image":{},"f:name":{"f:b":{},"f:c":{}},"f:ports":{}}})"}) {
    EXPECT_EQ(held(Object::parse(text))["a"], held(Object::parse(sorted))["a"]) << text;
  }
}

// Most elements of real field sets take one byte.
TEST(FieldSetTest, IsSmall) {
  const auto size = [](const std::string& set) {
    return Object::parse(R"({"a":{"fieldsV1":)" + set + "}}").memory_size() -
           Object::parse(R"({"a":{"fieldsV1":{}}})").memory_size();
  };
  EXPECT_EQ(size(R"({".":{},"f:image":{},"f:name":{},"f:ports":{}})"), 4u);
  EXPECT_EQ(size(R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}}})"), 6u);
}

TEST(FieldSetTest, EveryNameRoundTrips) {
  std::mt19937 random(7);
  for (const auto& text : test::all_recorded_items()) {
    const Object object = Object::parse(text);
    for (const auto& [name, value] : object.body().members()) {
      for (const std::string& set_name : {"f:" + std::string(name), "k:" + std::string(name)}) {
        std::string json = "{\"" + set_name + "\":{\"f:x\":{}}}";
        const Object set = Object::parse(json);
        ASSERT_TRUE(is_set(set.body()));
        EXPECT_EQ(set.to_json(), json);
      }
    }
  }
  for (int i = 0; i < 2000; ++i) {
    std::string name = "f:";
    for (std::size_t n = random() % 40; n > 0; --n)
      name += static_cast<char>('#' + random() % 56);  // neither quote nor backslash
    const std::string json = "{\"" + name + "\":{}}";
    EXPECT_EQ(Object::parse(json).to_json(), json);
  }
}

}  // namespace
}  // namespace lookout::api
