// Objects as protobuf: byte for byte the output of Kubernetes' generated code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/api/protobuf_bytes.h"
#include "tests/api/recordings.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;
using test::bytes_field;
using test::enveloped;
using test::number_field;

std::string encode(const Object& object) {
  ProtobufEncoder encoder;
  std::string out;
  EXPECT_TRUE(encoder.encode(object, out));
  EXPECT_EQ(encoder.left_out(), 0u);
  return out;
}

Object decoded(std::string_view bytes) {
  ProtobufDecoder decoder;
  Object object = decoder.decode(bytes);
  EXPECT_EQ(decoder.error(), "");
  return object;
}

class RecordedProtobufTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordedProtobufTest, RoundTrips) {
  const std::string recorded = test::protobuf_recording("list/" + GetParam() + ".pb");
  const std::string bytes = encode(decoded(recorded));
  EXPECT_EQ(decoded(bytes), decoded(recorded));
  EXPECT_TRUE(bytes == recorded);
}

TEST_P(RecordedProtobufTest, IsEncodedFromItsJson) {
  const std::string recorded = test::protobuf_recording("list/" + GetParam() + ".pb");
  EXPECT_TRUE(encode(Object::parse(test::list_body(GetParam()))) == recorded);
}

TEST_P(RecordedProtobufTest, MayBeEncodedItemByItem) {
  const std::string recorded = test::protobuf_recording("list/" + GetParam() + ".pb");
  const Object list = decoded(recorded);
  const std::string api_version(list.api_version());
  const std::string item_kind(list.kind().substr(0, list.kind().size() - 4));
  ProtobufEncoder encoder;
  std::string items;
  for (const Value item : list["items"].elements())
    encoder.encode_list_item(api_version, item_kind, Object::parse(item.to_json()), items);
  std::string bytes;
  const std::string version(list["metadata"]["resourceVersion"].as_string());
  ASSERT_TRUE(encoder.encode_list_head(api_version, list.kind(), {.resource_version = version},
                                       items.size(), bytes));
  bytes += items;
  ProtobufEncoder::encode_list_tail(bytes);
  EXPECT_TRUE(bytes == recorded);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedProtobufTest,
                         testing::ValuesIn(test::lists_in_both_encodings()),
                         [](const auto& parameter) { return test::test_name(parameter.param); });

TEST(ProtobufEncoderTest, RecordedEventsRoundTrip) {
  const std::string recorded = test::protobuf_recording("watch/rv_protobuf.pb");
  std::string bytes;
  ProtobufEncoder encoder;
  for (const auto& event : test::decode_protobuf_watch(recorded).events)
    ASSERT_TRUE(encoder.encode_event(event.type, event.object, bytes));
  EXPECT_TRUE(bytes == recorded);
}

TEST(ProtobufEncoderTest, AnErrorIsAnEvent) {
  const Object status = Object::parse(
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410})");
  std::string bytes;
  ASSERT_TRUE(ProtobufEncoder().encode_event(EventType::kError, status, bytes));
  const auto decoded = test::decode_protobuf_watch(bytes);
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].type, EventType::kError);
  EXPECT_EQ(decoded.events[0].object, status);
}

TEST(ProtobufEncoderTest, CustomResourcesHaveNoProtobuf) {
  const Object object = Object::parse(R"({"kind":"CronTab","apiVersion":"example.com/v1"})");
  std::string out = "before";
  ProtobufEncoder encoder;
  EXPECT_FALSE(encoder.encode(object, out));
  EXPECT_FALSE(encoder.encode_event(EventType::kAdded, object, out));
  EXPECT_FALSE(encoder.encode_list_head("example.com/v1", "CronTabList", {}, 0, out));
  EXPECT_EQ(out, "before");
  EXPECT_FALSE(has_protobuf("example.com/v1", "CronTab"));
  EXPECT_FALSE(has_protobuf("v2", "Pod"));
  EXPECT_TRUE(has_protobuf("v1", "Pod"));
  EXPECT_TRUE(has_protobuf("apps/v1", "DeploymentList"));
  EXPECT_TRUE(has_protobuf("meta.k8s.io/v1", "PartialObjectMetadataList"));
}

TEST(ProtobufEncoderTest, CountsFieldsThatItCannotEncode) {
  const Object object = Object::parse(
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","new":{"x":1},"labels":[]},)"
      R"("data":{"a":"1","b":2},"immutable":"yes","binaryData":{"bad":"%%"},"later":[1,2]})");
  ProtobufEncoder encoder;
  std::string out;
  ASSERT_TRUE(encoder.encode(object, out));
  EXPECT_EQ(encoder.left_out(), 6u);
  ProtobufDecoder decoder;
  const Object left = decoder.decode(out);
  EXPECT_EQ(decoder.unknown_fields().count, 1u) << "the reader can tell";
  EXPECT_EQ(left["data"].to_json(), R"({"a":"1","b":""})");
  EXPECT_EQ(left.name(), "a");
}

struct Spelling {
  const char* name;
  const char* json;
  std::string message;
};

const std::string kZeroMeta = bytes_field(1, "") + bytes_field(2, "") + bytes_field(3, "") +
                              bytes_field(4, "") + bytes_field(5, "") + bytes_field(6, "") +
                              number_field(7, 0) + bytes_field(8, "");

class SpellingTest : public testing::TestWithParam<Spelling> {};

TEST_P(SpellingTest, EqualsKubernetes) {
  const Object object = Object::parse(GetParam().json);
  EXPECT_EQ(encode(object), enveloped(object.api_version(), object.kind(), GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SpellingTest,
    testing::Values(
        Spelling{"ZeroesAreWrittenWhereThereIsNoPointer",
                 R"({"apiVersion":"v1","kind":"ConfigMap","data":null,"immutable":null})",
                 bytes_field(1, kZeroMeta)},
        Spelling{"NamesOfMapsAreSorted",
                 R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{},)"
                 R"("data":{"zone":"1","app":"2","A":"3","name":"4"}})",
                 bytes_field(1, kZeroMeta) +
                     bytes_field(2, bytes_field(1, "A") + bytes_field(2, "3")) +
                     bytes_field(2, bytes_field(1, "app") + bytes_field(2, "2")) +
                     bytes_field(2, bytes_field(1, "name") + bytes_field(2, "4")) +
                     bytes_field(2, bytes_field(1, "zone") + bytes_field(2, "1"))},
        Spelling{"BytesOfNothingAreNotWritten",
                 R"({"apiVersion":"v1","kind":"Secret","data":{"a":null,"b":"","c":"/wB6"}})",
                 bytes_field(1, kZeroMeta) + bytes_field(2, bytes_field(1, "a")) +
                     bytes_field(2, bytes_field(1, "b") + bytes_field(2, "")) +
                     bytes_field(2, bytes_field(1, "c") + bytes_field(2, "\xFF\0z"sv)) +
                     bytes_field(3, "")},
        Spelling{"JsonIsSortedByNames",
                 R"({"apiVersion":"apps/v1","kind":"ControllerRevision",)"
                 R"("data":{"z":1,"spec":{"x":[],"a":"\n"},"a":2.5},"revision":-1})",
                 bytes_field(1, kZeroMeta) +
                     bytes_field(2, bytes_field(1, R"({"a":2.5,"spec":{"a":"\n","x":[]},"z":1})")) +
                     number_field(3, ~std::uint64_t{0})},
        Spelling{"MicroTimesHaveNanoseconds",
                 R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":)"
                 R"({"renewTime":"2025-11-20T11:14:57.123456Z","acquireTime":null}})",
                 bytes_field(1, kZeroMeta) +
                     bytes_field(2, bytes_field(4, number_field(1, 1763637297) +
                                                       number_field(2, 123456000)))},
        Spelling{"ListsAreOfTheirItems",
                 R"({"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList",)"
                 R"("metadata":{"continue":"c","remainingItemCount":0},)"
                 R"("items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}]})",
                 bytes_field(1, bytes_field(1, "") + bytes_field(2, "") + bytes_field(3, "c") +
                                    number_field(4, 0)) +
                     bytes_field(2, bytes_field(1, kZeroMeta))}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(ProtobufEncoderTest, EncodesLengthsOfEverySize) {
  for (const std::size_t size :
       {0u, 1u, 60u, 100u, 127u, 128u, 200u, 16000u, 16383u, 16384u, 70000u, 3000000u}) {
    for (const char c : {'x', '\n'}) {
      const std::string text(size, c);
      const std::string message =
          bytes_field(1, kZeroMeta + bytes_field(12, bytes_field(1, "a") + bytes_field(2, text)));
      const std::string bytes = enveloped("v1", "ConfigMap", message);
      EXPECT_TRUE(encode(decoded(bytes)) == bytes) << size;
    }
  }
}

}  // namespace
}  // namespace lookout::api
