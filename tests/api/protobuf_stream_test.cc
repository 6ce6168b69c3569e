// Lists and watches in protobuf, decoded incrementally.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lookout/api/protobuf.h"
#include "tests/api/protobuf_bytes.h"
#include "tests/api/recordings.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;
using test::bytes_field;
using test::decode_protobuf_list;
using test::decode_protobuf_watch;
using test::DecodedList;
using test::DecodedWatch;
using test::enveloped;
using test::number_field;

const std::vector<Projection>& projections() {
  static const std::vector<Projection> kProjections = {
      Projection(), Projection::without_managed_fields(),
      Projection::keep({"metadata.labels", "spec.containers.name", "spec.template.spec", "data",
                        "rules.verbs", "status.conditions.type"})};
  return kProjections;
}

class RecordedListStreamTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordedListStreamTest, EqualsItsJson) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  for (const Projection& projection : projections()) {
    const StreamOptions options{.projection = projection, .lossless = true};
    const DecodedList expected = test::decode_list(test::list_body(GetParam()), options);
    ASSERT_TRUE(expected.complete);
    EXPECT_TRUE(decode_protobuf_list(bytes, options) == expected);
    EXPECT_TRUE(decode_protobuf_list(bytes, options, test::byte_by_byte()) == expected);
  }
}

TEST_P(RecordedListStreamTest, MayBeSplitAnywhere) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  const DecodedList whole = decode_protobuf_list(bytes);
  const std::size_t step = 1 + bytes.size() / 200;
  for (std::size_t at = 0; at < bytes.size(); at += step)
    ASSERT_TRUE(decode_protobuf_list(bytes, {}, test::cut_at(at)) == whole) << at;
}

TEST_P(RecordedListStreamTest, ReportsTruncation) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  const DecodedList whole = decode_protobuf_list(bytes);
  const std::size_t step = 1 + bytes.size() / 200;
  // The last fields of the envelope, behind the list, are empty.
  for (std::size_t size = 0; size < bytes.size() - 4; size += step) {
    const DecodedList part = decode_protobuf_list(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(part.complete) << size;
    EXPECT_NE(part.error, "") << size;
    EXPECT_TRUE(part.malformed.empty());
    EXPECT_TRUE(std::equal(part.items.begin(), part.items.end(), whole.items.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedListStreamTest,
                         testing::ValuesIn(test::lists_in_both_encodings()),
                         [](const auto& parameter) { return test::test_name(parameter.param); });

std::string pod(std::string_view name, const std::string& more = {}) {
  return bytes_field(1, bytes_field(1, name)) + more;
}

std::string pod_list(const std::string& items, const std::string& meta = bytes_field(2, "7")) {
  return enveloped("v1", "PodList", bytes_field(1, meta) + items);
}

std::vector<std::string> names(const DecodedList& list) {
  std::vector<std::string> out;
  for (const Object& item : list.items) out.emplace_back(item.name());
  return out;
}

TEST(ProtobufListDecoderTest, ReturnsTheListsMetadata) {
  const DecodedList list = decode_protobuf_list(
      pod_list(bytes_field(2, pod("a")),
               bytes_field(2, "7") + bytes_field(3, "next") + number_field(4, 12)));
  EXPECT_TRUE(list.complete);
  EXPECT_EQ(list.api_version, "v1");
  EXPECT_EQ(list.kind, "PodList");
  EXPECT_EQ(list.resource_version, "7");
  EXPECT_EQ(list.continue_token, "next");
  EXPECT_EQ(list.remaining_item_count, 12);
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].kind(), "Pod");
  EXPECT_EQ(list.items[0].api_version(), "v1");
}

TEST(ProtobufListDecoderTest, ItsMetadataMayComeLast) {
  const DecodedList list = decode_protobuf_list(
      enveloped("v1", "PodList", bytes_field(2, pod("a")) + bytes_field(1, bytes_field(2, "7"))));
  EXPECT_TRUE(list.complete) << list.error;
  EXPECT_EQ(list.resource_version, "7");
  EXPECT_THAT(names(list), testing::ElementsAre("a"));
}

TEST(ProtobufListDecoderTest, ListsOfMetadataHaveItemsOfTheirOwnType) {
  const DecodedList list = decode_protobuf_list(
      enveloped("meta.k8s.io/v1", "PartialObjectMetadataList", bytes_field(2, pod("a"))),
      {.api_version = "v1", .kind = "Pod"});
  EXPECT_TRUE(list.complete) << list.error;
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].kind(), "PartialObjectMetadata");
  EXPECT_EQ(list.items[0].api_version(), "meta.k8s.io/v1");
}

TEST(ProtobufListDecoderTest, AMalformedItemDoesNotAffectOthers) {
  const std::string bad = bytes_field(1, bytes_field(1, "bad")) + "\x0A\x7F";
  const std::string bytes =
      pod_list(bytes_field(2, pod("a")) + bytes_field(2, bad) + bytes_field(2, pod("b")));
  for (const auto& pieces : {test::in_one_piece(), test::byte_by_byte()}) {
    const DecodedList list = decode_protobuf_list(bytes, {}, pieces);
    EXPECT_TRUE(list.complete) << list.error;
    EXPECT_THAT(names(list), testing::ElementsAre("a", "b"));
    ASSERT_EQ(list.malformed.size(), 1u);
    EXPECT_THAT(list.malformed[0].reason, StartsWith("Pod: field 1"));
    EXPECT_EQ(list.malformed[0].bytes, bad.size());
    EXPECT_EQ(list.malformed[0].key, "");
  }
}

TEST(ProtobufListDecoderTest, AnItemBeyondTheLimitIsSkipped) {
  const std::string bytes =
      pod_list(bytes_field(2, pod("a")) + bytes_field(2, pod(std::string(1000, 'x'))) +
               bytes_field(2, pod("b")));
  for (const auto& pieces : {test::in_one_piece(), test::byte_by_byte(), test::cut_at(200)}) {
    const DecodedList list = decode_protobuf_list(bytes, {.max_object_bytes = 100}, pieces);
    EXPECT_TRUE(list.complete) << list.error;
    EXPECT_THAT(names(list), testing::ElementsAre("a", "b"));
    ASSERT_EQ(list.malformed.size(), 1u);
    EXPECT_THAT(list.malformed[0].reason, HasSubstr("limit of 100 bytes"));
    EXPECT_EQ(list.malformed[0].bytes, 1000u + 6u);
  }
}

TEST(ProtobufListDecoderTest, CountsUnknownFields) {
  const std::string bytes =
      pod_list(bytes_field(2, pod("a", bytes_field(2, number_field(1000, 1)))) +
               bytes_field(2, pod("b", number_field(2000, 1))) + bytes_field(99, "x"));
  DecodedList list = decode_protobuf_list(bytes);
  EXPECT_TRUE(list.complete);
  EXPECT_THAT(names(list), testing::ElementsAre("a", "b"));
  EXPECT_EQ(list.unknown.count, 3u);
  EXPECT_EQ(list.unknown.first, "field 1000 of PodSpec");
  EXPECT_FALSE(list.would_lose);

  list =
      decode_protobuf_list(bytes, {.projection = Projection::keep({"metadata", "spec.nodeName"})});
  EXPECT_EQ(list.unknown.count, 1u) << "what nobody wants is not lost";
  EXPECT_EQ(list.unknown.first, "field 99 of PodList");
}

TEST(ProtobufListDecoderTest, TheEmptyClusterNameOfOldServersIsIgnored) {
  const auto meta = [](const char* cluster) {
    return bytes_field(1, bytes_field(1, "a") + bytes_field(15, cluster));
  };
  const StreamOptions options{.lossless = true};
  EXPECT_TRUE(decode_protobuf_list(pod_list(bytes_field(2, meta(""))), options).complete);
  EXPECT_TRUE(decode_protobuf_list(pod_list(bytes_field(2, meta("x"))), options).would_lose);
}

TEST(ProtobufListDecoderTest, EndsBeforeUnknownFieldsIfConfigured) {
  const auto expect_end = [](const std::string& bad, const char* why) {
    for (const auto& pieces : {test::in_one_piece(), test::byte_by_byte()}) {
      const DecodedList list = decode_protobuf_list(
          pod_list(bytes_field(2, pod("a")) + bytes_field(2, bad) + bytes_field(2, pod("c"))),
          {.max_object_bytes = 500, .lossless = true}, pieces);
      EXPECT_FALSE(list.complete);
      EXPECT_TRUE(list.would_lose);
      EXPECT_TRUE(list.malformed.empty());
      EXPECT_THAT(names(list), testing::ElementsAre("a"));
      EXPECT_THAT(list.error, HasSubstr(why));
    }
  };
  expect_end(pod("b", bytes_field(2, number_field(1000, 1))), "field 1000 of PodSpec");
  expect_end(pod("b", "\x0A\x7F"), "goes beyond the end");
  expect_end(pod(std::string(600, 'x')), "limit of 500 bytes");
}

struct BadList {
  const char* name;
  std::string body;
  const char* error;
};

class BadListTest : public testing::TestWithParam<BadList> {};

void expect_refused(const BadList& bad) {
  for (const auto& pieces : {test::in_one_piece(), test::byte_by_byte(), test::cut_at(9)}) {
    const DecodedList list = decode_protobuf_list(bad.body, {}, pieces);
    EXPECT_FALSE(list.complete);
    EXPECT_THAT(list.error, HasSubstr(bad.error));
    EXPECT_FALSE(list.would_lose);
  }
}

TEST_P(BadListTest, IsRejected) { expect_refused(GetParam()); }

std::string magic() { return std::string(kProtobufMagic); }
std::string type_meta(std::string_view version, std::string_view kind) {
  return magic() + bytes_field(1, bytes_field(1, version) + bytes_field(2, kind));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadListTest,
    testing::Values(
        BadList{"Nothing", "", "the body is empty"},
        BadList{"Json", R"({"kind":"PodList"})", "magic bytes"},
        BadList{"PartOfTheMagic", "k8s", "ends in the middle"},
        BadList{"MagicAlone", magic(), "ends before the list"},
        BadList{"NoList", enveloped("v1", "Pod", pod("a")),
                "not a list of a built-in kind but \"Pod\""},
        BadList{"Status", enveloped("v1", "Status", ""), "\"Status\""},
        BadList{"ListOfNothing", enveloped("v1", "List", ""), "\"List\""},
        BadList{"CustomList", enveloped("example.com/v1", "CronTabList", ""), "\"CronTabList\""},
        BadList{"TypeTooLate", magic() + bytes_field(2, "") + bytes_field(1, ""), "not a list"},
        BadList{"TwoLists", type_meta("v1", "PodList") + bytes_field(2, "") + bytes_field(2, ""),
                "twice"},
        BadList{"BadType", magic() + bytes_field(1, "\xFF"), "its type cannot be read"},
        BadList{"BadMetadata", pod_list("", "\x0A\x05"), "its metadata cannot be read"},
        BadList{"MetadataOfAnotherType", enveloped("v1", "PodList", number_field(1, 3)),
                "wrong wire type"},
        BadList{"ItemsOfAnotherType", enveloped("v1", "PodList", number_field(2, 3)),
                "wrong wire type"},
        BadList{"AFieldBeyondTheList", type_meta("v1", "PodList") + "\x12\x03\x12\x05xxxxx",
                "beyond the end of the list"},
        BadList{"ATagBeyondTheList", type_meta("v1", "PodList") + "\x12\x01\x92\x01",
                "beyond the end of the list"},
        BadList{"EndlessNumber", magic() + "\x08" + std::string(11, '\xFF'), "too large"},
        BadList{"NoFieldNumber", magic() + "\x02", "0 is not a field number"},
        BadList{"NoWireType", magic() + "\x0B", "unknown wire type 3"},
        BadList{"Encoded", type_meta("v1", "PodList") + bytes_field(2, "") + bytes_field(3, "gzip"),
                "\"gzip\" is not supported"},
        BadList{"OfAnotherContent",
                type_meta("v1", "PodList") + bytes_field(2, "") + bytes_field(4, "text/plain"),
                "\"text/plain\" is not supported"},
        BadList{"ALyingLength",
                type_meta("v1", "PodList") + "\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F" +
                    bytes_field(2, pod("a")),
                "ends in the middle"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

// (Not a parameter, which would be created at each program start.)
TEST(BadLists, RejectsAHugeType) {
  expect_refused({"HugeType", magic() + bytes_field(1, std::string(2u << 20, 'x')), "too large"});
}

// -------------------------------------------------------------------------------------------------

std::string frame(std::string_view event) {
  std::string out;
  for (unsigned shift : {24u, 16u, 8u, 0u}) out += static_cast<char>(event.size() >> shift);
  return out + std::string(event);
}

std::string pod_event(std::string_view type, const std::string& message) {
  return bytes_field(1, type) + bytes_field(2, bytes_field(1, enveloped("v1", "Pod", message)));
}

TEST(ProtobufWatchDecoderTest, RecordedEventsEqualTheirJson) {
  const std::string bytes = test::protobuf_recording("watch/rv_protobuf.pb");
  for (const Projection& projection : projections()) {
    const StreamOptions options{.projection = projection, .lossless = true};
    DecodedWatch expected = test::decode_watch(test::watch_body("rv"), options);
    DecodedWatch events = decode_protobuf_watch(bytes, options);
    EXPECT_TRUE(events == decode_protobuf_watch(bytes, options, test::byte_by_byte()));
    ASSERT_TRUE(events.complete) << events.error;
    // The time of bookmarks differs between the two recordings.
    const auto bookmark = [](const WatchEvent& e) { return e.type == EventType::kBookmark; };
    EXPECT_GT(std::erase_if(events.events, bookmark), 0u);
    std::erase_if(expected.events, bookmark);
    ASSERT_GT(events.events.size(), 5u);
    EXPECT_TRUE(events == expected);
  }
}

TEST(ProtobufWatchDecoderTest, MayBeSplitAnywhere) {
  const std::string bytes = test::protobuf_recording("watch/rv_protobuf.pb");
  const DecodedWatch whole = decode_protobuf_watch(bytes);
  for (std::size_t at = 0; at < bytes.size(); at += 29) {
    ASSERT_TRUE(decode_protobuf_watch(bytes, {}, test::cut_at(at)) == whole) << at;
    const DecodedWatch part = decode_protobuf_watch(std::string_view(bytes).substr(0, at));
    EXPECT_EQ(part.complete, at == 0) << at;
    EXPECT_TRUE(std::equal(part.events.begin(), part.events.end(), whole.events.begin(),
                           [](const WatchEvent& a, const WatchEvent& b) {
                             return a.type == b.type && a.object == b.object;
                           }));
  }
}

TEST(ProtobufWatchDecoderTest, AMalformedEventDoesNotAffectOthers) {
  const std::string bytes = frame(pod_event("ADDED", pod("a"))) + frame("\xFF") + frame("") +
                            frame(pod_event("RENAMED", pod("x"))) +
                            frame(pod_event("ADDED", pod(std::string(1000, 'x')))) +
                            frame(pod_event("DELETED", pod("b")));
  for (const auto& pieces : {test::in_one_piece(), test::byte_by_byte()}) {
    const DecodedWatch watch = decode_protobuf_watch(bytes, {.max_object_bytes = 500}, pieces);
    EXPECT_TRUE(watch.complete);
    ASSERT_EQ(watch.events.size(), 2u);
    EXPECT_EQ(watch.events[0].object.name(), "a");
    EXPECT_EQ(watch.events[1].type, EventType::kDeleted);
    ASSERT_EQ(watch.malformed.size(), 4u);
    EXPECT_THAT(watch.malformed[1].reason, HasSubstr("has no type"));
    EXPECT_THAT(watch.malformed[2].reason, HasSubstr("RENAMED"));
    EXPECT_THAT(watch.malformed[3].reason, HasSubstr("limit of 500 bytes"));
  }
}

TEST(ProtobufWatchDecoderTest, EndsBeforeUnknownFieldsIfConfigured) {
  const std::string bytes =
      frame(pod_event("ADDED", pod("a"))) +
      frame(pod_event("MODIFIED", pod("a", bytes_field(2, number_field(1000, 1))))) +
      frame(pod_event("DELETED", pod("a")));
  const DecodedWatch lossless = decode_protobuf_watch(bytes, {.lossless = true});
  EXPECT_EQ(lossless.events.size(), 1u);
  EXPECT_TRUE(lossless.would_lose);
  EXPECT_FALSE(lossless.complete);
  EXPECT_THAT(lossless.error, HasSubstr("field 1000 of PodSpec"));

  const DecodedWatch lossy = decode_protobuf_watch(bytes);
  EXPECT_EQ(lossy.events.size(), 3u);
  EXPECT_TRUE(lossy.complete);
  EXPECT_EQ(lossy.unknown.count, 1u);
}

TEST(ProtobufWatchDecoderTest, ReportsTheLastVersion) {
  const std::string bytes = frame(pod_event("ADDED", pod("a")));
  EXPECT_EQ(decode_protobuf_watch(bytes.substr(0, 3)).error,
            "the stream ended 3 bytes into an event");
  EXPECT_EQ(decode_protobuf_watch(bytes.substr(0, 10)).error,
            "the stream ended 10 bytes into an event");
  EXPECT_EQ(decode_protobuf_watch("\xFF\xFF\xFF\xFFzzz"sv).error,
            "the stream ended 7 bytes into an event");
}

}  // namespace
}  // namespace lookout::api
