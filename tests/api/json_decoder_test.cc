// Single objects from JSON: a real server's objects are unchanged, and malformed ones are rejected.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "tests/api/recordings.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;

Object decode(std::string_view text) {
  JsonDecoder decoder;
  std::string copy(text);
  return decoder.decode(copy);
}

std::string error_of(std::string_view text) {
  JsonDecoder decoder;
  std::string copy(text);
  const Object object = decoder.decode(copy);
  EXPECT_EQ(static_cast<bool>(object), decoder.error().empty());
  return decoder.error();
}

/// `text` as the value of a member "v".
Value member(Object& object, std::string_view text) {
  object = decode("{\"v\":" + std::string(text) + "}");
  return object["v"];
}

void shuffle_members(rapidjson::Value& value, std::mt19937& random,
                     rapidjson::Document::AllocatorType& allocator) {
  if (value.IsArray()) {
    for (auto& element : value.GetArray()) shuffle_members(element, random, allocator);
  } else if (value.IsObject()) {
    std::vector<std::pair<rapidjson::Value, rapidjson::Value>> members;
    for (auto& [name, one] : value.GetObject()) {
      shuffle_members(one, random, allocator);
      members.emplace_back(std::move(name), std::move(one));
    }
    std::shuffle(members.begin(), members.end(), random);
    value.SetObject();
    for (auto& [name, one] : members) value.AddMember(name, one, allocator);
  }
}

TEST(JsonDecoderTest, RecordedObjectsRoundTrip) {
  const auto items = test::all_recorded_items();
  ASSERT_GT(items.size(), 40u);
  for (const auto& text : items) {
    SCOPED_TRACE(text.substr(0, 200));
    const Object object = Object::parse(text);
    EXPECT_EQ(test::parse_json(object.to_json()), test::parse_json(text));
    EXPECT_EQ(Object::parse(object.to_json()), object);
    EXPECT_EQ(Object::parse(object.to_pretty_json()), object);
    EXPECT_EQ(Object::from(object.to_document()), object);
    EXPECT_EQ(Object::from(test::parse_json(text)), object);
  }
}

TEST(JsonDecoderTest, TheOrderOfMembersDoesNotMatter) {
  std::mt19937 random(1);
  for (const auto& text : test::all_recorded_items()) {
    const Object object = Object::parse(text);
    rapidjson::Document document = test::parse_json(text);
    for (int round = 0; round < 3; ++round) {
      shuffle_members(document, random, document.GetAllocator());
      EXPECT_EQ(Object::parse(test::to_json(document)), object) << test::to_json(document);
    }
  }
}

TEST(JsonDecoderTest, RejectsTruncatedObjects) {
  const std::string text = test::recorded_items("v1_configmaps").front();
  ASSERT_TRUE(decode(text));
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(error_of(std::string_view(text).substr(0, size)), "") << size;
}

TEST(JsonDecoderTest, AcceptsOnlyObjects) {
  for (const auto text : {"",
                          " ",
                          "null",
                          "true",
                          "1",
                          "\"a\"",
                          "[]",
                          "[{}]",
                          "x",
                          "\xEF\xBB\xBF{}",
                          "{}{}",
                          "{} x",
                          "{},",
                          "}",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{'a':1}",
                          "{\"a\":1 \"b\":2}",
                          "{\"a\":[1,]}",
                          "{\"a\":tru}",
                          "{\"a\":[}",
                          "{\"a\":\"\n\"}",
                          "{\"a\":\"\\x\"}",
                          "// comment\n{}"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  for (const auto text : {"{}", " {} ", "\r\n\t{ }\n", "{\"a\" : [ ] }"})
    EXPECT_EQ(error_of(text), "") << text;
}

TEST(JsonDecoderTest, ErrorsHaveReasonAndPosition) {
  const struct {
    std::string_view text;
    const char* why;
    const char* where;
  } cases[] = {
      {"[]", "expected a JSON object", "byte 0"},
      {"{\"a\":1,}", "Missing a name", "byte 7"},
      {"{\"a\":\xFF}", "invalid UTF-8", "byte 5"},
      {"{\"a\":1}\0 "sv, "NUL", "byte 7"},
  };
  for (const auto& [text, why, where] : cases)
    EXPECT_THAT(error_of(text), AllOf(HasSubstr(why), HasSubstr(where)));
  EXPECT_THROW(Object::parse("{"), DecodeError);
}

TEST(JsonDecoderTest, RejectsInvalidUtf8) {
  const std::string_view bad[] = {
      "\x80",              // a continuation without a lead
      "\xBF\xBF",          //
      "\xC3",              // cut off
      "\xC3(",             // a lead without a continuation
      "\xE4\xBD",          //
      "\xE4\xBD(",         //
      "\xF0\x9F\x98",      //
      "\xC0\x80",          // overlong
      "\xC1\xBF",          //
      "\xE0\x80\x80",      //
      "\xF0\x80\x80\x80",  //
      "\xED\xA0\x80",      // surrogates
      "\xED\xBF\xBF",      //
      "\xF4\x90\x80\x80",  // beyond U+10FFFF
      "\xF5\x80\x80\x80",  //
      "\xF8\x88\x80\x80\x80",
      "\xFE",
      "\xFF",
  };
  for (const auto bytes : bad) {
    for (const std::size_t before : {0u, 1u, 7u, 30u}) {
      const std::string text = std::string(before, 'x').append(bytes);
      EXPECT_THAT(error_of("{\"a\":\"" + text + "\"}"), HasSubstr("UTF-8"));
      EXPECT_THAT(error_of("{\"" + text + "\":1}"), HasSubstr("UTF-8"));
    }
  }
  for (const std::string text :
       {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(lookout::test::held(decode("{\"" + text + "\":\"" + text + "\"}"))[text].as_string(),
              text);
  }
}

TEST(JsonDecoderTest, DecodesEscapesAndReplacesLoneSurrogates) {
  const struct {
    const char* json;
    std::string_view text;
  } cases[] = {
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("\u0041\u00e9\u4f60\uD83D\uDE80")", "A\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x9A\x80"},
      {R"("a\u0000b")", "a\0b"sv},
      {R"("\uFFFF\uE000\uD7FF")", "\xEF\xBF\xBF\xEE\x80\x80\xED\x9F\xBF"},
  };
  Object object;
  for (const auto& [json, text] : cases) EXPECT_EQ(member(object, json).as_string(), text) << json;
  // As in Go, also next to a number that FastJson rejects.
  const std::pair<std::string, std::string> lone[] = {
      {R"(\uD83D)", "\uFFFD"},
      {R"(\uDFFF)", "\uFFFD"},
      {R"(\uDE80\uD83D)", "\uFFFD\uFFFD"},
      {R"(\uD83D\uD83D\uDE80)", "\uFFFD\U0001F680"},
      {R"(\uD83D\n)", "\uFFFD\n"},
      {R"(\uD83D\u0041)", "\uFFFDA"},
      {R"(\\uD83D)", "\\uD83D"},
  };
  for (const auto& [json, text] : lone) {
    for (const std::string around : {"", "x", "xxxxxxxxxxxxxxxxxxxx"}) {
      for (const std::string number : {"1", "1.5"}) {
        const Object got = Object::parse("{\"z\":" + number + ",\"a\":\"" + around + json + around +
                                         "\",\"" + json + "\":true}");
        EXPECT_EQ(got["a"].as_string(), around + text + around) << json << number;
        EXPECT_TRUE(got[text].as_bool()) << json << number;
      }
    }
  }
  EXPECT_NE(error_of(R"({"a":"\uD83D\u00g0"})"), "");
  EXPECT_NE(error_of(R"({"a":"\uD83D\q"})"), "");
  EXPECT_NE(error_of(R"({"a":"\uD83D\u12"})"), "");
}

TEST(JsonDecoderTest, NestingIsLimited) {
  const auto nested = [](std::size_t depth, std::string_view open, std::string_view close) {
    std::string text = "{\"a\":";
    for (std::size_t i = 1; i < depth; ++i) text += open;
    text += "1";
    for (std::size_t i = 1; i < depth; ++i) text += close;
    return text + "}";
  };
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    const std::string deep = nested(1000, open, close);
    const Object object = decode(deep);
    ASSERT_TRUE(object);
    EXPECT_EQ(object.to_json(), deep);
    EXPECT_EQ(Object::from(object.to_document()), object);
    EXPECT_EQ(Object::parse(object.to_pretty_json()), object);
    EXPECT_THAT(error_of(nested(1001, open, close)), HasSubstr("nested too deeply"));
    EXPECT_THAT(error_of(nested(1000000, open, close)), HasSubstr("nested too deeply"));

    // An event may contain the same objects as a list.
    JsonDecoder decoder;
    std::string event = "{\"type\":\"ADDED\",\"object\":" + deep + "}";
    EXPECT_TRUE(decoder.decode_event(event));
    event = "{\"type\":\"ADDED\",\"object\":" + nested(1001, open, close) + "}";
    EXPECT_FALSE(decoder.decode_event(event));
    EXPECT_THAT(decoder.error(), HasSubstr("nested too deeply"));

    rapidjson::Document document;
    document.Parse(nested(1001, open, close).c_str());
    EXPECT_THROW(Object::from(document), DecodeError);
  }
  EXPECT_NE(error_of(std::string(1000000, '[')), "");
}

TEST(JsonDecoderTest, NumbersKeepTheirValue) {
  using I = std::numeric_limits<std::int64_t>;
  using U = std::numeric_limits<std::uint64_t>;
  const double infinity = std::numeric_limits<double>::infinity();
  const struct {
    const char* json;
    const char* encoded;
    std::optional<std::int64_t> integer;
    std::optional<std::uint64_t> unsigned_integer;
    double real;
  } cases[] = {
      {"0", "0", 0, 0, 0},
      {"47", "47", 47, 47, 47},
      {"48", "48", 48, 48, 48},
      {"-1", "-1", -1, {}, -1},
      {"9223372036854775807", "9223372036854775807", I::max(), I::max(), 0x1p63},
      {"-9223372036854775808", "-9223372036854775808", I::min(), {}, -0x1p63},
      {"9223372036854775808", "9223372036854775808", {}, std::uint64_t{1} << 63, 0x1p63},
      {"18446744073709551615", "18446744073709551615", {}, U::max(), 0x1p64},
      // Too many digits for 64 bits or a double: kept as text.
      {"18446744073709551616", "18446744073709551616", {}, {}, 0x1p64},
      {"-9223372036854775809", "-9223372036854775809", {}, {}, -0x1p63},
      {"123456789012345678901234567890",
       "123456789012345678901234567890",
       {},
       {},
       123456789012345678901234567890.0},
      {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827", {}, {}, 0.1},
      {"1.8e308", "1.8e308", {}, {}, infinity},
      {"-1.8e308", "-1.8e308", {}, {}, -infinity},
      {"1E-400", "1E-400", {}, {}, 0},
      {"5.0", "5.0", 5, 5, 5},
      {"-0", "-0.0", 0, 0, 0},
      {"-0.0", "-0.0", 0, 0, 0},
      {"0.1", "0.1", {}, {}, 0.1},
      {"0.10", "0.1", {}, {}, 0.1},
      {"1e2", "100.0", 100, 100, 100},
      {"1E+2", "100.0", 100, 100, 100},
      {"1e22", "1e+22", {}, {}, 1e22},
      {"1.2345678901234568e20", "1.2345678901234568e+20", {}, {}, 1.2345678901234568e20},
      {"1.7976931348623157e308",
       "1.7976931348623157e+308",
       {},
       {},
       std::numeric_limits<double>::max()},
      {"5e-324", "5e-324", {}, {}, std::numeric_limits<double>::denorm_min()},
      {"0e10", "0.0", 0, 0, 0},
  };
  for (const auto& [json, encoded, integer, unsigned_integer, real] : cases) {
    SCOPED_TRACE(json);
    Object object;
    const Value value = member(object, json);
    ASSERT_TRUE(value.is_number());
    EXPECT_EQ(value.to_json(), encoded);
    EXPECT_EQ(value.to_int(), integer);
    EXPECT_EQ(value.to_uint(), unsigned_integer);
    EXPECT_EQ(value.to_double(), real);
    EXPECT_EQ(decode(object.to_json()), object);
  }
}

TEST(JsonDecoderTest, IntegersAndFloatingPointNumbersDiffer) {
  EXPECT_EQ(decode(R"({"a":5.0})"), decode(R"({"a":5.00})"));
  EXPECT_EQ(decode(R"({"a":5.0})"), decode(R"({"a":0.5e1})"));
  EXPECT_NE(decode(R"({"a":5})"), decode(R"({"a":5.0})"));
  EXPECT_NE(decode(R"({"a":0})"), decode(R"({"a":-0})"));
}

// Go rejects these as well.
TEST(JsonDecoderTest, RejectsNumbersBeyondADouble) {
  for (const std::string& text : {std::string("1e400"), std::string("-1e400"),
                                  std::string("1e99999999999999999999"), std::string(400, '9')}) {
    EXPECT_THAT(error_of("{\"a\":" + text + "}"), HasSubstr("Number too big")) << text;
  }
}

TEST(JsonDecoderTest, RejectsInvalidNumbers) {
  for (const std::string text : {"+1", "01", "-", "-01", ".5", "5.", "1e", "1e+", "1.e5", "0x10",
                                 "NaN", "Infinity", "-Infinity", "1_000", "--1"}) {
    EXPECT_NE(error_of("{\"a\":" + text + "}"), "") << text;
    EXPECT_NE(error_of("{\"a\":[" + text + "]}"), "") << text;
  }
}

TEST(JsonDecoderTest, NumbersBeyondADocumentBecomeTheNearestDouble) {
  const auto via_document = [](const char* json) {
    Object object;
    member(object, json);
    return lookout::test::held(Object::from(object.to_document()))["v"].to_json();
  };
  EXPECT_EQ(via_document("18446744073709551616"), "1.8446744073709552e+19");
  EXPECT_EQ(via_document("1.8e308"), "1.7976931348623157e+308");
  EXPECT_EQ(via_document("-1.8e308"), "-1.7976931348623157e+308");
  EXPECT_EQ(via_document("1e-400"), "0.0");
  EXPECT_EQ(via_document("18446744073709551615"), "18446744073709551615");
}

TEST(JsonDecoderTest, TheLastDuplicateMemberCounts) {
  const lookout::test::TextCase cases[] = {
      {R"({"a":1,"a":2})", R"({"a":2})"},
      {R"({"spec":1,"x":0,"spec":{"y":[]}})", R"({"x":0,"spec":{"y":[]}})"},
      {R"({"kind":"A","kind":"B"})", R"({"kind":"B"})"},
      {R"({"a":{"b":1,"c":2,"b":3},"a":{"c":4}})", R"({"a":{"c":4}})"},
      {R"({"f:name":1,"name":2,"f:name":3})", R"({"name":2,"f:name":3})"},
      {R"({"":1,"":2})", R"({"":2})"},
      {R"({"a":1,"\u0061":2})", R"({"a":2})"},
      {R"({"metadata":{"name":"x"},"metadata":{"namespace":"y"}})",
       R"({"metadata":{"namespace":"y"}})"},
  };
  for (const auto& [json, same] : cases) EXPECT_EQ(decode(json), decode(same)) << json;
}

TEST(JsonDecoderTest, RejectsNul) {
  for (const auto text :
       {"\0{}"sv, "{}\0"sv, "{}\0\0\0"sv, "{}\0{}"sv, "{\0}"sv, "{\"a\":\"\0\"}"sv, "{\"\0\":1}"sv,
        "{\"a\":1\0}"sv, "{\"a\":1\0,\"b\":2}"sv}) {
    EXPECT_NE(error_of(text), "");
  }
}

TEST(JsonDecoderTest, KeysAndStringsOfAnyLength) {
  std::string json = "{";
  const std::size_t sizes[] = {0, 1, 29, 30, 31, 62, 63, 64, 127, 128, 129, 16383, 16384, 70000};
  for (const std::size_t size : sizes) {
    if (size != 0) json += ",";
    json += "\"" + std::string(size, 'k') + "\":\"" + std::string(size, 'v') + "\"";
  }
  const Object object = decode(json + "}");
  ASSERT_TRUE(object);
  EXPECT_EQ(object.body().size(), std::size(sizes));
  for (const std::size_t size : sizes) {
    EXPECT_EQ(object[std::string(size, 'k')].to_string_view(), std::string(size, 'v')) << size;
    EXPECT_FALSE(object[std::string(size, 'x')].exists() && size != 0);
  }
  EXPECT_EQ(Object::parse(object.to_json()), object);
}

TEST(JsonDecoderTest, AcceptsAVeryLargeObject) {
  constexpr std::size_t kSize = 64u << 20;
  const std::string text(kSize, 'x');
  const Object object = decode(R"({"data":{"a":")" + text + R"("},"metadata":{"name":"big"}})");
  ASSERT_TRUE(object);
  EXPECT_EQ(object.name(), "big");
  EXPECT_EQ(object["data"]["a"].as_string().size(), kSize);
  EXPECT_EQ(object["data"]["a"].as_string(), text);
  EXPECT_GT(object.memory_size(), kSize);
}

TEST(JsonDecoderTest, RejectsHugeDeepObjectsEarly) {
  const auto object_of = [](std::size_t depth, std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i)
      text += "{\"b\":0,\"a\":";  // to be sorted at each level
    text += "\"" + std::string(size, 'x') + "\"";
    return text + std::string(depth, '}');
  };
  EXPECT_THAT(error_of(object_of(900, 64u << 20)), HasSubstr("too large for its nesting depth"));
  EXPECT_EQ(error_of(object_of(900, 100 << 10)), "");
  EXPECT_EQ(error_of(object_of(10, 64u << 20)), "");
  EXPECT_EQ(error_of(object_of(100, 1u << 20)), "");
}

TEST(JsonDecoderTest, ADefaultTypeAppliesToUntypedObjects) {
  JsonDecoder decoder;
  decoder.set_default_type("v1", "Pod");
  const auto with_default = [&](std::string text) { return decoder.decode(text); };
  EXPECT_EQ(with_default(R"({"spec":{}})"),
            decode(R"({"apiVersion":"v1","kind":"Pod","spec":{}})"));
  EXPECT_EQ(with_default(R"({"kind":"A","apiVersion":"b/v1"})"),
            decode(R"({"apiVersion":"b/v1","kind":"A"})"));
  EXPECT_EQ(with_default(R"({"spec":{"kind":"A"}})").kind(), "Pod");
  EXPECT_FALSE(with_default("{"));
  EXPECT_EQ(with_default("{}").kind(), "Pod") << "after a failure";
}

TEST(JsonDecoderTest, ContinuesAfterAnError) {
  JsonDecoder decoder;
  for (const char* bad : {"{\"a\":{\"b\":[1,2,{", "[", "{\"a\":\"\xFF\"}", ""}) {
    std::string text = bad;
    EXPECT_FALSE(decoder.decode(text));
    text = R"({"a":1})";
    EXPECT_EQ(decoder.decode(text), decode(R"({"a":1})"));
  }
}

TEST(JsonDecoderTest, DecodesEvents) {
  JsonDecoder decoder;
  const auto event = [&](std::string text) { return decoder.decode_event(text); };
  const auto good = event(R"({"type":"ADDED","object":{"kind":"Pod"}})");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->type, EventType::kAdded);
  EXPECT_EQ(good->object, decode(R"({"kind":"Pod"})"));
  for (const auto type : {EventType::kAdded, EventType::kModified, EventType::kDeleted,
                          EventType::kBookmark, EventType::kError}) {
    const auto one = event("{\"type\":\"" + std::string(to_string(type)) + "\",\"object\":{}}");
    ASSERT_TRUE(one);
    EXPECT_EQ(one->type, type);
  }
  // In any order, with unknown members and duplicates.
  for (const char* text :
       {R"({"object":{"kind":"Pod"},"type":"ADDED"})",
        R"({"x":[1,{"type":"DELETED"}],"type":"ADDED","y":"z","object":{"kind":"Pod"},"n":null})",
        R"({"type":"DELETED","object":{"kind":"A"},"type":"ADDED","object":{"kind":"Pod"}})"}) {
    const auto one = event(text);
    ASSERT_TRUE(one) << text << decoder.error();
    EXPECT_EQ(one->type, EventType::kAdded);
    EXPECT_EQ(one->object, good->object);
  }
  const struct {
    const char* text;
    const char* why;
  } bad[] = {
      {"{}", "no object"},
      {R"({"type":"ADDED"})", "no object"},
      {R"({"object":{}})", "no type"},
      {R"({"type":"","object":{}})", "no type"},
      {R"({"type":"added","object":{}})", "unknown event type"},
      {R"({"type":1,"object":{}})", "not a string"},
      {R"({"type":["ADDED"],"object":{}})", "not a string"},
      {R"({"type":"ADDED","object":[]})", "not an object"},
      {R"({"type":"ADDED","object":null})", "not an object"},
      {R"({"type":"ADDED","object":"x"})", "not an object"},
      {R"({"type":"ADDED","object":{})", ""},
      {R"({"type":"ADDED","x":{"name":1,"kind":{},"name":2)", "not closed"},
      {"[]", "expected a JSON object"},
  };
  for (const auto& [text, why] : bad) {
    EXPECT_FALSE(event(text)) << text;
    EXPECT_THAT(decoder.error(), HasSubstr(why)) << text;
    EXPECT_NE(decoder.error(), "");
    EXPECT_TRUE(event(R"({"type":"ADDED","object":{}})")) << "after " << text;
  }
}

}  // namespace
}  // namespace lookout::api
