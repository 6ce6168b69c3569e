// Bodies of lists and watches, complete and in pieces, and hostile ones.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lookout/api/json.h"
#include "tests/api/recordings.h"
#include "tests/support/allocations.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/sanitizers.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;
using test::decode_list;
using test::decode_watch;
using test::DecodedList;
using test::DecodedWatch;

StreamOptions limited_to(std::size_t bytes) {
  StreamOptions options;
  options.max_object_bytes = bytes;
  return options;
}

std::vector<std::string> names_of(const DecodedList& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items) out.emplace_back(item.name());
  return out;
}

/// Nothing is missing or malformed.
void expect_whole(const test::Decoded& decoded) {
  EXPECT_TRUE(decoded.complete) << decoded.error;
  EXPECT_THAT(decoded.malformed, IsEmpty());
}

// --- recordings ---

class RecordedList : public testing::TestWithParam<std::string> {};

TEST_P(RecordedList, Decodes) {
  const std::string body = test::list_body(GetParam());
  const DecodedList list = decode_list(body);
  expect_whole(list);
  const auto document = test::parse_json(body);
  EXPECT_EQ(list.kind, document["kind"].GetString());
  EXPECT_EQ(list.api_version, document["apiVersion"].GetString());
  EXPECT_EQ(list.resource_version, document["metadata"]["resourceVersion"].GetString());
  EXPECT_EQ(list.continue_token, "");
  EXPECT_EQ(list.remaining_item_count, std::nullopt);

  std::vector<Object> expected;
  for (const auto& item : document["items"].GetArray()) {
    rapidjson::Document copy;
    copy.CopyFrom(item, copy.GetAllocator());
    if (!copy.HasMember("kind")) {  // the items of a typed list come without
      std::string kind = list.kind.substr(0, list.kind.size() - 4);
      copy.AddMember("kind", rapidjson::Value(kind.c_str(), copy.GetAllocator()),
                     copy.GetAllocator());
      copy.AddMember("apiVersion", rapidjson::Value(list.api_version.c_str(), copy.GetAllocator()),
                     copy.GetAllocator());
    }
    expected.push_back(Object::from(copy));
  }
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(list.items, expected);
}

TEST_P(RecordedList, MayBeSplitAnywhere) {
  const std::string body = test::list_body(GetParam());
  const DecodedList whole = decode_list(body);
  EXPECT_EQ(decode_list(body, {}, test::byte_by_byte()), whole);
  for (std::size_t i = 0; i <= body.size(); i += lookout::test::kPlaceStep) {
    ASSERT_EQ(decode_list(body, {}, test::cut_at(i)), whole) << "cut at " << i;
  }
}

TEST_P(RecordedList, IsIncompleteIfTruncated) {
  std::string body = test::list_body(GetParam());
  while (body.back() == '\n') body.pop_back();
  const auto whole = decode_list(body).items.size();
  for (std::size_t i = 0; i < body.size(); i += lookout::test::kPlaceStep) {
    const DecodedList list = decode_list(std::string_view(body).substr(0, i));
    ASSERT_FALSE(list.complete) << i;
    ASSERT_NE(list.error, "");
    ASSERT_LE(list.items.size(), whole);
    ASSERT_THAT(list.malformed, IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Kube136, RecordedList, testing::ValuesIn(test::recorded_lists()),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

class RecordedWatch : public testing::TestWithParam<std::string> {};

TEST_P(RecordedWatch, DecodesToItsEvents) {
  const std::string body = test::watch_body(GetParam());
  const DecodedWatch watch = decode_watch(body);
  expect_whole(watch);
  const auto lines = lookout::test::lines(body);
  ASSERT_EQ(watch.events.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = test::parse_json(lines[i]);
    EXPECT_EQ(to_string(watch.events[i].type), line["type"].GetString());
    EXPECT_EQ(watch.events[i].object, Object::from(line["object"]));
  }
}

TEST_P(RecordedWatch, MayBeSplitAnywhere) {
  const std::string body = test::watch_body(GetParam());
  const DecodedWatch whole = decode_watch(body);
  EXPECT_EQ(decode_watch(body, {}, test::byte_by_byte()), whole);
  // Two events at a time: the decoder keeps no earlier ones.
  const auto lines = lookout::test::lines(body);
  for (std::size_t line = 0; line < lines.size(); ++line) {
    std::string two = lines[line] + "\n";
    if (line + 1 < lines.size()) two += lines[line + 1] + "\n";
    const DecodedWatch expected = decode_watch(two);
    for (std::size_t i = 0; i <= two.size(); i += lookout::test::kPlaceStep)
      ASSERT_EQ(decode_watch(two, {}, test::cut_at(i)), expected) << line << " cut at " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kube136, RecordedWatch, testing::ValuesIn(test::recorded_watches()),
                         [](const auto& p) { return p.param; });

TEST(JsonStreamTest, TheRecordedWatchHasTheExpectedEvents) {
  std::vector<std::string> story;
  for (const auto& [type, object] : decode_watch(test::watch_body("rv_selector")).events)
    story.push_back(std::string(to_string(type)) + " " + std::string(object.name()));
  EXPECT_THAT(story,
              ElementsAre("ADDED a3", "ADDED a5", "DELETED a0", "ADDED a4", "MODIFIED a1",
                          "MODIFIED a2", "DELETED a2", "MODIFIED a3", "MODIFIED a3", "DELETED a3"));
  const auto events = decode_watch(test::watch_body("initial_events")).events;
  const auto bookmark = std::find_if(events.begin(), events.end(), [](const WatchEvent& e) {
    return e.type == EventType::kBookmark;
  });
  ASSERT_NE(bookmark, events.end());
  EXPECT_EQ(bookmark->object.annotations()[kInitialEventsEndAnnotation].as_string(), "true");
  EXPECT_EQ(bookmark->object.resource_version(), "41179");
}

TEST(JsonStreamTest, AnItemOfAListEqualsTheObjectOfAnEvent) {
  for (const auto& name : test::recorded_lists()) {
    const auto list = decode_list(test::list_body(name));
    std::string body;
    for (const auto& item : test::recorded_items(name))
      body += "{\"type\":\"ADDED\",\"object\":" + item + "}\n";
    const auto watch = decode_watch(body);
    ASSERT_EQ(watch.events.size(), list.items.size()) << name;
    for (std::size_t i = 0; i < list.items.size(); ++i)
      EXPECT_EQ(watch.events[i].object, list.items[i]) << name;
  }
}

// --- lists ---

TEST(JsonStreamTest, ItemsInheritTheTypeOfTheirList) {
  const auto type_of = [](std::string_view body, StreamOptions options = {}) {
    const auto list = decode_list(body, options);
    EXPECT_TRUE(list.complete) << list.error;
    EXPECT_THAT(list.items, SizeIs(1));
    return list.items.empty() ? "" : list.items[0].gvk().to_string();
  };
  StreamOptions asked;
  asked.api_version = "example.com/v1";
  asked.kind = "Thing";
  EXPECT_EQ(type_of(R"({"kind":"PodList","apiVersion":"v1","items":[{}]})"), "v1 Pod");
  EXPECT_EQ(type_of(R"({"kind":"PodList","apiVersion":"v1","items":[{}]})", asked), "v1 Pod");
  EXPECT_EQ(
      type_of(R"({"kind":"PodList","apiVersion":"v1","items":[{"kind":"A","apiVersion":"b/v2"}]})"),
      "b/v2 A");
  // Custom resources: the list's type follows its items, which have their own types.
  EXPECT_EQ(
      type_of(R"({"apiVersion":"a/v1","items":[{"kind":"A","apiVersion":"a/v1"}],"kind":"AList"})"),
      "a/v1 A");
  EXPECT_EQ(type_of(R"({"items":[{}],"kind":"ThingList","apiVersion":"example.com/v1"})", asked),
            "example.com/v1 Thing");
  EXPECT_EQ(type_of(R"({"items":[{}],"kind":"PodList","apiVersion":"v1"})"), " ");
  EXPECT_EQ(
      type_of(R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{}]})",
              asked),
      "example.com/v1 Thing");
  EXPECT_EQ(type_of(R"({"kind":"List","apiVersion":"v1","items":[{}]})", asked),
            "example.com/v1 Thing");
}

TEST(JsonStreamTest, MembersOfAListMayHaveAnyOrder) {
  const auto first = decode_list(
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c\"","remainingItemCount":3},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  ASSERT_TRUE(first.complete) << first.error;
  EXPECT_EQ(first.resource_version, "7");
  EXPECT_EQ(first.continue_token, "c\"");
  EXPECT_EQ(first.remaining_item_count, 3);
  auto last = decode_list(
      R"( { "items" : [ {"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"} , {"metadata":{"name":"b"},"apiVersion":"v1","kind":"Pod"} ] ,
          "x":1, "y":[{"items":[1]}], "z":null, "t":true, "s":"a\\\"]}", "f":-1.5e3,
          "metadata" : {"continue":"c\"","remainingItemCount":3,"resourceVersion":"7"} , "apiVersion":"v1","kind":"PodList" } )");
  EXPECT_EQ(last, first) << last.error;
}

TEST(JsonStreamTest, ListsWithoutItems) {
  for (const auto body : {R"({"kind":"PodList","apiVersion":"v1","items":[]})",
                          R"({"kind":"PodList","apiVersion":"v1","items":[ ]})",
                          R"({"items":null})", R"({"items": null ,"kind":"PodList"})"}) {
    const auto list = decode_list(body);
    EXPECT_TRUE(list.complete) << list.error;
    EXPECT_THAT(list.items, IsEmpty());
  }
}

TEST(JsonStreamTest, RejectsOtherBodiesThanLists) {
  const auto table =
      lookout::test::read_file(lookout::test::testdata("kube-1.36/list/v1_pods.table.json"));
  const struct {
    std::string_view body;
    const char* why;
  } cases[] = {
      {table, "kind \"Table\" without items"},
      {R"({"kind":"Status","apiVersion":"v1","status":"Failure"})",
       "kind \"Status\" without items"},
      {R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}})", "kind \"Pod\" without items"},
      {R"({"items":{"a":{}}})", "without items"},
      {R"({"items":"none"})", "without items"},
      {R"({"items":7})", "without items"},
      {"{}", "without items"},
      {"", "the body is empty"},
      {"  ", "the body is empty"},
      {"[]", "expected '{', got '['"},
      {"null", "expected '{', got 'n'"},
      {"<html>", "expected '{', got '<'"},
      {"\xFF", "expected '{', got '\\xff'"},
      {R"({"items":[1]})", "expected an item, got '1'"},
      {R"({"items":[null]})", "expected an item"},
      {R"({"items":[[]]})", "expected an item"},
      {R"({"items":[{},]})", "expected an item, got ']'"},
      {R"({"items":[,{}]})", "expected an item, got ','"},
      {R"({"items":[{}{}]})", "expected ',' or ']'"},
      {R"({"items":[}})", "expected an item, got '}'"},
      {R"({"items":[]]})", "expected ',' or '}'"},
      {R"({"items":[]}x)", "expected the end of the body, got 'x'"},
      {R"({"items":[]}{})", "expected the end of the body"},
      {R"({"items"})", "expected ':'"},
      {R"({items:[]})", "expected a member's name"},
      {R"({"items":[],})", "expected a member's name"},
      {R"({"items":[] "a":1})", "expected ',' or '}'"},
      {R"({"a":x})", "expected a value"},
      {"{\"kind\":\"\xFFList\",\"apiVersion\":\"v1\",\"items\":[{}]}", "kind is not UTF-8"},
      {R"({"metadata":{"a":[}],"items":[]})", "the metadata of the list"},
      {R"({"metadata":[],"items":[{"metadata":{"name":"a"}}]})", ""},
  };
  for (const auto& [body, why] : cases) {
    const auto list = decode_list(body);
    EXPECT_EQ(list.complete, *why == '\0') << body.substr(0, 100);
    EXPECT_THAT(list.error, HasSubstr(why));
    EXPECT_EQ(decode_list(body, {}, test::byte_by_byte()), list);
  }
}

TEST(JsonStreamTest, AMalformedItemDoesNotAffectOthers) {
  const auto list = decode_list(
      "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":["
      "{\"metadata\":{\"name\":\"a\"}},"
      "{\"metadata\":{\"name\":\"bad\",}},"
      "{\"metadata\":{\"name\":\"b\"}},"
      "{\"x\":\"\xFF\"},"
      "{\"x\":[}],"
      "{\"metadata\":{\"name\":\"c\"}}]}");
  EXPECT_TRUE(list.complete) << list.error;
  EXPECT_THAT(names_of(list), ElementsAre("a", "b", "c"));
  ASSERT_THAT(list.malformed, SizeIs(3));
  EXPECT_THAT(list.malformed[0].reason, HasSubstr("at byte"));
  EXPECT_EQ(list.malformed[0].key, "") << "who knows what comes behind it";
  EXPECT_EQ(list.malformed[0].bytes, 28u);
  EXPECT_THAT(list.malformed[1].reason, HasSubstr("invalid UTF-8"));
}

TEST(JsonStreamTest, AfterAFatalErrorIgnoresFurtherInput) {
  int items = 0;
  JsonListDecoder decoder(
      {}, [&](Object) { ++items; }, [](const MalformedObject&) {});
  EXPECT_TRUE(decoder.feed("{\"items\":[{}"));
  EXPECT_FALSE(decoder.feed(" x"));
  const std::string error = decoder.error();
  EXPECT_FALSE(decoder.feed(",{},{}]}"));
  EXPECT_FALSE(decoder.finish());
  EXPECT_EQ(decoder.error(), error);
  EXPECT_EQ(items, 1);
}

TEST(JsonStreamTest, IgnoresBracketsInsideStrings) {
  std::string strings;
  for (const char* text : {"}", "]", "\\\"}", "\\\\", "\\\\\\\"]", "{[", "\\u007d"})
    strings += std::string(strings.empty() ? "" : ",") + "\"" + text + "\"";
  for (std::size_t pad = 0; pad < 70; ++pad) {  // across the blocks of the scanner
    const std::string item = R"({"metadata":{"name":"a"},"p":")" + std::string(pad, '\\') +
                             std::string(pad % 2, '\\') + "\",\"s\":[" + strings + "]}";
    const auto list = decode_list("{\"items\":[" + item + "," + item + "]}");
    ASSERT_TRUE(list.complete) << list.error;
    ASSERT_EQ(list.items.size(), 2u);
    ASSERT_EQ(list.items[0], Object::parse(item));
  }
}

// --- limits ---

/// An object of about `size` bytes.
std::string large_item(std::string_view name, std::size_t size) {
  return "{\"metadata\":{\"name\":\"" + std::string(name) + "\"},\"data\":\"" +
         std::string(size, 'x') + "\"}";
}

test::Pieces pieces_of(std::size_t size) {
  return [=](std::string_view body, const test::Feed& feed) {
    bool fine = true;
    for (; !body.empty(); body.remove_prefix(std::min(size, body.size())))
      fine = feed(body.substr(0, size));
    return fine;
  };
}

TEST(JsonStreamTest, AcceptsAnObjectOf64MegabytesIfAllowed) {
  constexpr std::size_t kSize = 64u << 20;
  const std::string body = "{\"items\":[" + large_item("before", 10) + "," +
                           large_item("big", kSize) + "," + large_item("after", 10) + "]}";
  const auto list = decode_list(body, {}, pieces_of(64 << 10));
  EXPECT_TRUE(list.complete) << list.error;
  ASSERT_THAT(names_of(list), ElementsAre("before", "big", "after"));
  EXPECT_EQ(list.items[1]["data"].as_string(), std::string(kSize, 'x'));
}

TEST(JsonStreamTest, ObjectsBeyondTheLimitAreReportedAndSkipped) {
  constexpr std::size_t kSize = (lookout::test::kSanitized ? 8u : 64u) << 20;
  constexpr std::size_t kLimit = 1u << 20;
  const std::string big = large_item("big", kSize);
  const std::string items = large_item("before", 10) + "," + big + "," + large_item("after", 10);
  const std::string events = "{\"type\":\"ADDED\",\"object\":" + large_item("before", 10) +
                             "}{\"type\":\"ADDED\",\"object\":" + big +
                             "}\n{\"type\":\"ADDED\",\"object\":" + large_item("after", 10) + "}";
  for (const std::size_t piece : {std::size_t{64} << 10, std::size_t{3} << 20, 2 * kSize}) {
    SCOPED_TRACE(piece);
    lookout::test::take_largest_allocation();
    const auto list =
        decode_list("{\"items\":[" + items + "]}", limited_to(kLimit), pieces_of(piece));
    EXPECT_TRUE(list.complete) << list.error;
    EXPECT_THAT(names_of(list), ElementsAre("before", "after"));
    ASSERT_THAT(list.malformed, SizeIs(1));
    EXPECT_EQ(list.malformed[0].bytes, big.size());
    EXPECT_EQ(list.malformed[0].reason, "larger than the limit of 1048576 bytes");

    const auto watch = decode_watch(events, limited_to(kLimit), pieces_of(piece));
    EXPECT_TRUE(watch.complete) << watch.error;
    ASSERT_THAT(watch.events, SizeIs(2));
    EXPECT_EQ(watch.events[1].object.name(), "after");
    ASSERT_THAT(watch.malformed, SizeIs(1));
    EXPECT_GT(watch.malformed[0].bytes, big.size());
  }

  const std::string body = "{\"items\":[" + items + "]}";
  JsonListDecoder decoder(
      limited_to(kLimit), [](Object) {}, [](const MalformedObject&) {});
  lookout::test::take_largest_allocation();
  pieces_of(64 << 10)(body, [&](std::string_view piece) { return decoder.feed(piece); });
  EXPECT_LE(lookout::test::take_largest_allocation(), 3 * kLimit);
  EXPECT_TRUE(decoder.finish());
}

TEST(JsonStreamTest, TheLimitIsExact) {
  const std::string item = large_item("a", 1000);
  const std::string body = "{\"items\":[" + item + "]}";
  EXPECT_THAT(decode_list(body, limited_to(item.size())).items, SizeIs(1));
  EXPECT_THAT(decode_list(body, limited_to(item.size() - 1)).items, IsEmpty());
  EXPECT_THAT(decode_list(body, limited_to(item.size()), test::byte_by_byte()).items, SizeIs(1));
  EXPECT_THAT(decode_list(body, limited_to(item.size() - 1), test::byte_by_byte()).items,
              IsEmpty());
}

TEST(JsonStreamTest, FreesTheBufferOfAHugeObject) {
  JsonListDecoder decoder(
      {}, [](Object) {}, [](const MalformedObject&) {});
  const std::string big = "{\"items\":[" + large_item("big", 64u << 20);
  const std::string small = "," + large_item("a", 1000);
  decoder.feed(big);
  for (int i = 0; i < 3; ++i) decoder.feed(small);
  lookout::test::take_largest_allocation();
  for (int i = 0; i < 10; ++i) decoder.feed(small);
  EXPECT_LE(lookout::test::take_largest_allocation(), std::size_t{1} << 20);
}

TEST(JsonStreamTest, SkipsHugeNamesAndStringsOfTheList) {
  const std::string huge(32u << 20, 'x');
  const std::string body = "{\"" + huge + "\":\"" + huge + "\",\"kind\":\"" + huge +
                           "\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]}";
  JsonListDecoder decoder(
      {}, [](Object) {}, [](const MalformedObject&) {});
  lookout::test::take_largest_allocation();
  EXPECT_TRUE(decoder.feed(body));
  EXPECT_TRUE(decoder.finish()) << decoder.error();
  EXPECT_LE(lookout::test::take_largest_allocation(), std::size_t{1} << 20);
  EXPECT_LE(decoder.kind().size(), 1024u);
}

TEST(JsonStreamTest, MetadataOfTheListHasTheSameLimit) {
  const std::string body = "{\"metadata\":" + large_item("a", 10000) + ",\"items\":[]}";
  EXPECT_TRUE(decode_list(body, limited_to(20000)).complete);
  EXPECT_EQ(decode_list(body, limited_to(5000)).error, "the metadata of the list is too large");
}

TEST(JsonStreamTest, AcceptsAMillionBrackets) {
  const std::string deep = "{\"a\":" + std::string(1000000, '[') + std::string(1000000, ']') + "}";
  const auto list =
      decode_list("{\"items\":[" + deep + ",{\"metadata\":{\"name\":\"b\"}}],\"x\":" + deep + "}");
  EXPECT_TRUE(list.complete) << list.error;
  EXPECT_THAT(names_of(list), ElementsAre("b"));
  ASSERT_THAT(list.malformed, SizeIs(1));
  EXPECT_THAT(list.malformed[0].reason, HasSubstr("nested too deeply"));
}

// --- watches ---

TEST(JsonStreamTest, EventsNeedNoSeparator) {
  const std::string event = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})";
  for (const std::string between : {"", "\n", "\r\n", "  \t\n\n"}) {
    const auto watch = decode_watch(between + event + between + event + between);
    EXPECT_TRUE(watch.complete) << watch.error;
    EXPECT_THAT(watch.events, SizeIs(2));
  }
}

TEST(JsonStreamTest, AMalformedEventDoesNotAffectOthers) {
  const auto watch = decode_watch(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                                  R"({"type":"SOMETHING","object":{}})"
                                  R"({"type":"ADDED","object":{"x":tru}})"
                                  R"({"type":"ADDED"})"
                                  R"({"type":"DELETED","object":{"metadata":{"name":"a"}}})");
  EXPECT_TRUE(watch.complete) << watch.error;
  ASSERT_THAT(watch.events, SizeIs(2));
  EXPECT_EQ(watch.events[1].type, EventType::kDeleted);
  ASSERT_THAT(watch.malformed, SizeIs(3));
  EXPECT_EQ(watch.malformed[0].reason, "unknown event type \"SOMETHING\"");
}

TEST(JsonStreamTest, RejectsOtherBodiesThanWatches) {
  for (const auto body : {"[]"sv, "null"sv, "x"sv, "\0"sv, "{}]"sv}) {
    const auto watch = decode_watch(body);
    EXPECT_FALSE(watch.complete);
    EXPECT_THAT(watch.error, HasSubstr("expected an event"));
  }
  const auto cut = decode_watch(R"({"type":"ADDED","object":{"metadata")");
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.error, "the stream ended 36 bytes into an event");
  EXPECT_TRUE(decode_watch("").complete);
  EXPECT_TRUE(decode_watch(" \n").complete);
}

}  // namespace
}  // namespace lookout::api
