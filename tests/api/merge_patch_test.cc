#include "lookout/api/merge_patch.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <iterator>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"
#include "tests/support/nested.h"
#include "tests/support/sanitizers.h"

namespace lookout::api {
namespace {

using rapidjson::Document;

Document patched(const rapidjson::Value& before, const rapidjson::Value& patch) {
  Document out;
  out.CopyFrom(before, out.GetAllocator());
  apply_merge_patch(out, patch, out.GetAllocator());
  return out;
}

struct MergeCase {
  const char* before;
  const char* patch;
  const char* after;
};

// RFC 7396, Appendix A.
constexpr MergeCase kRfcTable[] = {
    {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
    {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
    {R"({"a":"b"})", R"({"a":null})", R"({})"},
    {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
    {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
    {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
    {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
    {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
    {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
    {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
    {R"({"a":"foo"})", R"(null)", R"(null)"},
    {R"({"a":"foo"})", R"("bar")", R"("bar")"},
    {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
    {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
    {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
};

constexpr MergeCase kMore[] = {
    {R"({"a":1,"b":2,"c":3,"d":4})", R"({"d":null,"a":null,"c":5,"e":6})",
     R"({"b":2,"c":5,"e":6})"},
    {R"({"a":1})", R"({"b":[null,{"c":null}]})", R"({"a":1,"b":[null,{"c":null}]})"},
    {R"({"a":1})", R"({"a":2,"a":3})", R"({"a":3})"},
    {R"({"a":1})", R"({"b":2,"b":null})", R"({"a":1})"},
    {R"({"a":null})", R"({"a":null})", R"({})"},
};

TEST(MergePatchTest, FollowsTheRfc) {
  std::vector<MergeCase> cases(std::begin(kRfcTable), std::end(kRfcTable));
  cases.insert(cases.end(), std::begin(kMore), std::end(kMore));
  for (const auto& [before, patch, after] : cases) {
    EXPECT_EQ(patched(test::parse_json(before), test::parse_json(patch)), test::parse_json(after))
        << before << " + " << patch;
  }
}

TEST(MergePatchTest, ServersDropNullMembersInLists) {
  const MergeCase cases[] = {
      {"{}", R"({"l":[{"a":1,"b":null}]})", R"({"l":[{"a":1}]})"},
      {R"({"l":[1]})", R"({"l":[null,{"a":[{"b":null}]}]})", R"({"l":[null,{"a":[{}]}]})"},
      {R"({"l":null})", R"({"l":[{"a":null,"a":1},{"b":1,"b":null}]})", R"({"l":[{"a":1},{}]})"},
      {R"({"l":{"x":1}})", R"({"l":[{"a":null}]})", R"({"l":[{"a":null}]})"},
  };
  for (const auto& [before, patch, after] : cases) {
    Document target = test::parse_json(before);
    apply_merge_patch(target, test::parse_json(patch), target.GetAllocator(), NullsInLists::kDrop);
    EXPECT_EQ(target, test::parse_json(after)) << before << " + " << patch;
  }
}

TEST(MergePatchTest, TheResultDoesNotReferToThePatch) {
  Document target = test::parse_json(R"({"a":{}})");
  {
    std::string text = R"({"a":{"name":"a string that is too long to be stored inside"}})";
    Document patch;
    patch.ParseInsitu(text.data());
    apply_merge_patch(target, patch, target.GetAllocator());
    text.assign(text.size(), 'x');
  }
  EXPECT_EQ(target,
            test::parse_json(R"({"a":{"name":"a string that is too long to be stored inside"}})"));
}

/// Removes the fields that the server sets.
void remove_server_side(Document& object) {
  auto& metadata = object["metadata"];
  for (const auto* name :
       {"generation", "resourceVersion", "managedFields", "uid", "creationTimestamp"})
    metadata.RemoveMember(name);
  object.RemoveMember("status");
}

/// Checks that `whole` contains `part`; it may have more fields (defaults).
void expect_contains(const rapidjson::Value& whole, const rapidjson::Value& part) {
  if (part.IsObject()) {
    ASSERT_TRUE(whole.IsObject());
    for (const auto& [name, value] : part.GetObject()) {
      SCOPED_TRACE(name.GetString());
      ASSERT_TRUE(whole.HasMember(name));
      expect_contains(whole[name], value);
    }
  } else if (part.IsArray()) {
    ASSERT_TRUE(whole.IsArray());
    ASSERT_EQ(whole.Size(), part.Size());
    for (rapidjson::SizeType i = 0; i < part.Size(); ++i) expect_contains(whole[i], part[i]);
  } else {
    EXPECT_EQ(whole, part);
  }
}

TEST(MergePatchTest, EqualsARealServer) {
  const Document cases =
      test::parse_json(lookout::test::read_file(lookout::test::testdata("kube-1.36/patches.json")));
  int tested = 0;
  for (const auto& one : cases.GetArray()) {
    if (std::string_view(one["contentType"].GetString()) != "application/merge-patch+json")
      continue;
    ++tested;
    SCOPED_TRACE(test::to_json(one["patch"]));
    ASSERT_EQ(one["code"].GetInt(), 200);
    Document ours = patched(one["before"], one["patch"]);
    Document theirs;
    theirs.CopyFrom(one["after"], theirs.GetAllocator());
    remove_server_side(ours);
    remove_server_side(theirs);
    expect_contains(theirs, ours);

    // The patch created from before and after is equivalent to the recorded one.
    const Document created = create_merge_patch(one["before"], one["after"]);
    EXPECT_EQ(patched(one["before"], created), one["after"]);
  }
  EXPECT_GE(tested, 3);
}

TEST(MergePatchTest, CreatedPatchesGiveTheTarget) {
  const struct {
    const char* before;
    const char* after;
    const char* patch;
  } cases[] = {
      {R"({"a":1})", R"({"a":1})", R"({})"},
      {R"({"a":1})", R"({"a":2})", R"({"a":2})"},
      {R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":null,"c":3})"},
      {R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1,"c":3}})", R"({"a":{"c":3}})"},
      {R"({"a":{"b":1}})", R"({"a":{"b":1},"d":{}})", R"({"d":{}})"},
      {R"({"a":{"b":1}})", R"({"a":{}})", R"({"a":{"b":null}})"},
      {R"({"a":[1,2]})", R"({"a":[1,3]})", R"({"a":[1,3]})"},
      {R"({"a":[1]})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
      {R"({"a":{"b":1}})", R"({"a":5})", R"({"a":5})"},
      {R"([1])", R"({"a":1})", R"({"a":1})"},
      {R"({"a":1})", R"([null])", R"([null])"},
      {R"({})", R"({"a":"x\u0000y"})", R"({"a":"x\u0000y"})"},
  };
  for (const auto& [before, after, patch] : cases) {
    SCOPED_TRACE(std::string(before) + " -> " + after);
    const Document created = create_merge_patch(test::parse_json(before), test::parse_json(after));
    EXPECT_EQ(created, test::parse_json(patch)) << test::to_json(created);
    EXPECT_EQ(patched(test::parse_json(before), created), test::parse_json(after));
  }
}

TEST(MergePatchTest, NullsOfTheTargetBecomeAbsent) {
  const Document before = test::parse_json(R"({"a":1,"b":{"c":1}})");
  const Document after = test::parse_json(R"({"a":null,"b":{"c":1,"d":null},"e":null})");
  const Document patch = create_merge_patch(before, after);
  EXPECT_EQ(patch, test::parse_json(R"({"a":null})"));
}

TEST(MergePatchTest, NestingIsLimited) {
  const auto nested = [](std::size_t depth, const char* open, const char* close) {
    const std::string text = lookout::test::nested_json(depth, open, close);
    Document document;
    document.Parse<rapidjson::kParseIterativeFlag>(text.c_str());
    EXPECT_FALSE(document.HasParseError());
    return document;
  };
  const Document empty = test::parse_json("{}");
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    EXPECT_EQ(patched(empty, nested(1000, open, close)), nested(1000, open, close));
    for (const std::size_t depth : {1001u, lookout::test::kSanitized ? 100000u : 1000000u}) {
      const Document deep = nested(depth, open, close);
      EXPECT_THROW(patched(empty, deep), DecodeError);
      EXPECT_THROW(create_merge_patch(empty, deep), DecodeError);
      EXPECT_THROW(create_merge_patch(deep, empty), DecodeError);
    }
  }
}

TEST(MergePatchTest, CreatingAWidePatchIsNotQuadratic) {
  constexpr int kMembers = 200000;
  std::string members;
  for (int i = 0; i < kMembers; ++i) members += ",\"k" + std::to_string(i) + "\":1";
  const Document before =
      test::parse_json(R"({"a":{"x":1)" + members + R"(},"b":[{"y":1)" + members + "}]}");
  const Document after =
      test::parse_json(R"({"a":{"x":2)" + members + R"(},"b":[{"y":1)" + members + "}]}");
  EXPECT_EQ(create_merge_patch(before, after), test::parse_json(R"({"a":{"x":2}})"));
}

TEST(MergePatchTest, ApplyingAWidePatchIsNotQuadratic) {
  constexpr int kMembers = 200000;
  std::string text = "{";
  for (int i = 0; i < kMembers; ++i) text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  const Document patch = test::parse_json(text + "}");
  Document target = test::parse_json("{}");
  for (int round = 0; round < 2; ++round) apply_merge_patch(target, patch, target.GetAllocator());
  EXPECT_EQ(target.MemberCount(), static_cast<rapidjson::SizeType>(kMembers));
}

}  // namespace
}  // namespace lookout::api
