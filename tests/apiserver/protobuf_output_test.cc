// The server's responses to clients that accept protobuf.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lookout/api/protobuf.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

const std::string kProtobuf(api::kProtobufMediaType);
const std::string kMaps = "/api/v1/namespaces/default/configmaps";

class ProtobufOutput : public ClientTest {
 protected:
  HttpAnswer ask(const std::string& target, const std::string& accept,
                 const std::string& method = "GET", const std::string& body = {}) const {
    return http(server_.port(), method, target, body, {{"Accept", accept}});
  }
  /// The object in a response that must be protobuf.
  static Object decoded(const HttpAnswer& answer) {
    EXPECT_EQ(answer.headers.at("content-type"), kProtobuf);
    api::ProtobufDecoder decoder;
    Object object = decoder.decode(answer.body);
    EXPECT_EQ(decoder.error(), "");
    EXPECT_EQ(decoder.unknown_fields().count, 0u);
    return object;
  }
};

TEST_F(ProtobufOutput, AnObjectEqualsItsJson) {
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(decoded(ask(kMaps + "/a", kProtobuf)), Object::parse(ask(kMaps + "/a", "").body));
}

TEST_F(ProtobufOutput, WritesReturnProtobuf) {
  const Object created = decoded(ask(kMaps, kProtobuf, "POST", config_map("a").to_json()));
  EXPECT_EQ(created.name(), "a");
  EXPECT_EQ(created, Object::parse(ask(kMaps + "/a", "").body));
  EXPECT_EQ(decoded(ask(kMaps + "/a", kProtobuf, "DELETE")).kind(), "Status");
}

TEST_F(ProtobufOutput, AListEqualsItsJson) {
  const std::string accept = kProtobuf + ",application/json";
  EXPECT_EQ(decoded(ask(kMaps, accept)), Object::parse(ask(kMaps, "").body)) << "empty";
  // More than one write.
  for (int i = 0; i < 60; ++i)
    in(kConfigMaps).create(config_map(fmt::format("c{}", i), std::string(5000, 'x')));
  for (const char* query : {"", "?limit=7", "?labelSelector=no%3Dsuch"}) {
    const HttpAnswer in_protobuf = ask(kMaps + query, accept);
    EXPECT_EQ(decoded(in_protobuf), Object::parse(ask(kMaps + query, "").body)) << query;
    // Equals Kubernetes' encoding.
    std::string again;
    api::ProtobufEncoder().encode(decoded(in_protobuf), again);
    EXPECT_EQ(in_protobuf.body, again);
  }
}

TEST_F(ProtobufOutput, EveryBuiltInResourceHasProtobuf) {
  const std::string both = kProtobuf + ",application/json";
  int seen = 0;
  for (const auto& resource : api::builtin_resources()) {
    if (resource.verbs.find("list") == std::string_view::npos) continue;
    const api::Resource type(resource.type());
    const HttpAnswer answer = ask(type.root_path() + "/" + type.plural, both);
    if (answer.code == 404) continue;
    ++seen;
    EXPECT_EQ(answer.headers.at("content-type"), kProtobuf) << type.qualified_name();
    EXPECT_TRUE(api::is_protobuf(answer.body)) << type.qualified_name();
  }
  EXPECT_GT(seen, 40);
}

TEST_F(ProtobufOutput, MetadataAlone) {
  in(kConfigMaps).create(config_map("a"));
  const std::string as = ";v=v1;g=meta.k8s.io";
  const auto same = [&](const std::string& target, const std::string& kind) {
    const std::string parameters = ";as=" + kind + as;
    EXPECT_EQ(decoded(ask(target, kProtobuf + parameters)),
              Object::parse(ask(target, "application/json" + parameters).body));
  };
  same(kMaps + "/a", "PartialObjectMetadata");
  same(kMaps, "PartialObjectMetadataList");
}

TEST_F(ProtobufOutput, FailuresAreReturnedInProtobuf) {
  const HttpAnswer answer = ask(kMaps + "/none", kProtobuf + ",application/json");
  EXPECT_EQ(answer.code, 404);
  EXPECT_EQ(decoded(answer), Object::parse(ask(kMaps + "/none", "").body));
  EXPECT_EQ(ask(kMaps + "/none", "application/json," + kProtobuf).headers.at("content-type"),
            "application/json");
}

TEST_F(ProtobufOutput, FollowsTheQualityOfAccept) {
  in(kConfigMaps).create(config_map("a"));
  const auto type = [&](const std::string& accept) {
    return ask(kMaps + "/a", accept).headers.at("content-type");
  };
  EXPECT_EQ(type("application/json," + kProtobuf), "application/json");
  EXPECT_EQ(type("*/*"), "application/json");
  EXPECT_EQ(type(kProtobuf + ";q=0.5,application/json;q=0.9"), "application/json");
  EXPECT_EQ(type("application/json;q=0.5," + kProtobuf), kProtobuf);
  EXPECT_EQ(type(kProtobuf + ";as=Table;v=v1;g=meta.k8s.io,application/json"), "application/json")
      << "there are no tables in protobuf";
}

TEST_F(ProtobufOutput, CustomResourcesAreJson) {
  all(kDefinitions)
      .create(from_json(
          R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
          "metadata":{"name":"crontabs.stable.example.com"},"spec":{"group":"stable.example.com",
          "scope":"Namespaced","names":{"plural":"crontabs","kind":"CronTab"},"versions":[{"name":
          "v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
          "x-kubernetes-preserve-unknown-fields":true}}}]}})"));
  const std::string tabs = "/apis/stable.example.com/v1/namespaces/default/crontabs";
  ASSERT_TRUE(eventually([&] { return ask(tabs, "").code == 200; }));
  EXPECT_EQ(ask(tabs, kProtobuf + ",application/json").headers.at("content-type"),
            "application/json");
  EXPECT_EQ(ask(tabs, kProtobuf).code, 406);
  EXPECT_EQ(ask(tabs + "?watch=1", kProtobuf).code, 406);
  EXPECT_EQ(
      decoded(ask(tabs, kProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")).kind(),
      "PartialObjectMetadataList");
}

TEST_F(ProtobufOutput, WatchesAreFrames) {
  in(kConfigMaps).create(config_map("a"));
  const HttpAnswer answer =
      ask(kMaps +
              "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&"
              "resourceVersionMatch=NotOlderThan",
          kProtobuf);
  EXPECT_EQ(answer.headers.at("content-type"), kProtobuf + ";stream=watch");
  std::vector<api::WatchEvent> events;
  api::ProtobufWatchDecoder decoder(
      {.lossless = true}, [&](api::WatchEvent event) { events.push_back(std::move(event)); },
      [](const api::MalformedObject& malformed) { ADD_FAILURE() << malformed.reason; });
  decoder.feed(answer.body);
  EXPECT_TRUE(decoder.finish()) << decoder.error();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0].type, api::EventType::kAdded);
  EXPECT_EQ(events[0].object, Object::parse(ask(kMaps + "/a", "").body));
  EXPECT_EQ(events[1].type, api::EventType::kBookmark);
  EXPECT_EQ(events[1].object.annotations()[api::kInitialEventsEndAnnotation].as_string(), "true");
}

TEST_F(ProtobufOutput, WatchersOfBothEncodingsReceiveTheSame) {
  std::vector<std::vector<api::WatchEvent>> told;
  std::vector<rest::WatchStream> streams;
  const std::string from = in(kConfigMaps).list().resource_version;
  for (const auto type : {rest::ContentType::kJson, rest::ContentType::kProtobuf}) {
    for (const bool metadata_only : {false, true}) {
      streams.push_back(in(kConfigMaps)
                            .watch({.resource_version = from},
                                   {.metadata_only = metadata_only, .content_type = type}));
    }
  }
  in(kConfigMaps).create(config_map("a"));
  in(kConfigMaps).update(changed(in(kConfigMaps).get("a"), R"({"data":{"key":"<&>"}})"));
  in(kConfigMaps).remove("a");
  for (auto& stream : streams) {
    told.emplace_back();
    for (int i = 0; i < 3; ++i) told.back().push_back(*stream.next());
  }
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::size_t metadata_only : {0u, 1u}) {
      EXPECT_EQ(told[metadata_only][i].type, told[2 + metadata_only][i].type);
      EXPECT_EQ(told[metadata_only][i].object, told[2 + metadata_only][i].object);
    }
  }
}

}  // namespace
}  // namespace lookout::apiserver
