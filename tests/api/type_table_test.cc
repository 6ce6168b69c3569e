#include "lookout/api/detail/type_table.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lookout/api/detail/symbol_table.h"
#include "lookout/api/resource.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"

namespace lookout::api::detail {
namespace {

rapidjson::Document facts() {
  return test::parse_json(
      lookout::test::read_file(lookout::test::testdata("../../api/schema/kubernetes-1.36.json")));
}

std::string text(const rapidjson::Value& object, const char* name) {
  return object.HasMember(name) ? object[name].GetString() : "";
}

/// A type as the facts write it: "string", "[]io.k8s.api.core.v1.Container", "map[string]string".
std::string written(const rapidjson::Value& type) {
  if (type.HasMember("array")) return "[]" + written(type["array"]);
  if (type.HasMember("map")) return "map[string]" + written(type["map"]);
  return text(type, type.HasMember("ref") ? "ref" : "scalar");
}

std::string written(Scalar scalar) {
  switch (scalar) {
    case Scalar::kNone:
      return "none";
    case Scalar::kString:
      return "string";
    case Scalar::kBytes:
      return "string:byte";
    case Scalar::kDateTime:
      return "string:date-time";
    case Scalar::kIntOrString:
      return "string:int-or-string";
    case Scalar::kInt32:
      return "integer:int32";
    case Scalar::kInt64:
      return "integer:int64";
    case Scalar::kDouble:
      return "number:double";
    case Scalar::kBoolean:
      return "boolean";
    case Scalar::kObject:
      return "object";
    case Scalar::kAny:
      return "any";
  }
  return "";
}

std::string written(Type type) {
  if (!type.name().empty()) return std::string(type.name());
  switch (type.shape()) {
    case Shape::kList:
      return "[]" + written(type.element());
    case Shape::kMap:
      return "map[string]" + written(type.element());
    default:
      return written(type.scalar());
  }
}

std::string written(const Field& field) {
  std::string out = std::string(field.name()) + ": " + written(field.type());
  if (field.required()) out += " required";
  const auto merge_key = field.patch_merge_key();
  out += " key=" + std::string(merge_key) + " strategy=";
  if (field.patch_strategies() & patch_strategy::kMerge) out += "merge,";
  if (field.patch_strategies() & patch_strategy::kReplace) out += "replace,";
  if (field.patch_strategies() & patch_strategy::kRetainKeys) out += "retainKeys,";
  static const std::map<ListType, std::string> kLists = {{ListType::kNone, ""},
                                                         {ListType::kAtomic, "atomic"},
                                                         {ListType::kSet, "set"},
                                                         {ListType::kMap, "map"}};
  out += " list=" + kLists.at(field.list_type()) + "(";
  for (const auto key : field.list_map_keys()) out += std::string(symbol_text(key)) + ",";
  static const std::map<MapType, std::string> kMaps = {
      {MapType::kNone, ""}, {MapType::kAtomic, "atomic"}, {MapType::kGranular, "granular"}};
  return out + ") map=" + kMaps.at(field.map_type());
}

std::string written_field(const rapidjson::Value& field) {
  std::string out = text(field, "name") + ": " + written(field);
  if (field.HasMember("required")) out += " required";
  std::string strategy = text(field, "patchStrategy");
  if (!strategy.empty()) strategy += ",";
  out += " key=" + text(field, "patchMergeKey") + " strategy=" + strategy;
  out += " list=" + text(field, "listType") + "(";
  if (field.HasMember("listMapKeys")) {
    for (const auto& key : field["listMapKeys"].GetArray())
      out += key.GetString() + std::string(",");
  }
  return out + ") map=" + text(field, "mapType");
}

/// Compares a type and the types of its fields with the facts.
class Comparison {
 public:
  explicit Comparison(const rapidjson::Document& facts) : facts_(facts) {}

  void compare(Type type) {
    while (type.shape() == Shape::kList || type.shape() == Shape::kMap) type = type.element();
    const std::string name(type.name());
    if (name.empty() || !seen_.emplace(name, true).second) return;
    ASSERT_TRUE(facts_["types"].HasMember(name.c_str())) << name;
    const auto& fact = facts_["types"][name.c_str()];
    if (fact.HasMember("alias")) {
      EXPECT_EQ(type.shape(), Shape::kScalar) << name;
      EXPECT_EQ(written(type.scalar()), text(fact["alias"], "scalar")) << name;
      EXPECT_EQ(type.fields().size(), 0u) << name;
      return;
    }
    EXPECT_EQ(type.shape(), Shape::kStruct) << name;
    EXPECT_EQ(type.scalar(), Scalar::kNone) << name;
    std::vector<std::string> expected;
    for (const auto& field : fact["fields"].GetArray()) {
      expected.push_back(written_field(field));
      const auto found = type.field(std::string_view(field["name"].GetString()));
      ASSERT_TRUE(found) << name << "." << field["name"].GetString();
      EXPECT_EQ(written(*found), expected.back()) << name;
      EXPECT_EQ(found->symbol(), type.field(found->symbol())->symbol());
    }
    std::vector<std::string> fields;
    for (const Field field : type.fields()) fields.push_back(written(field));
    std::sort(expected.begin(), expected.end());
    std::sort(fields.begin(), fields.end());
    EXPECT_EQ(fields, expected) << name;
    for (const Field field : type.fields()) compare(field.type());
  }

  std::size_t seen() const { return seen_.size(); }

 private:
  const rapidjson::Document& facts_;
  std::map<std::string, bool> seen_;
};

TEST(TypeTable, EqualsTheFactsForEveryType) {
  const auto document = facts();
  Comparison comparison(document);
  std::size_t kinds = 0;
  for (const auto& [name, fact] : document["types"].GetObject()) {
    if (!fact.HasMember("gvk")) continue;
    const auto& gvk = fact["gvk"];
    const auto type = Type::of_kind(text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"));
    ASSERT_TRUE(type) << name.GetString();
    EXPECT_EQ(type->name(), name.GetString());
    comparison.compare(*type);
    ++kinds;
  }
  EXPECT_EQ(kinds, 137u);
  EXPECT_GT(comparison.seen(), 500u);
}

TEST(TypeTable, HasEveryBuiltInResource) {
  for (const auto& info : builtin_resources()) {
    const auto type = Type::of_kind(info.group, info.version, info.kind);
    ASSERT_TRUE(type) << info.kind;
    EXPECT_EQ(type->short_name(), info.kind);
    EXPECT_TRUE(type->field(std::string_view("metadata")) || info.kind.ends_with("Review"))
        << info.kind;
  }
}

TEST(TypeTable, HasNothingElse) {
  EXPECT_FALSE(Type::of_kind("", "v1", "Pods"));
  EXPECT_FALSE(Type::of_kind("", "v2", "Pod"));
  EXPECT_FALSE(Type::of_kind("apps", "v1", "Pod"));
  EXPECT_FALSE(Type::of_kind("stable.example.com", "v1", "CronTab"));
  EXPECT_FALSE(Type::of_kind("", "", ""));
  const auto pod = Type::of_kind("", "v1", "Pod");
  ASSERT_TRUE(pod);
  EXPECT_FALSE(pod->field(std::string_view("replicas")));  // a symbol, but no field of a pod
  EXPECT_FALSE(pod->field(std::string_view("no-such-field")));
  EXPECT_FALSE(pod->field(std::string_view("")));
}

}  // namespace
}  // namespace lookout::api::detail
