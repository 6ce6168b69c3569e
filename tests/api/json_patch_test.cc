#include "lookout/api/json_patch.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>

namespace lookout::api {
namespace {

std::string patched(const std::string& target, const std::string& patch) {
  rapidjson::Document document;
  document.Parse(target.c_str());
  rapidjson::Document operations;
  operations.Parse(patch.c_str());
  EXPECT_FALSE(document.HasParseError()) << target;
  EXPECT_FALSE(operations.HasParseError()) << patch;
  apply_json_patch(document, operations, document.GetAllocator());
  operations.SetNull();
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  document.Accept(writer);
  return {out.GetString(), out.GetSize()};
}

struct PatchCase {
  const char* name;
  const char* target;
  const char* patch;
  const char* result;  // null: PatchError
};

class JsonPatch : public testing::TestWithParam<PatchCase> {};

TEST_P(JsonPatch, ChangesTheTargetOrFails) {
  const PatchCase& c = GetParam();
  if (c.result == nullptr) {
    EXPECT_THROW(patched(c.target, c.patch), PatchError);
  } else {
    EXPECT_EQ(patched(c.target, c.patch), c.result);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rfc6902, JsonPatch,
    testing::ValuesIn(std::initializer_list<PatchCase>{
        {"add_member", R"({"a":1})", R"([{"op":"add","path":"/b","value":[2]}])",
         R"({"a":1,"b":[2]})"},
        {"add_replaces_member", R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])",
         R"({"a":2})"},
        {"add_element", R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])",
         R"({"a":[1,2,3]})"},
        {"append", R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])", R"({"a":[1,2]})"},
        {"add_at_length", R"({"a":[1]})", R"([{"op":"add","path":"/a/1","value":2}])",
         R"({"a":[1,2]})"},
        {"add_beyond_length", R"({"a":[1]})", R"([{"op":"add","path":"/a/2","value":2}])", nullptr},
        {"add_counted_from_the_end", R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-1","value":3}])",
         R"({"a":[1,2,3]})"},
        {"add_below_nothing", R"({"a":1})", R"([{"op":"add","path":"/b/c","value":2}])", nullptr},
        {"add_below_a_number", R"({"a":1})", R"([{"op":"add","path":"/a/c","value":2}])", nullptr},
        {"add_whole", R"({"a":1})", R"([{"op":"add","path":"","value":{"b":2}}])", nullptr},
        {"replace_whole", R"({"a":1})", R"([{"op":"replace","path":"","value":{"b":2}}])",
         R"({"b":2})"},
        {"replace_whole_by_a_number", R"({"a":1})", R"([{"op":"replace","path":"","value":2}])",
         nullptr},
        {"copy_whole", R"({"a":1})", R"([{"op":"copy","from":"","path":"/x"}])", nullptr},
        {"copy_to_whole", R"({"a":{}})", R"([{"op":"copy","from":"/a","path":""}])", nullptr},
        {"move_whole", R"({"a":1})", R"([{"op":"move","from":"","path":"/x"}])", nullptr},
        {"move_to_whole", R"({"a":{}})", R"([{"op":"move","from":"/a","path":""}])", nullptr},
        {"remove_whole", R"({"a":1})", R"([{"op":"remove","path":""}])", nullptr},
        {"test_whole", R"({"a":1})", R"([{"op":"test","path":"","value":{"a":1}}])", R"({"a":1})"},
        {"escapes", R"({"a/b":{"c~d":1}})", R"([{"op":"replace","path":"/a~1b/c~0d","value":2}])",
         R"({"a/b":{"c~d":2}})"},
        {"escape_of_an_escape", R"({"~1":1})", R"([{"op":"replace","path":"/~01","value":2}])",
         R"({"~1":2})"},
        {"empty_name", R"({"":1})", R"([{"op":"replace","path":"/","value":2}])", R"({"":2})"},
        {"remove_member", R"({"a":1,"b":2,"c":3})", R"([{"op":"remove","path":"/b"}])",
         R"({"a":1,"c":3})"},
        {"remove_element", R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/1"}])",
         R"({"a":[1,3]})"},
        {"remove_last_element", R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/-1"}])",
         R"({"a":[1,2]})"},
        {"remove_nothing", R"({"a":1})", R"([{"op":"remove","path":"/b"}])", nullptr},
        {"remove_from_empty_array", R"({"a":[]})", R"([{"op":"remove","path":"/a/0"}])", nullptr},
        {"replace_absent_member", R"({"a":1})", R"([{"op":"replace","path":"/b","value":2}])",
         R"({"a":1,"b":2})"},
        {"replace_nothing", R"({"a":[1]})", R"([{"op":"replace","path":"/a/1","value":1}])",
         nullptr},
        {"replace_in_nothing", R"({"a":1})", R"([{"op":"replace","path":"/b/c","value":1}])",
         nullptr},
        {"copy_absent_member", R"({"a":1})", R"([{"op":"copy","from":"/b","path":"/c"}])",
         R"({"a":1,"c":null})"},
        {"move", R"({"a":{"x":1},"b":{}})", R"([{"op":"move","from":"/a/x","path":"/b/y"}])",
         R"({"a":{},"b":{"y":1}})"},
        {"move_nothing", R"({"a":1})", R"([{"op":"move","from":"/b","path":"/c"}])", nullptr},
        {"copy", R"({"a":{"x":1}})", R"([{"op":"copy","from":"/a","path":"/b"}])",
         R"({"a":{"x":1},"b":{"x":1}})"},
        {"copy_into_itself", R"({"a":{"x":1}})", R"([{"op":"copy","from":"/a","path":"/a/y"}])",
         R"({"a":{"x":1,"y":{"x":1}}})"},
        {"test_equal", R"({"a":{"x":1,"y":2}})",
         R"([{"op":"test","path":"/a","value":{"y":2,"x":1}}])", R"({"a":{"x":1,"y":2}})"},
        {"test_different", R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])", nullptr},
        {"test_null_for_absent", R"({"a":1})", R"([{"op":"test","path":"/b","value":null}])",
         R"({"a":1})"},
        {"test_absent", R"({"a":1})", R"([{"op":"test","path":"/b","value":1}])", nullptr},
        {"test_null_beyond_an_array", R"({"a":[1]})",
         R"([{"op":"test","path":"/a/3","value":null}])", nullptr},
        {"test_null_below_a_text", R"({"a":"s"})", R"([{"op":"test","path":"/a/b","value":null}])",
         nullptr},
        {"test_null_below_nothing", R"({"a":1})", R"([{"op":"test","path":"/b/c","value":null}])",
         nullptr},
        {"test_null_of_the_document", R"({"a":null})",
         R"([{"op":"test","path":"/a","value":null}])", R"({"a":null})"},
        {"test_null_that_was_added", "{}",
         R"([{"op":"add","path":"/a","value":null},{"op":"test","path":"/a","value":null}])",
         R"({"a":null})"},
        {"test_null_that_replaced_an_element", R"({"a":[1]})",
         R"([{"op":"replace","path":"/a/0","value":null},{"op":"test","path":"/a/0","value":null}])",
         R"({"a":[null]})"},
        {"test_added_null_without_value", "{}",
         R"([{"op":"add","path":"/a","value":null},{"op":"test","path":"/a"}])", nullptr},
        {"test_null_in_an_object", R"({"a":{}})",
         R"([{"op":"add","path":"/a/b","value":null},{"op":"test","path":"/a","value":{"b":null}}])",
         nullptr},
        {"test_copy_of_absent", "{}",
         R"([{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":null}])",
         R"({"b":null})"},
        {"test_copy_of_null_of_the_document", R"({"a":null})",
         R"([{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":null}])",
         R"({"a":null,"b":null})"},
        {"test_copy_of_added_null", "{}",
         R"([{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"},)"
         R"({"op":"test","path":"/b","value":null}])",
         nullptr},
        {"copy_of_added_null", "{}",
         R"([{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"}])",
         R"({"a":null,"b":null})"},
        {"test_moved_null", "{}",
         R"([{"op":"add","path":"/a","value":null},{"op":"move","from":"/a","path":"/b"},)"
         R"({"op":"test","path":"/b","value":null}])",
         R"({"b":null})"},
        {"test_null_in_a_copied_object", R"({"a":{}})",
         R"([{"op":"add","path":"/a/b","value":null},{"op":"copy","from":"/a","path":"/c"},)"
         R"({"op":"test","path":"/c","value":{"b":null}}])",
         R"({"a":{"b":null},"c":{"b":null}})"},
        {"later_undoes_earlier", R"({"a":1})",
         R"([{"op":"add","path":"/b","value":1},{"op":"remove","path":"/b"}])", R"({"a":1})"},
        {"path_without_slash", R"({"a":1})", R"([{"op":"remove","path":"a"}])", nullptr},
        {"nothing", R"({"a":1})", "[]", R"({"a":1})"}}),
    [](const auto& test) { return test.param.name; });

TEST(JsonPatchText, RejectsInvalidPatches) {
  for (const char* bad :
       {R"({"op":"add"})", "[1]", "[null]", R"([{"op":"spam","path":"/a"}])", R"([{"path":"/a"}])",
        R"([{"op":"add","path":"/a"}])", R"([{"op":"replace","path":"/a"}])",
        R"([{"op":"move","path":"/a"}])", R"([{"op":"copy","path":"/a"}])",
        R"([{"op":"remove","path":1}])", R"([{"op":1,"path":"/a"}])"})
    EXPECT_THROW(patched(R"({"a":1})", bad), DecodeError) << bad;
  // The patch is validated before any operation.
  EXPECT_THROW(patched("{}", R"([{"op":"remove","path":"/none"},{"op":"spam","path":"/a"}])"),
               DecodeError);
}

TEST(JsonPatchText, LimitsTheSizeOfTheResult) {
  // Every copy doubles the size: forty copies would be a terabyte.
  std::string patch = R"([{"op":"add","path":"/a","value":["0123456789"]})";
  for (int i = 0; i < 40; ++i) patch += R"(,{"op":"copy","from":"/a","path":"/a/-"})";
  EXPECT_THROW(patched("{}", patch + "]"), PatchError);
}

TEST(JsonPatchText, LimitsTheDepthOfTheResult) {
  std::string deep;
  for (int i = 0; i < 600; ++i) deep += R"({"a":)";
  deep += "1" + std::string(600, '}');
  std::string path;
  for (int i = 0; i < 600; ++i) path += "/a";
  EXPECT_THROW(patched(deep, R"([{"op":"replace","path":")" + path + R"(","value":)" + deep + "}]"),
               PatchError);
}

}  // namespace
}  // namespace lookout::api
