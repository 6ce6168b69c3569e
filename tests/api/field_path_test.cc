#include "lookout/api/field_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "lookout/api/error.h"
#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

/// The steps in a form that is easy to compare.
std::string steps_of(std::string_view text) {
  std::string out;
  const FieldPath path(text);
  for (const auto& step : path.steps()) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      out += "<" + *name + ">";
    } else if (const auto* index = std::get_if<std::size_t>(&step)) {
      out += std::to_string(*index);
    } else {
      out += "*";
    }
  }
  return out;
}

TEST(FieldPathTest, Parses) {
  const lookout::test::TextCase cases[] = {
      {"", ""},
      {"a", "<a>"},
      {".a", "<a>"},
      {"a.b", "<a><b>"},
      {".a[0].b", "<a>0<b>"},
      {"[3]", "3"},
      {"a[0][12]", "<a>012"},
      {"a[*].b", "<a>*<b>"},
      {"a['b.c/d']", "<a><b.c/d>"},
      {"a[\"b\"].c", "<a><b><c>"},
      {"['a']['b']", "<a><b>"},
      {"['']", "<>"},
      {"['it\\'s']", "<it's>"},
      {"['\\\\']", "<\\>"},
      {"[\"'\"]", "<'>"},
      {"a-b_c$d/e9", "<a-b_c$d/e9>"},
      {"['*']", "<*>"},
  };
  for (const auto& [text, steps] : cases) EXPECT_EQ(steps_of(text), steps) << text;
}

TEST(FieldPathTest, ErrorsNameThePosition) {
  const lookout::test::TextCase cases[] = {
      {".", "expected a name at character 2"},
      {"a.", "expected a name at character 3"},
      {"a..b", "expected a name at character 3"},
      {"a b", "expected '.' or '[' at character 2"},
      {"a[0]b", "expected '.' or '[' at character 5"},
      {"a[", "expected an index, '*' or a quoted name at character 3"},
      {"a[]", "expected an index, '*' or a quoted name at character 3"},
      {"a[-1]", "expected an index, '*' or a quoted name at character 3"},
      {"a[b]", "expected an index, '*' or a quoted name at character 3"},
      {"a[99999999999999999999]", "expected an index, '*' or a quoted name at character 3"},
      {"a[0", "expected ']' at character 4"},
      {"a['b'", "expected ']' at character 6"},
      {"a['b", "the quote is not closed at character 2"},
      {"a['b\\", "the quote is not closed at character 2"},
      {"a.*", "expected a name at character 3"},
      {"caf\xC3\xA9", "expected '.' or '[' at character 4"},
  };
  for (const auto& [text, why] : cases) {
    try {
      FieldPath path(text);
      ADD_FAILURE() << text;
    } catch (const InvalidArgument& e) {
      EXPECT_EQ(e.what(), "field path \"" + std::string(text) + "\": " + why);
    }
  }
}

}  // namespace
}  // namespace lookout::api
