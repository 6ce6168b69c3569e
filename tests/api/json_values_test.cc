// JSON as a RapidJSON document.
#include "lookout/api/detail/json_values.h"

#include <gtest/gtest.h>

#include <string>

namespace lookout::api::detail {
namespace {

std::string printed(const std::string& text) {
  rapidjson::Document document;
  return parse_json(text, document) ? to_json(document) : "(none)";
}

TEST(ParseJson, NumbersAreTheNearestDoubles) {
  EXPECT_EQ(printed("123456789.12345679"), "123456789.12345679");
  EXPECT_EQ(printed("2.225073858507201e-308"), "2.225073858507201e-308");
  EXPECT_EQ(printed("6666666666666666666666666666666666"), "6.666666666666667e33");
  EXPECT_EQ(printed("0E0201"), "0.0");
}

TEST(ParseJson, IntegersStayIntegers) {
  for (const char* text : {"0", "-1", "9223372036854775807", "-9223372036854775808",
                           "9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(printed(text), text);
}

TEST(ParseJson, NumbersBeyondDoublesAreNothingOrAnError) {
  EXPECT_EQ(printed("1e-400"), "0.0");
  EXPECT_EQ(printed("-0." + std::string(400, '0') + "1"), "0.0");
  EXPECT_EQ(printed("0.5e400"), "(none)");
  EXPECT_EQ(printed("1" + std::string(400, '0')), "(none)");
}

TEST(ParseJson, HalfOfASurrogatePairIsReplaced) {
  EXPECT_EQ(printed(R"({"\ud83d":"\ude80","a":"\ud83d\ude80\\ud83d"})"),
            "{\"\uFFFD\":\"\uFFFD\",\"a\":\"\U0001F680\\\\ud83d\"}");
}

TEST(ParseJson, KeepsEverythingElse) {
  const char* text = R"({"a":[null,true,false,"\u0000x",{}],"b":{"c":[]}})";
  EXPECT_EQ(printed(text), text);
  for (const char* bad : {"", "{", "[1,]", "01", "1 2", "nul"}) EXPECT_EQ(printed(bad), "(none)");
}

}  // namespace
}  // namespace lookout::api::detail
