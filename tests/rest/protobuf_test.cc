// Protobuf between client and server: requested and accepted encodings, and fallbacks to JSON.
#include "lookout/api/protobuf.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <vector>

#include "lookout/k8s/core/v1.h"
#include "rest/encodings.h"
#include "tests/api/protobuf_bytes.h"
#include "tests/rest/client_testing.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using api::test::bytes_field;
using api::test::enveloped;
using api::test::number_field;
using k8s::core::v1::Pod;
using rest::Client;
using rest::ContentType;

constexpr const char* kBoth = "application/vnd.kubernetes.protobuf,application/json";
constexpr const char* kJson = "application/json";
const api::Resource kCronTabs("stable.example.com", "v1", "CronTab", "crontabs", true);

std::string recording(const std::string& name) { return read_file(testdata("kube-1.36/" + name)); }

/// A pod with optional bytes behind its metadata.
std::string pod_bytes(std::string_view name, const std::string& more = {}) {
  return bytes_field(1, bytes_field(1, name) + bytes_field(3, "shop") + bytes_field(6, "7")) + more;
}
/// An unknown field of the spec.
std::string newer() { return bytes_field(2, number_field(1000, 1)); }

std::string list_bytes(std::initializer_list<std::string> pods) {
  std::string items = bytes_field(1, bytes_field(2, "9"));
  for (const auto& pod : pods) items += bytes_field(2, pod);
  return enveloped("v1", "PodList", items);
}

std::string event_bytes(std::string_view type, const std::string& pod) {
  const std::string event =
      bytes_field(1, type) + bytes_field(2, bytes_field(1, enveloped("v1", "Pod", pod)));
  std::string out;
  for (unsigned shift : {24u, 16u, 8u, 0u}) out += static_cast<char>(event.size() >> shift);
  return out + event;
}

constexpr const char* kJsonPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","resourceVersion":"7"},)"
    R"("spec":{"containers":[],"newer":1}})";
std::string json_list() {
  return R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" +
         std::string(kJsonPod) + "]}";
}

/// Responds in protobuf if the client accepts it, otherwise in JSON.
class ProtobufTest : public testing::Test {
 protected:
  /// The response of a server that supports protobuf, and its content type.
  std::string protobuf_;
  std::string protobuf_type_ = std::string(api::kProtobufMediaType);
  int protobuf_status_ = 200;
  std::string json_;

  rest::Config config(ContentType type) const {
    rest::Config out = config_for(server_);
    out.content_type = type;
    return out;
  }
  std::vector<std::string> accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  std::mutex mutex_;
  std::vector<std::string> accepted_;
  HttpServer server_{HttpServer::answering([this](const HttpRequest& request) -> HttpResponse {
    const std::lock_guard lock(mutex_);
    accepted_.push_back(request.header("Accept"));
    if (accepted_.back().find("protobuf") == std::string::npos) return {.body = json_};
    return {.status = protobuf_status_, .body = protobuf_, .content_type = protobuf_type_};
  })};
};

std::vector<std::string> names(const rest::List<Pod>& list) {
  std::vector<std::string> out;
  for (const Pod& pod : list.items) out.emplace_back(pod.name());
  return out;
}

TEST_F(ProtobufTest, ListsAreTheSameAsTheirJson) {
  protobuf_ = recording("list/v1_pods.pb");
  json_ = recording("list/v1_pods.json");
  const auto in_protobuf = Client(config(ContentType::kAuto)).resource<Pod>().list();
  const auto in_json = Client(config(ContentType::kJson)).resource<Pod>().list();
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
  ASSERT_GT(in_json.items.size(), 5u);
  EXPECT_EQ(in_protobuf.items, in_json.items);
  EXPECT_EQ(in_protobuf.resource_version, in_json.resource_version);
  EXPECT_EQ(in_protobuf.kind, "PodList");
  EXPECT_EQ(in_protobuf.api_version, "v1");
}

TEST_F(ProtobufTest, WatchesAreTheSameAsTheirJson) {
  protobuf_ = recording("watch/rv_protobuf.pb");
  protobuf_type_ += ";stream=watch";
  json_ = recording("watch/rv.jsonl");
  const auto told = [&](ContentType type) {
    std::vector<std::string> out;
    const Client client(config(type));
    auto stream = client.resource<Pod>().dynamic().watch();
    while (const auto event = stream.next()) {
      if (event->type != api::EventType::kBookmark)
        out.push_back(std::string(to_string(event->type)) + event->object.to_json());
    }
    return out;
  };
  const auto in_protobuf = told(ContentType::kProtobuf);
  EXPECT_EQ(in_protobuf, told(ContentType::kJson));
  EXPECT_GT(in_protobuf.size(), 5u);
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
}

TEST_F(ProtobufTest, ObjectsAreReadFromProtobuf) {
  protobuf_ = enveloped("v1", "Pod", pod_bytes("a"));
  const Client client(config(ContentType::kAuto));
  EXPECT_EQ(client.resource<Pod>("shop").get("a").name(), "a");
}

TEST_F(ProtobufTest, CustomResourcesAndWritesAreJson) {
  json_ = kJsonPod;
  const Client client(config(ContentType::kProtobuf));
  client.resource(kCronTabs, "shop").get("a");
  client.resource<Pod>("shop").create(api::Object::parse(kJsonPod));
  client.resource<Pod>("shop").remove("a");
  EXPECT_THAT(accepted(), Each(kJson));
}

TEST_F(ProtobufTest, MetadataOfCustomResourcesMayBeProtobuf) {
  protobuf_ = enveloped("meta.k8s.io/v1", "PartialObjectMetadataList",
                        bytes_field(1, bytes_field(2, "9")) + bytes_field(2, pod_bytes("a")));
  const Client client(config(ContentType::kAuto));
  std::vector<api::Object> items;
  const auto meta = client.loop().run(client.resource(kCronTabs).async_list_each(
      [&](api::Object item) { items.push_back(std::move(item)); }, {}, {.metadata_only = true}));
  EXPECT_EQ(meta.resource_version, "9");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind(), "PartialObjectMetadata");
  EXPECT_THAT(accepted(),
              ElementsAre("application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;"
                          "g=meta.k8s.io,application/json;as=PartialObjectMetadataList;v=v1;"
                          "g=meta.k8s.io,application/json"));
}

TEST_F(ProtobufTest, FailuresAreReadFromProtobuf) {
  protobuf_status_ = 404;
  protobuf_ = enveloped("v1", "Status",
                        bytes_field(2, "Failure") + bytes_field(3, "no such pod") +
                            bytes_field(4, "NotFound") + number_field(6, 404));
  const Client client(config(ContentType::kAuto));
  try {
    client.resource<Pod>("shop").get("a");
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_not_found(e));
    EXPECT_EQ(e.status().message, "no such pod");
  }
}

TEST_F(ProtobufTest, ARejectionOfProtobufFallsBackToJson) {
  json_ = json_list();
  protobuf_type_ = "text/plain";
  for (const int status : {406, 415}) {
    protobuf_status_ = status;
    const Client client(config(ContentType::kProtobuf));
    EXPECT_THAT(names(client.resource<Pod>("shop").list()), ElementsAre("a"));
    EXPECT_THAT(names(client.resource<Pod>().list()), ElementsAre("a"));
    EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson, kJson)) << "once is enough";
    const std::lock_guard lock(mutex_);
    accepted_.clear();
  }
}

TEST_F(ProtobufTest, AServerMayRespondInJson) {
  protobuf_ = json_list();
  protobuf_type_ = kJson;
  const Client client(config(ContentType::kProtobuf));
  EXPECT_EQ(client.resource<Pod>("shop").list().items.at(0)["spec"]["newer"].as_int(), 1);
}

TEST_F(ProtobufTest, UnrequestedProtobufIsRejected) {
  json_ = "k8s";
  HttpServer server(HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.body = list_bytes({}), .content_type = std::string(api::kProtobufMediaType)};
  }));
  rest::Config config = config_for(server);
  config.content_type = ContentType::kJson;
  EXPECT_THROW(Client(config).resource<Pod>().list(), api::DecodeError);
}

// ---- unknown fields

TEST_F(ProtobufTest, AListWithUnknownFieldsIsRequestedInJson) {
  protobuf_ = list_bytes({pod_bytes("a", newer())});
  json_ = json_list();
  const Client client(config(ContentType::kAuto));
  for (int i = 0; i < 2; ++i) {
    const auto list = client.resource<Pod>("shop").list();
    ASSERT_EQ(list.items.size(), 1u);
    EXPECT_EQ(list.items[0]["spec"]["newer"].as_int(), 1);
    EXPECT_EQ(list.unknown_fields, 0u);
  }
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson, kJson));
}

TEST_F(ProtobufTest, AnUnknownFieldBehindTheFirstItemRestartsTheList) {
  protobuf_ = list_bytes({pod_bytes("x"), pod_bytes("y"), pod_bytes("a", newer())});
  json_ = json_list();
  const Client client(config(ContentType::kAuto));
  EXPECT_THAT(names(client.resource<Pod>("shop").list()), ElementsAre("a"));
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
}

TEST_F(ProtobufTest, DeliveredItemsPreventARestart) {
  protobuf_ = list_bytes({pod_bytes("x"), pod_bytes("a", newer())});
  json_ = json_list();
  const Client client(config(ContentType::kAuto));
  std::vector<std::string> got;
  const auto list = [&] {
    client.loop().run(client.resource<Pod>("shop").dynamic().async_list_each(
        [&](const api::Object& item) { got.emplace_back(item.name()); }));
  };
  EXPECT_THROW(list(), api::DecodeError);
  list();
  EXPECT_THAT(got, ElementsAre("x", "a"));
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
}

TEST_F(ProtobufTest, AListWithAMalformedItemIsRequestedInJson) {
  protobuf_ = list_bytes({pod_bytes("a", "\x12\x7F")});
  json_ = json_list();
  const Client client(config(ContentType::kAuto));
  EXPECT_THAT(names(client.resource<Pod>("shop").list()), ElementsAre("a"));
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
}

TEST_F(ProtobufTest, AnObjectWithUnknownFieldsIsRequestedInJson) {
  for (const ContentType type : {ContentType::kAuto, ContentType::kProtobuf}) {
    protobuf_ = enveloped("v1", "Pod", pod_bytes("a", newer()));
    json_ = kJsonPod;
    const Client client(config(type));
    EXPECT_EQ(lookout::test::held(client.resource<Pod>("shop").get("a"))["spec"]["newer"].as_int(),
              1);
  }
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson, kBoth, kJson));
}

TEST_F(ProtobufTest, AWatchWithUnknownFieldsEndsAndContinuesInJson) {
  protobuf_ = event_bytes("ADDED", pod_bytes("x")) + event_bytes("ADDED", pod_bytes("a", newer())) +
              event_bytes("ADDED", pod_bytes("b"));
  protobuf_type_ += ";stream=watch";
  json_ = std::string(R"({"type":"ADDED","object":)") + kJsonPod + "}\n";
  const Client client(config(ContentType::kAuto));
  const auto told = [&] {
    std::vector<std::string> out;
    auto stream = client.resource<Pod>("shop").dynamic().watch();
    while (const auto event = stream.next()) out.emplace_back(event->object.name());
    EXPECT_FALSE(stream.next()) << "the end stays the end";
    return out;
  };
  EXPECT_THAT(told(), ElementsAre("x"));
  EXPECT_THAT(told(), ElementsAre("a"));
  EXPECT_THAT(accepted(), ElementsAre(kBoth, kJson));
}

TEST_F(ProtobufTest, ForcedProtobufCountsUnknownFields) {
  protobuf_ = list_bytes({pod_bytes("a", newer()), pod_bytes("b", newer())});
  const Client client(config(ContentType::kProtobuf));
  const auto list = client.resource<Pod>("shop").list();
  EXPECT_THAT(names(list), ElementsAre("a", "b"));
  EXPECT_EQ(list.unknown_fields, 2u);
  protobuf_ = event_bytes("ADDED", pod_bytes("a", newer()));
  auto stream = client.resource<Pod>("shop").dynamic().watch();
  EXPECT_TRUE(stream.next());
  EXPECT_FALSE(stream.next());
}

TEST_F(ProtobufTest, ACallMayOverrideTheEncoding) {
  protobuf_ = list_bytes({});
  json_ = json_list();
  const Client client(config(ContentType::kJson));
  client.loop().run(client.resource<Pod>().dynamic().async_list_each(
      [](const api::Object&) {}, {}, {.content_type = ContentType::kProtobuf}));
  EXPECT_THAT(accepted(), ElementsAre(kBoth));
}

TEST(EncodingsTest, OneUndecodableObjectDoesNotDisableProtobuf) {
  rest::detail::Encodings encodings;
  const api::Resource pods(Pod::kResource);
  const auto now = std::chrono::steady_clock::now();
  const auto asks_for_protobuf = [&](std::chrono::minutes later) {
    return encodings.wanted(ContentType::kAuto, pods, false, now + later).protobuf;
  };
  EXPECT_TRUE(asks_for_protobuf(std::chrono::minutes(0)));
  encodings.avoid_protobuf(pods, "too deep", now);
  EXPECT_FALSE(asks_for_protobuf(std::chrono::minutes(9)));
  EXPECT_TRUE(asks_for_protobuf(std::chrono::minutes(10)));
  encodings.give_up_protobuf(pods, "a field that nobody knows");
  EXPECT_FALSE(asks_for_protobuf(std::chrono::hours(1000)));
}

}  // namespace
}  // namespace lookout::test
