// Fields of typed values: listing, comparing, merging and removing.
#include "apiserver/fields/typed_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "apiserver/fields/fields_v1.h"
#include "lookout/api/object.h"
#include "tests/apiserver/fields/field_texts.h"

namespace lookout::apiserver::fields {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string sorted(const json::Value& value) { return api::Object::from(value).to_json(); }

FieldSchema deployment() {
  return FieldSchema::of(*api::detail::Type::of_kind("apps", "v1", "Deployment"));
}
FieldSchema pod() { return FieldSchema::of(*api::detail::Type::of_kind("", "v1", "Pod")); }

/// A structural schema with every kind of list and map.
class CustomSchema : public testing::Test {
 protected:
  const api::Object schema_ = api::Object::parse(R"({"type":"object","properties":{
      "spec":{"type":"object","properties":{
        "size":{"type":"integer"},
        "box":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"w":{"type":"integer"}}},
        "colours":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
        "steps":{"type":"array","items":{"type":"string"}},
        "labels":{"type":"object","additionalProperties":{"type":"string"}},
        "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
        "any":{"x-kubernetes-preserve-unknown-fields":true},
        "port":{"x-kubernetes-int-or-string":true},
        "parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","kind"],
          "items":{"type":"object","properties":{"name":{"type":"string"},
            "kind":{"type":"string","default":"bolt"},"count":{"type":"integer"}}}}}}}})");
  const FieldSchema type_ = FieldSchema::of_custom_resource(schema_.body());

  std::string fields(const std::string& spec) const {
    return text(field_set(value(R"({"spec":)" + spec + "}"), type_));
  }
  std::string merged(const std::string& live, const std::string& config) const {
    json::Document out;
    static_cast<json::Value&>(out) =
        merge(value(R"({"spec":)" + live + "}"), value(R"({"spec":)" + config + "}"), type_,
              out.GetAllocator());
    return sorted(out);
  }
};

TEST_F(CustomSchema, ListsFields) {
  EXPECT_EQ(fields(R"({"size":1})"), R"({"f:spec":{"f:size":{}}})");
  EXPECT_EQ(fields(R"({"box":{"w":1}})"), R"({"f:spec":{"f:box":{}}})");
  EXPECT_EQ(fields(R"({"colours":["red","blue"]})"),
            R"({"f:spec":{"f:colours":{"v:\"blue\"":{},"v:\"red\"":{}}}})");
  EXPECT_EQ(fields(R"({"steps":["a"]})"), R"({"f:spec":{"f:steps":{}}})");
  EXPECT_EQ(fields(R"({"labels":{"a":"1"}})"), R"({"f:spec":{"f:labels":{"f:a":{}}}})");
  EXPECT_EQ(fields(R"({"free":{"x":{"y":[1]}}})"),
            R"({"f:spec":{"f:free":{"f:x":{"f:y":{},".":{}}}}})");
  EXPECT_EQ(fields(R"({"any":{"x":1},"port":"http"})"),
            R"({"f:spec":{"f:any":{"f:x":{}},"f:port":{}}})");
  EXPECT_EQ(fields(R"({"labels":{},"box":null})"), R"({"f:spec":{"f:box":{},"f:labels":{}}})");
  EXPECT_EQ(fields(R"({"colours":[]})"), "{}");
}

TEST_F(CustomSchema, FindsElementsByDefaultedKeys) {
  EXPECT_EQ(
      fields(R"({"parts":[{"name":"p","count":1},{"kind":"nut"}]})"),
      R"({"f:spec":{"f:parts":{"k:{\"kind\":\"bolt\",\"name\":\"p\"}":{"f:count":{},"f:name":{},".":{}},)"
      R"("k:{\"kind\":\"nut\"}":{"f:kind":{},".":{}}}}})");
}

TEST_F(CustomSchema, OwnsRepeatedElementsTogether) {
  EXPECT_EQ(fields(R"({"parts":[{"name":"p","count":1},{"name":"p","count":2}]})"),
            R"({"f:spec":{"f:parts":{"k:{\"kind\":\"bolt\",\"name\":\"p\"}":{}}}})");
}

TEST_F(CustomSchema, ChecksValues) {
  const auto problems = [&](const std::string& spec) {
    return check(
        value(R"({"apiVersion":"e/v1","kind":"K","metadata":{"name":"n"},"spec":)" + spec + "}"),
        type_);
  };
  EXPECT_THAT(problems(R"({"size":null,"free":{"a":[{}]},"any":3,"port":1})"), IsEmpty());
  // Validation refuses these.
  EXPECT_THAT(problems(R"({"port":{"a":1}})"), IsEmpty());
  EXPECT_THAT(problems(R"({"port":[1]})"), IsEmpty());
  EXPECT_THAT(problems(R"({"nonsense":1})"),
              ElementsAre(".spec.nonsense: field not declared in schema"));
  EXPECT_THAT(problems(R"({"size":"x"})"),
              ElementsAre(".spec.size: expected numeric (int or float), got string"));
  EXPECT_THAT(problems(R"({"colours":["red","red"]})"),
              ElementsAre(R"(.spec.colours: duplicate entries for key [="red"])"));
  EXPECT_THAT(problems(R"({"colours":[{}]})"),
              ElementsAre(".spec.colours: element 0: associative list without keys has an element "
                          "that's a map type"));
  EXPECT_THAT(problems(R"({"parts":[null]})"),
              ElementsAre(".spec.parts: element 0: associative list with keys may not have a null "
                          "element"));
  EXPECT_THAT(problems(R"({"steps":{"a":1}})"),
              ElementsAre(".spec.steps: expected list, got &{map[a:1]}"));
  EXPECT_THAT(problems(R"({"labels":["a"]})"),
              ElementsAre(".spec.labels: expected map, got &{[a]}"));
  EXPECT_THAT(problems(R"({"labels":{"a":5}})"), ElementsAre(".spec.labels.a: expected string, got "
                                                             "&value.valueUnstructured{Value:5}"));
}

TEST_F(CustomSchema, MergesFieldsOrAtomicValues) {
  EXPECT_EQ(merged(R"({"box":{"w":1},"labels":{"a":"1"}})", R"({"box":{},"labels":{"b":"2"}})"),
            R"({"spec":{"labels":{"a":"1","b":"2"},"box":{}}})");
  EXPECT_EQ(merged(R"({"steps":["a"]})", R"({"steps":["b","c"]})"),
            R"({"spec":{"steps":["b","c"]}})");
  EXPECT_EQ(merged(R"({"parts":[{"name":"p","kind":"bolt","count":1}]})",
                   R"({"parts":[{"name":"p","count":2}]})"),
            R"({"spec":{"parts":[{"kind":"bolt","name":"p","count":2}]}})");
}

TEST_F(CustomSchema, MergesListsInTheOrderOfTheConfiguration) {
  const auto order = [&](const std::string& live, const std::string& config) {
    return merged(R"({"colours":)" + live + "}", R"({"colours":)" + config + "}");
  };
  EXPECT_EQ(order(R"(["a","b","c"])", R"(["c","a"])"), R"({"spec":{"colours":["b","c","a"]}})");
  EXPECT_EQ(order(R"(["a","b","c"])", R"(["d"])"), R"({"spec":{"colours":["a","b","c","d"]}})");
  EXPECT_EQ(order(R"(["a","b"])", R"(["x","b","y"])"), R"({"spec":{"colours":["a","x","b","y"]}})");
  EXPECT_EQ(order(R"(["a"])", R"([])"), R"({"spec":{"colours":["a"]}})");
}

TEST(BuiltinFields, FollowListTypesAndAtomicStructures) {
  const auto object = value(R"({"spec":{"selector":{"matchLabels":{"a":"b"}},
      "template":{"spec":{"nodeSelector":{"x":"y"},"tolerations":[{"key":"k"}],
        "containers":[{"name":"c","ports":[{"containerPort":80}],
          "env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"f"}}}]}]}}}})");
  EXPECT_EQ(
      text(field_set(object, deployment())),
      R"({"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{)"
      R"("f:env":{"k:{\"name\":\"A\"}":{"f:name":{},"f:valueFrom":{"f:fieldRef":{}},".":{}}},)"
      R"("f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":)"
      R"({"f:containerPort":{},".":{}}},".":{}}},"f:nodeSelector":{},"f:tolerations":{}}}}})");
}

TEST(BuiltinFields, OmitUnknownFields) {
  EXPECT_EQ(text(field_set(value(R"({"spec":{"new":{"a":1},"nodeName":"n"}})"), pod())),
            R"({"f:spec":{"f:nodeName":{}}})");
  json::Document out;
  EXPECT_EQ(sorted(merge(value(R"({"spec":{"new":1,"nodeName":"n"}})"),
                         value(R"({"spec":{"nodeName":"m"}})"), pod(), out.GetAllocator())),
            R"({"spec":{"nodeName":"m","new":1}})");
}

struct Differing {
  const char* before;
  const char* after;
  const char* removed;
  const char* modified;
  const char* added;
};
void PrintTo(const Differing& one, std::ostream* out) { *out << one.before << one.after; }

class Comparisons : public testing::TestWithParam<Differing> {};

TEST_P(Comparisons, AssignEachFieldToOneSet) {
  const Differing& one = GetParam();
  const Comparison found = compare(value(one.before), value(one.after), pod());
  EXPECT_EQ(text(found.removed), one.removed);
  EXPECT_EQ(text(found.modified), one.modified);
  EXPECT_EQ(text(found.added), one.added);
}

INSTANTIATE_TEST_SUITE_P(
    All, Comparisons,
    testing::Values(
        Differing{R"({"spec":{"nodeName":"a","hostname":"h"}})",
                  R"({"spec":{"hostname":"h","nodeName":"b","priority":1}})", "{}",
                  R"({"f:spec":{"f:nodeName":{}}})", R"({"f:spec":{"f:priority":{}}})"},
        Differing{R"({})", R"({"metadata":{"labels":{"a":"1"}}})", "{}", "{}",
                  R"({"f:metadata":{"f:labels":{"f:a":{},".":{}},".":{}}})"},
        Differing{R"({"metadata":{"labels":null}})", R"({"metadata":{"labels":{"a":"1"}}})", "{}",
                  "{}", R"({"f:metadata":{"f:labels":{"f:a":{}}}})"},
        Differing{R"({"spec":{"containers":[{"name":"a","image":"i"},{"name":"b"}]}})",
                  R"({"spec":{"containers":[{"name":"b"},{"name":"a","image":"j"}]}})", "{}",
                  R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}}}}})", "{}"},
        Differing{R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[]}})",
                  R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:name":{},".":{}}}}})",
                  "{}", "{}"},
        Differing{R"({"spec":{"nodeSelector":{"a":"1"}}})",
                  R"({"spec":{"nodeSelector":{"b":"1"}}})", "{}",
                  R"({"f:spec":{"f:nodeSelector":{}}})", "{}"},
        Differing{R"({"spec":{"containers":[{"name":"a"}]}})",
                  R"({"spec":{"containers":[{"name":"a"},{"name":"a"}]}})",
                  R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:name":{},".":{}}}}})",
                  "{}", R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{}}}})"},
        Differing{R"({"metadata":{"finalizers":["a","b"]}})",
                  R"({"metadata":{"finalizers":["b"]}})",
                  R"({"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})", "{}", "{}"},
        Differing{R"({"metadata":{"managedFields":[{"manager":"a"}]}})", R"({"metadata":{}})", "{}",
                  "{}", "{}"}));

TEST(Comparing, IsLinearInTheNumberOfMembers) {
  // In opposite orders: linear searches would take minutes.
  constexpr int kMembers = 60000;
  std::string before = R"({"metadata":{"labels":{)";
  std::string after = before;
  for (int i = 0; i < kMembers; ++i) {
    if (i > 0) before += ',', after += ',';
    before += "\"k" + std::to_string(i) + "\":\"v\"";
    after += "\"k" + std::to_string(kMembers - 1 - i) + "\":\"v\"";
  }
  before += "}}}";
  after += "}}}";
  EXPECT_TRUE(compare(value(before), value(after), pod()).same());
  EXPECT_TRUE(equal(value(before), value(after)));
}

TEST(Removing, RemovesElementsWithTheirChildren) {
  const auto object = value(R"({"spec":{"nodeName":"n","containers":[{"name":"a","image":"i"},
      {"name":"b","image":"j","command":["x"]}]},"metadata":{"labels":{"x":"1","y":"2"}}})");
  FieldSet gone = field_set(
      value(R"({"spec":{"containers":[{"name":"a"}]},"metadata":{"labels":{"x":"1"}}})"), pod());
  const PathElement b{PathElement::Kind::kKey, R"({"name":"b"})"};
  gone.insert({PathElement::field("spec"), PathElement::field("containers"), b,
               PathElement::field("image")});
  json::Document out;
  EXPECT_EQ(
      sorted(remove(object, gone, pod(), out.GetAllocator())),
      R"({"metadata":{"labels":{"y":"2"}},"spec":{"containers":[{"name":"b","command":["x"]}],)"
      R"("nodeName":"n"}})");
}

TEST_F(CustomSchema, RemovesTheLastElements) {
  const auto object = value(R"({"spec":{"colours":["red"],"labels":{"a":"1"},"size":1}})");
  const FieldSet gone =
      field_set(value(R"({"spec":{"colours":["red"],"labels":{"a":"1"}}})"), type_);
  json::Document out;
  EXPECT_EQ(sorted(remove(object, gone, type_, out.GetAllocator())),
            R"({"spec":{"labels":{},"colours":[],"size":1}})");
}

TEST_F(CustomSchema, APartOfAnAtomicValueOwnsTheWhole) {
  const auto adapted = [&](const std::string& fields, bool changes) {
    const auto recorded = value(R"({"f:spec":)" + fields + "}");
    EXPECT_EQ(has_parts_of_atomic_fields(recorded, type_), changes) << fields;
    return text(with_atomic_fields(*parse_fields_v1(recorded), type_));
  };
  EXPECT_EQ(adapted(R"({"f:box":{"f:w":{}},"f:size":{}})", true),
            R"({"f:spec":{"f:box":{},"f:size":{}}})");
  EXPECT_EQ(adapted(R"({"f:box":{".":{},"f:w":{}}})", true), R"({"f:spec":{"f:box":{}}})");
  EXPECT_EQ(adapted(R"({"f:steps":{"v:\"a\"":{}}})", true), R"({"f:spec":{"f:steps":{}}})");
  EXPECT_EQ(adapted(R"({"f:steps":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}})", true),
            R"({"f:spec":{"f:steps":{}}})");
  constexpr const char* kFits = R"({"f:colours":{"v:\"a\"":{}},"f:free":{"f:x":{"f:y":{}}},)"
                                R"("f:parts":{"k:{\"name\":\"a\"}":{"f:count":{},"f:name":{}}}})";
  EXPECT_EQ(adapted(kFits, false), std::string(R"({"f:spec":)") + kFits + "}");
}

TEST(NamedFields, BecomeMembersUnlessTheyAreEntries) {
  const auto object =
      value(R"({"spec":{"containers":[{"name":"a"}]},"metadata":{"labels":{"x":"1"}}})");
  EXPECT_EQ(
      text(with_fields(field_set(object, pod()), pod())),
      R"({"f:metadata":{"f:labels":{"f:x":{},".":{}},".":{}},)"
      R"("f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:name":{},".":{}},".":{}},".":{}}})");
}

}  // namespace
}  // namespace lookout::apiserver::fields
