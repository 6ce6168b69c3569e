// FastJson parses the usual JSON, RapidJSON the rest: both must produce equal objects.
#include "lookout/api/detail/fast_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lookout/api/json.h"
#include "lookout/api/object.h"

namespace lookout::api {
namespace {

/// The decoded value, with or without a sibling that only the general parser accepts (a number with a
/// fraction).
Object decode(std::string_view value, bool by_general_parser, const Projection& projection = {}) {
  std::string text = by_general_parser ? R"({"z":1.5,"a":)" : R"({"z":1,"a":)";
  text.append(value).append("}");
  JsonDecoder decoder(projection);
  return decoder.decode(text);
}

class FastJsonTest : public testing::TestWithParam<std::string_view> {};

TEST_P(FastJsonTest, EqualsTheGeneralParser) {
  const Object fast = decode(GetParam(), false);
  const Object general = decode(GetParam(), true);
  ASSERT_EQ(static_cast<bool>(fast), static_cast<bool>(general)) << GetParam();
  if (!fast) return;
  EXPECT_EQ(fast["a"], general["a"]) << GetParam();
  EXPECT_EQ(fast["a"].to_json(), general["a"].to_json());
}

TEST_P(FastJsonTest, SkipsTheSameTexts) {
  const auto projection = Projection::keep({"b"});
  EXPECT_EQ(static_cast<bool>(decode(GetParam(), false, projection)),
            static_cast<bool>(decode(GetParam(), true, projection)))
      << GetParam();
}

constexpr std::string_view kTexts[] = {
    // Valid ones.
    R"({})",
    R"([])",
    R"([[],{},[{}]])",
    R"({"b":{"c":[1,2,{"d":null}]},"e":[true,false]})",
    R"({"b":{},"c":[{},{}],"d":{ }})",
    R"({"b":{}})",
    R"({}})",
    R"({]})",
    R"("")",
    R"("0123456789abcdef")",
    R"("0123456789abcde")",
    R"("x\"y\\z\/\b\f\n\r\t")",
    R"({"k:{\"name\":\"web\"}":{".":{},"f:image":{}}})",
    R"("\u00e4\ud83d\ude00")",
    R"("\u0026a\u003C\u003e\u0000\u07ff\u0800\uffff\uD800\uDC00\udbff\udfff")",
    R"("\ud800")",
    R"("\udc00")",
    R"("\ud800\n")",
    R"("\ud800\ud800")",
    R"("\ud800\u0041")",
    R"("\ud800\u00g0")",
    R"({"\u0062":"\u0063"})",
    "\"\xc3\xa4\xf0\x9f\x98\x80\"",
    R"(0)",
    R"(-0)",
    R"(-1)",
    R"(47)",
    R"(123456789012345678)",
    R"(1234567890123456789)",
    R"(18446744073709551615)",
    R"(99999999999999999999)",
    R"(1.25)",
    R"(1e3)",
    R"(-1.5E-3)",
    " { \"b\" :\t[ 1 ,\n2 ] , \"c\" : \"d\" }\r\n",
    R"({"b":1,"b":2})",
    R"({"name":"x","kind":"y","name":"z"})",
    R"({"":""})",
    // Invalid ones.
    R"()",
    R"({)",
    R"([)",
    R"({"b"})",
    R"({"b":})",
    R"({"b":1,})",
    R"([1,])",
    R"([1 2])",
    R"({b:1})",
    R"({'b':1})",
    R"([1}])",
    R"({"b":1]})",
    R"("x)",
    R"("\x")",
    R"("\u12")",
    R"("\u00g0")",
    R"("\u")",
    R"("\u12)",
    "\"a\nb\"",
    "\"a\x01\"",
    R"(tru)",
    R"(nulL)",
    R"(True)",
    R"(01)",
    R"(-)",
    R"(+1)",
    R"(.5)",
    R"(1.)",
    R"(1e)",
    R"(0x10)",
    R"(1e400)",
    R"(NaN)",
    R"(// x)",
    R"(1,"b":)",
    R"(1}{)",
    "\"\xff\"",
    std::string_view("\"a\0b\"", 5),
    std::string_view("1\0", 2),
};

INSTANTIATE_TEST_SUITE_P(Texts, FastJsonTest, testing::ValuesIn(kTexts));

/// Accepts everything.
struct Listener {
  bool Null() { return true; }
  bool Bool(bool) { return true; }
  bool RawNumber(const char*, unsigned, bool) { return true; }
  bool String(const char* text, unsigned size, bool) {
    last.assign(text, size);
    return true;
  }
  bool StartObject() { return true; }
  bool Key(const char*, unsigned, bool) { return true; }
  bool EndObject(unsigned) { return true; }
  bool empty_object() { return true; }
  bool StartArray() { return true; }
  bool EndArray(unsigned) { return true; }
  bool skipping() const { return false; }
  void skipped() {}
  std::size_t recall(std::string_view, std::size_t&) { return 0; }
  void remember(std::string_view, std::size_t) {}
  std::string last;
};

// Go escapes <, > and & like this: such objects must not be parsed twice.
TEST(FastJson, ParsesUnicodeEscapes) {
  Listener listener;
  detail::FastJson<Listener> parser(listener);
  std::string text = R"({"a":"x\u0026\u00e4\u20ac\ud83d\ude00y"})";
  const std::size_t size = text.size();
  text.append(16, '\0');
  EXPECT_TRUE(parser.parse({text.data(), size}));
  EXPECT_EQ(listener.last, "x&\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80y");
}

// RapidJSON overlooked some, depending on the address.
TEST(FastJson, BothParsersRejectControlCharactersAnywhere) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (char c = 1; c < 0x20; ++c) {
      const std::string value = '"' + std::string(before, 'x') + c + std::string(20, 'y') + '"';
      EXPECT_FALSE(decode(value, false)) << before << " " << int{c};
      EXPECT_FALSE(decode(value, true)) << before << " " << int{c};
      EXPECT_FALSE(decode("{" + value + ":1}", true)) << before << " " << int{c};
    }
  }
  EXPECT_TRUE(decode("[\n\t\"a\\\"\" ,\r\n\"\\\\\"]", true));
}

TEST(FastJson, LeavesNoPartialResultsWhenItGivesUp) {
  // The items' default type, and members before the unusual one, once each.
  JsonDecoder decoder;
  decoder.set_default_type("v1", "Pod");
  std::string text = R"({"metadata":{"name":"a"},"spec":{"x":["y"],"share":0.5}})";
  EXPECT_EQ(decoder.decode(text).to_json(),
            Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},)"
                          R"("spec":{"x":["y"],"share":0.5}})")
                .to_json());
  std::string event = R"({"type":"MODIFIED","object":{"metadata":{"name":"a"},"share":0.5}})";
  const auto decoded = decoder.decode_event(event);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->type, EventType::kModified);
  EXPECT_EQ(decoded->object, Object::parse(R"({"metadata":{"name":"a"},"share":0.5})"));
}

}  // namespace
}  // namespace lookout::api
