#include "lookout/api/fields.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <string>
#include <vector>

#include "tests/api/recordings.h"
#include "tests/api/selector_testing.h"
#include "tests/support/allocations.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

using fields::Requirement;

std::string reason_of(std::string_view selector) {
  return test::refusal_by([&] { fields::parse(selector); });
}

TEST(FieldsTest, EqualsARealServer) {
  // The parser does not check whether fields are selectable.
  test::expect_recorded_answers(
      "field.json", [](const std::string& text) { return fields::parse(text); },
      "field label not supported");
}

TEST(FieldsTest, ParsesTerms) {
  const struct {
    const char* text;
    std::vector<Requirement> requirements;
    const char* canonical;
  } cases[] = {
      {"", {}, ""},
      {",,", {}, ""},
      {"=", {}, ""},
      {"!=", {}, ""},
      {"a=b", {{"a", "b", true}}, "a=b"},
      {"a==b", {{"a", "b", true}}, "a=b"},
      {"a!=b", {{"a", "b", false}}, "a!=b"},
      {"a=", {{"a", "", true}}, "a="},
      {"=b", {{"", "b", true}}, "=b"},
      {" a = b ", {{" a ", " b ", true}}, " a = b "},
      {"b=1,,a=2,", {{"a", "2", true}, {"b", "1", true}}, "a=2,b=1"},
      {R"(a=x\,y\=z\\)", {{"a", R"(x,y=z\)", true}}, R"(a=x\,y\=z\\)"},
      {"a=!b", {{"a", "!b", true}}, "a=!b"},
      {"a=\xC3\xA9", {{"a", "\xC3\xA9", true}}, "a=\xC3\xA9"},
      // Like Go's, the parser replaces invalid UTF-8 if there are escapes.
      {"a=\xFF", {{"a", "\xFF", true}}, "a=\xFF"},
      {"a=\\\\\xFF", {{"a", "\\\xEF\xBF\xBD", true}}, "a=\\\\\xEF\xBF\xBD"},
  };
  for (const auto& [text, requirements, canonical] : cases) {
    SCOPED_TRACE(text);
    const auto selector = fields::parse(text);
    EXPECT_EQ(selector.requirements(), requirements);
    EXPECT_EQ(selector.to_string(), canonical);
    EXPECT_EQ(fields::parse(canonical).requirements(), requirements);
  }
}

TEST(FieldsTest, RejectsWithTheServersMessages) {
  const lookout::test::TextCase cases[] = {
      {"a", "invalid selector: 'a'; can't understand 'a'"},
      {"z=1,a", "invalid selector: 'z=1,a'; can't understand 'a'"},
      {"a!b", "invalid selector: 'a!b'; can't understand 'a!b'"},
      {"a=b=c", "invalid field selector: unescaped character in value: 61"},
      {"a===b", "invalid field selector: unescaped character in value: 61"},
      {R"(a=\x)", R"(invalid field selector: invalid escape sequence: \x)"},
      {"a=\\\xC3\xA9", "invalid field selector: invalid escape sequence: \\\xC3\xA9"},
      {"a=\\\xFF", "invalid field selector: invalid escape sequence: \\\xEF\xBF\xBD"},
      {R"(a=b\)", R"(invalid field selector: invalid escape sequence: \)"},
  };
  for (const auto& [text, reason] : cases) EXPECT_EQ(reason_of(text), reason) << text;
}

TEST(FieldsTest, AnErrorNamesThePosition) {
  test::expect_refusal_at(16, {"at character 17"},
                          [] { fields::parse("metadata.name=a,nonsense"); });
}

TEST(FieldsTest, ComparesFieldsAsText) {
  const Object object = Object::parse(
      R"({"metadata":{"name":"a","labels":{"x.y/z":"1"}},"spec":{"n":5,"f":0.5,"t":true,"o":{},"l":["p",7],"nil":null}})");
  const struct {
    const char* text;
    bool matches;
  } cases[] = {
      {"metadata.name=a", true},
      {"metadata.name=b", false},
      {"metadata.name!=b", true},
      {"metadata.name=a,spec.n=5", true},
      {"metadata.name=a,spec.n=6", false},
      {"spec.f=0.5", true},
      {"spec.t=true", true},
      {"spec.t!=true", false},
      {"spec.o=", true},
      {"spec.l=", true},
      {"spec.nil=", true},
      {"spec.none=", true},
      {"spec.none!=x", true},
      {"spec.none=x", false},
      {"spec.l[0]=p", true},
      {"spec.l[1]=7", true},
      {"spec.l[2]=", true},
      {"metadata.labels['x.y/z']=1", true},
      {"no path at all=", true},
      {"no path at all=x", false},
      {"=x", false},
  };
  for (const auto& [text, matches] : cases)
    EXPECT_EQ(fields::parse(text).matches(object), matches) << text;
  EXPECT_TRUE(fields::Selector().matches(object));
  EXPECT_TRUE(fields::Selector().empty());
  EXPECT_FALSE(fields::parse("metadata.name=a").matches(Object()));
}

TEST(FieldsTest, MatchingTextAllocatesNothing) {
  const Object object =
      Object::parse(R"({"metadata":{"name":"a"},"spec":{"ownField":"x","nodeName":"n"}})");
  const auto selector =
      fields::parse("metadata.name=a,spec.nodeName!=m,spec.ownField=x,spec.l[0]=");
  // (Without NDEBUG, the first look-up of an absent field allocates the register of projected
  // objects.)
  bool matched = selector.matches(object);
  EXPECT_EQ(lookout::test::allocations_of([&] { matched = selector.matches(object); }), 0u);
  EXPECT_TRUE(matched);
}

TEST(FieldsTest, EscapedValuesReadBack) {
  for (const std::string value : {"", "plain", "a,b", "a=b", "\\", "\\,=", "\\\\"}) {
    const auto selector = fields::parse("f=" + fields::escape_value(value) + ",g=1");
    ASSERT_FALSE(selector.empty());
    EXPECT_EQ(selector.requirements().front().value, value);
  }
}

}  // namespace
}  // namespace lookout::api
