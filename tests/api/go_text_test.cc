#include "lookout/api/detail/go_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "tests/support/text_case.h"

namespace lookout::api::detail {
namespace {

using namespace std::string_view_literals;

TEST(GoTextTest, QuotesLikeGo) {
  const lookout::test::TextViewCase cases[] = {
      {"", R"("")"},
      {"plain", R"("plain")"},
      {"\"\\", R"("\"\\")"},
      {"\a\b\f\n\r\t\v", R"("\a\b\f\n\r\t\v")"},
      {"\0\x01\x1F\x7F"sv, R"("\x00\x01\x1f\x7f")"},
      {"\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80", "\"\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\""},
      {"\xC2\x80\xC2\xA0\xC2\xAD", R"("\u0080\u00a0\u00ad")"},
      {"\xE2\x80\xA8\xEF\xBB\xBF", R"("\u2028\ufeff")"},
      {"\xF3\xA0\x80\x81", R"("\U000e0001")"},
      {"\xFF\xC3", R"("\xff\xc3")"},
      {"\xED\xA0\x80", R"("\xed\xa0\x80")"},
  };
  for (const auto& [text, quoted] : cases) EXPECT_EQ(quote(text), quoted);
}

TEST(GoTextTest, ParsesIntegersLikeGo) {
  using Result = std::optional<std::int64_t>;
  const struct {
    std::string_view text;
    Result number;
  } cases[] = {
      {"0", 0},
      {"-0", 0},
      {"+5", 5},
      {"-5", -5},
      {"007", 7},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"9223372036854775808", {}},
      {"-9223372036854775809", {}},
      {"", {}},
      {"+", {}},
      {"-", {}},
      {"+-5", {}},
      {"--5", {}},
      {"++5", {}},
      {" 5", {}},
      {"5 ", {}},
      {"5.0", {}},
      {"0x5", {}},
      {"1_000", {}},
      {"five", {}},
  };
  for (const auto& [text, number] : cases) EXPECT_EQ(parse_int(text), number) << text;
}

TEST(GoTextTest, DecodesOneCharacterAtATime) {
  const struct {
    std::string_view text;
    char32_t code;
    std::size_t size;
    bool valid;
  } cases[] = {
      {"ab", 'a', 1, true},
      {"\xC3\xA9x", 0xE9, 2, true},
      {"\xE4\xBD\xA0", 0x4F60, 3, true},
      {"\xF0\x9F\x98\x80", 0x1F600, 4, true},
      {"\x80", 0x80, 1, false},
      {"\xC3", 0xC3, 1, false},
      {"\xC0\x80", 0xC0, 1, false},
      {"\xED\xA0\x80", 0xED, 1, false},
      {"\xF4\x90\x80\x80", 0xF4, 1, false},
      {"\xFF", 0xFF, 1, false},
  };
  for (const auto& [text, code, size, valid] : cases) {
    const Rune rune = first_rune(text);
    EXPECT_EQ(rune.code, code);
    EXPECT_EQ(rune.size, size);
    EXPECT_EQ(rune.valid, valid);
  }
}

}  // namespace
}  // namespace lookout::api::detail
