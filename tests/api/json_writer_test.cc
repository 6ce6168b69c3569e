#include "lookout/api/detail/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <string_view>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/object.h"
#include "tests/support/sanitizers.h"

namespace lookout::api {
namespace {

Object with_number(double number) {
  detail::FlatWriter writer;
  writer.begin_object();
  writer.key("v");
  writer.real(number);
  writer.end_object();
  return writer.finish();
}

TEST(JsonWriterTest, DoublesRoundTripBitForBit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < (lookout::test::kSanitized ? 20000 : 200000); ++i) {
    double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    if (i % 2 == 0)
      number = std::trunc(std::ldexp(1.0 + number / 1e308, static_cast<int>(random() % 80)));
    const Object object = with_number(number);
    ASSERT_EQ(Object::parse(object.to_json()), object) << object.to_json();
  }
}

std::string json_string(std::string_view text) {
  std::string out;
  detail::write_json_string(text, out);
  return out;
}

TEST(JsonWriterTest, EscapesCharactersThatJsonForbids) {
  EXPECT_EQ(json_string("\"\\\b\f\n\r\t"), R"("\"\\\b\f\n\r\t")");
  EXPECT_EQ(json_string(std::string_view("\0\x01\x1A\x1F", 4)), R"("\u0000\u0001\u001A\u001F")");
  EXPECT_EQ(json_string("/ <>&'\x7F\xC3\xA4\xE2\x80\xA8"), "\"/ <>&'\x7F\xC3\xA4\xE2\x80\xA8\"");
}

TEST(JsonWriterTest, AcceptsAnEmptyTextWithANullPointer) {
  EXPECT_EQ(json_string(std::string_view()), R"("")");
}

TEST(JsonWriterTest, EscapesAtEveryPosition) {
  for (int c = 0; c < 256; ++c) {
    const std::string one(1, static_cast<char>(c));
    const std::string alone = json_string(one).substr(1, json_string(one).size() - 2);
    EXPECT_EQ(alone.size() > 1, c < 0x20 || c == '"' || c == '\\') << c;
    for (std::size_t before = 0; before < 20; ++before) {
      for (const std::size_t behind : {0u, 1u, 7u, 8u, 20u}) {
        const std::string left(before, before % 2 == 0 ? 'a' : '\xFF');
        const std::string right(behind, '!');
        ASSERT_EQ(json_string(left + one + right), "\"" + left + alone + right + "\"") << c;
      }
    }
  }
}

TEST(JsonWriterTest, WritesLongTextsBetweenOthers) {
  std::string json = R"({"a":[)";
  for (const std::size_t size : {0u, 1u, 2040u, 2046u, 2047u, 2048u, 2049u, 5000u})
    json += "\"" + std::string(size, 'x') + "\",";
  json += "1]}";
  EXPECT_EQ(Object::parse(json).to_json(), json);
}

TEST(JsonWriterTest, AppendsToTheBuffer) {
  std::string out = "x";
  const Object object = Object::parse(R"({"a":[]})");
  detail::write_json(object.body(), out);
  detail::write_pretty_json(object.body(), 1, out);
  EXPECT_EQ(out, "x{\"a\":[]}{\n \"a\": []\n}");
}

}  // namespace
}  // namespace lookout::api
