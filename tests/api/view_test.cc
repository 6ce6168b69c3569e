#include "lookout/api/view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

/// A value from its JSON, valid for the rest of the test.
class ViewTest : public testing::Test {
 protected:
  Value value(std::string_view json) {
    objects_.push_back(Object::parse("{\"v\":" + std::string(json) + "}"));
    return objects_.back()["v"];
  }

 private:
  std::vector<Object> objects_;
};

TEST_F(ViewTest, IntOrString) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  const struct {
    const char* json;
    std::int32_t number;
    const char* text;
  } cases[] = {
      {"80", 80, "80"},
      {"-1", -1, "-1"},
      {"\"http\"", 0, "http"},
      {"\"80\"", 80, "80"},
      {"\"+80\"", 80, "+80"},
      {"\"\"", 0, ""},
      {"\"80x\"", 0, "80x"},
      {"\"25%\"", 0, "25%"},
      {"3000000000", kMax, "2147483647"},
      {"\"3000000000\"", kMax, "3000000000"},
  };
  for (const auto& [json, number, text] : cases) {
    const IntOrString one{value(json)};
    EXPECT_TRUE(one);
    EXPECT_EQ(one.is_string(), *json == '"') << json;
    EXPECT_EQ(one.is_int(), *json != '"') << json;
    EXPECT_EQ(one.int_value(), number) << json;
    EXPECT_EQ(one.to_string(), text) << json;
  }
  EXPECT_FALSE(IntOrString());
  EXPECT_FALSE(IntOrString(value("null")));
  EXPECT_EQ(IntOrString().int_value(), 0);
  EXPECT_EQ(IntOrString().to_string(), "");
}

TEST_F(ViewTest, PercentagesAreScaled) {
  using Result = std::optional<std::int32_t>;
  const struct {
    const char* json;
    std::int32_t total;
    bool round_up;
    Result scaled;
  } cases[] = {
      {"5", 100, true, 5},
      {"\"25%\"", 10, true, 3},
      {"\"25%\"", 10, false, 2},
      {"\"25%\"", 8, true, 2},
      {"\"0%\"", 8, true, 0},
      {"\"100%\"", 7, false, 7},
      {"\"150%\"", 3, false, 4},
      {"\"-25%\"", 10, true, -2},
      {"\"-25%\"", 10, false, -3},
      {"\"+50%\"", 10, true, 5},
      {"\"1%\"", 0, true, 0},
      {"\"2147483647%\"", 2147483647, true, 2147483647},
      {"\"25\"", 10, true, {}},
      {"\"%\"", 10, true, {}},
      {"\"a%\"", 10, true, {}},
      {"\"2.5%\"", 10, true, {}},
      {"\"25 %\"", 10, true, {}},
      {"\"\"", 10, true, {}},
      {"\"99999999999999999999%\"", 10, true, {}},
      {"null", 10, true, {}},
  };
  for (const auto& [json, total, round_up, scaled] : cases)
    EXPECT_EQ(IntOrString(value(json)).scaled(total, round_up), scaled) << json << " of " << total;
}

TEST_F(ViewTest, BytesAreBase64) {
  EXPECT_EQ(Bytes(value("\"AAECAwT/\"")).decode(), std::string("\0\x01\x02\x03\x04\xFF", 6));
  EXPECT_EQ(Bytes(value("\"AAEC\"")).base64(), "AAEC");
  EXPECT_EQ(Bytes(value("\"not base64\"")).decode(), std::nullopt);
  EXPECT_EQ(Bytes(value("7")).decode(), "");
  EXPECT_TRUE(Bytes().empty());
}

TEST_F(ViewTest, OptionalBooleansDoNotConvertImplicitly) {
  const OptionalBool yes = from_value<OptionalBool>(value("true"));
  const OptionalBool no = from_value<OptionalBool>(value("false"));
  const OptionalBool absent = from_value<OptionalBool>(Value());
  EXPECT_TRUE(yes == true);
  EXPECT_TRUE(no == false);
  EXPECT_FALSE(absent == true);
  EXPECT_FALSE(absent == false);
  EXPECT_TRUE(absent.value_or(true));
  EXPECT_FALSE(absent.has_value());
  EXPECT_EQ(absent, OptionalBool());
  static_assert(!std::is_convertible_v<OptionalBool, bool>);
  static_assert(!std::is_constructible_v<bool, OptionalBool>);
}

TEST_F(ViewTest, NumbersThatDoNotFitReadAsAbsent) {
  using I32 = std::optional<std::int32_t>;
  using I64 = std::optional<std::int64_t>;
  EXPECT_EQ(from_value<I32>(value("2147483647")), 2147483647);
  EXPECT_EQ(from_value<I32>(value("2147483648")), std::nullopt);
  EXPECT_EQ(from_value<I32>(value("-2147483649")), std::nullopt);
  EXPECT_EQ(from_value<I32>(value("5.0")), 5);
  EXPECT_EQ(from_value<I32>(value("5.5")), std::nullopt);
  EXPECT_EQ(from_value<std::int32_t>(value("2147483648")), 0);
  EXPECT_EQ(from_value<I64>(value("9223372036854775808")), std::nullopt);
  EXPECT_EQ(from_value<I64>(value("\"5\"")), std::nullopt);
  EXPECT_EQ(from_value<std::int64_t>(value("-5")), -5);
}

TEST_F(ViewTest, QuantitiesMayBeNumbers) {
  EXPECT_EQ(from_value<Quantity>(value("\"500m\"")), Quantity::parse("500m"));
  EXPECT_EQ(from_value<Quantity>(value("2")), Quantity::parse("2"));
  EXPECT_EQ(from_value<Quantity>(value("0.5")), Quantity::parse("500m"));
  EXPECT_EQ(from_value<Quantity>(value("1e22")), Quantity::parse("1e22"));
  EXPECT_EQ(from_value<Quantity>(value("\"?\"")), Quantity());
  EXPECT_EQ(from_value<std::optional<Quantity>>(value("\"?\"")), std::nullopt);
  EXPECT_EQ(from_value<std::optional<Quantity>>(Value()), std::nullopt);
}

TEST_F(ViewTest, ListsAndMaps) {
  const ListView<std::string_view> list(value(R"(["a","b",7])"));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_FALSE(list.empty());
  EXPECT_THAT(std::vector<std::string>(list.begin(), list.end()), ElementsAre("a", "b", ""));
  EXPECT_EQ(list[1], "b");
  EXPECT_EQ(list[9], "");

  const MapView<std::string_view> map(value(R"({"a":"1","b":"2","n":null})"));
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map["a"], "1");
  EXPECT_EQ(map["z"], "");
  EXPECT_EQ(map.find("b"), "2");
  EXPECT_EQ(map.find("z"), std::nullopt);
  EXPECT_TRUE(map.contains("a"));
  EXPECT_FALSE(map.contains("z"));
  std::string all;
  for (const auto& [key, text] : map) all += std::string(key) + "=" + std::string(text) + " ";
  EXPECT_EQ(all, "a=1 b=2 n= ");

  for (const char* json : {"null", "7", "\"x\"", "{}"})
    EXPECT_TRUE(ListView<int>(value(json)).empty());
  for (const char* json : {"null", "7", "\"x\"", "[]"})
    EXPECT_TRUE(MapView<int>(value(json)).empty());
  EXPECT_EQ(ListView<int>().begin(), ListView<int>().end());
  EXPECT_EQ(MapView<int>().size(), 0u);
}

TEST_F(ViewTest, AViewOfNullIsEmpty) {
  EXPECT_FALSE(View());
  EXPECT_FALSE(View(value("null")));
  EXPECT_TRUE(View(value("{}")));
}

}  // namespace
}  // namespace lookout::api
