#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/protobuf.h"
#include "lookout/apiserver/server.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using api::Object;

constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

Object recorded(const std::string& name) {
  return Object::parse(test::read_file(test::testdata("kube-1.36/discovery/" + name)));
}

/// The definition that the recorded server had.
std::string cron_tab() {
  const Object list = Object::parse(test::read_file(
      test::testdata("kube-1.36/list/apiextensions.k8s.io_v1_customresourcedefinitions.json")));
  rapidjson::Document definition = Object::parse(list["items"][0].to_json()).to_document();
  definition.RemoveMember("status");
  for (const char* field :
       {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"})
    definition["metadata"].RemoveMember(field);
  return Object::from(definition).to_json();
}

class Discovery : public testing::Test {
 protected:
  Discovery() {
    const auto answer = http(server_.port(), "POST",
                             "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", cron_tab());
    EXPECT_EQ(answer.code, 201) << answer.body;
  }

  Object get(const std::string& path, const char* accept = "application/json") {
    const auto answer = http(server_.port(), "GET", path, {}, {{"Accept", accept}});
    EXPECT_EQ(answer.code, 200) << answer.body;
    content_type_ = answer.headers.at("content-type");
    return Object::parse(answer.body);
  }

  Server server_;
  std::string content_type_;
};

// kubectl caches documents on disk and revalidates them.
TEST_F(Discovery, SupportsIfNoneMatch) {
  for (const char* path : {"/apis", "/openapi/v2", "/openapi/v3/apis/apps/v1"}) {
    const HttpAnswer first = http(server_.port(), "GET", path, {}, {{"Accept", kAggregated}});
    ASSERT_EQ(first.code, 200) << path;
    const std::string tag = first.headers.at("etag");
    const HttpAnswer again =
        http(server_.port(), "GET", path, {}, {{"Accept", kAggregated}, {"If-None-Match", tag}});
    EXPECT_EQ(again.code, 304) << path;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(again.headers.at("etag"), tag);
    const HttpAnswer other = http(server_.port(), "GET", path, {},
                                  {{"Accept", kAggregated}, {"If-None-Match", "\"x\""}});
    EXPECT_EQ(other.body, first.body);
  }
}

TEST_F(Discovery, ADocumentWithItsHashMayBeCached) {
  const Object index = get("/openapi/v3");
  const std::string url(index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_string());
  const HttpAnswer document = http(server_.port(), "GET", url);
  EXPECT_EQ(document.code, 200);
  EXPECT_EQ(document.headers.at("cache-control"), "public, immutable");
  EXPECT_TRUE(document.headers.contains("expires"));
  const HttpAnswer old = http(server_.port(), "GET", "/openapi/v3/apis/apps/v1?hash=OLD");
  EXPECT_EQ(old.code, 301);
  EXPECT_EQ(old.headers.at("location"), url);
}

TEST_F(Discovery, DistinguishesUnknownVersionsFromUnknownGroups) {
  for (const char* path : {"/apis/apps/v9", "/apis/apps/v9/deployments", "/api/v2"}) {
    const HttpAnswer answer = http(server_.port(), "GET", path);
    EXPECT_EQ(answer.code, 404);
    EXPECT_EQ(lookout::test::held(Object::parse(answer.body))["message"].as_string(),
              "the server could not find the requested resource")
        << path;
  }
  for (const char* path : {"/apis/none.example.com/v1", "/apis/none.example.com/v1/things"})
    EXPECT_EQ(http(server_.port(), "GET", path).body, "404 page not found\n") << path;
}

// Unsupported operations have no path.
TEST_F(Discovery, CreateOnlyResourcesHaveNoObjects) {
  for (const char* path : {"/api/v1/namespaces/default/bindings/b",
                           "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/r"})
    EXPECT_EQ(http(server_.port(), "GET", path).code, 404) << path;
  EXPECT_EQ(http(server_.port(), "GET", "/api/v1/namespaces/default/bindings").code, 405);
}

TEST_F(Discovery, EqualsTheRecording) {
  EXPECT_EQ(get("/apis"), recorded("apis.json"));
  EXPECT_EQ(get("/api/v1"), recorded("api_v1.json"));
  EXPECT_EQ(get("/apis/apps/v1"), recorded("apis_apps_v1.json"));
  const Object versions = get("/api");
  EXPECT_EQ(versions["versions"], lookout::test::held(recorded("api.json"))["versions"]);
  EXPECT_EQ(versions["serverAddressByClientCIDRs"][0]["serverAddress"].as_string(),
            "127.0.0.1:" + std::to_string(server_.port()));
}

TEST_F(Discovery, EqualsTheRecordingInAggregatedForm) {
  EXPECT_EQ(get("/api", kAggregated), recorded("api_aggregated.json"));
  EXPECT_EQ(content_type_, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(get("/apis", kAggregated), recorded("apis_aggregated.json"));
}

TEST_F(Discovery, DescribesOneGroup) {
  const Object group = get("/apis/autoscaling");
  EXPECT_EQ(group.kind(), "APIGroup");
  EXPECT_EQ(group["versions"].size(), 2u);
  EXPECT_EQ(group["preferredVersion"]["groupVersion"].as_string(), "autoscaling/v2");
}

TEST_F(Discovery, ReportsTheVersion) {
  const Object version = get("/version");
  EXPECT_EQ(version["major"].as_string(), "1");
  EXPECT_EQ(version["minor"].as_string(), "36");
  EXPECT_TRUE(version["gitVersion"].as_string().starts_with("v1.36.0-lookout."));
}

TEST_F(Discovery, RejectsOtherPaths) {
  for (const char* path :
       {"/nope", "/apis/nope.example.com", "/apis/nope.example.com/v1/things",
        "/apis/stable.example.com/v2/crontabs", "/apis/stable.example.com/v1/nopes"}) {
    const auto answer = http(server_.port(), "GET", path);
    EXPECT_EQ(answer.code, 404) << path;
    EXPECT_EQ(answer.body, "404 page not found\n") << path;
  }
}

TEST_F(Discovery, ReportsHealth) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz/ping"}) {
    const auto answer = http(server_.port(), "GET", path);
    EXPECT_EQ(answer.code, 200);
    EXPECT_EQ(answer.body, "ok");
  }
}

TEST_F(Discovery, RemovesADeletedDefinition) {
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v1").code, 200);
  http(server_.port(), "DELETE",
       "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com");
  // It is deleted after its instances, asynchronously.
  int code = 200;
  for (int i = 0; i < 5000 && code == 200; ++i)
    code = http(server_.port(), "GET", "/apis/stable.example.com/v1").code;
  EXPECT_EQ(code, 404);
}

TEST_F(Discovery, ServesOpenApiInBothEncodings) {
  EXPECT_EQ(lookout::test::held(get("/openapi/v2"))["swagger"].as_string(), "2.0");
  const auto answer =
      http(server_.port(), "GET", "/openapi/v2", {},
           {{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}});
  EXPECT_EQ(answer.code, 200);
  // Field 1, three bytes: "2.0".
  EXPECT_EQ(answer.body.substr(0, 5),
            "\x0A\x03"
            "2.0");
}

TEST_F(Discovery, IsInTheFormThatTheClientAccepts) {
  const auto ask = [&](const char* path, const char* accept) {
    return http(server_.port(), "GET", path, {}, {{"Accept", accept}});
  };
  const auto message = [](const HttpAnswer& answer) {
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  };
  const auto expect_refused = [&](std::initializer_list<const char*> paths, const char* why) {
    for (const char* path : paths) {
      const HttpAnswer answer = ask(path, "image/png");
      EXPECT_EQ(answer.code, 406) << path;
      EXPECT_EQ(message(answer), why) << path;
    }
  };
  expect_refused({"/api", "/api/v1", "/apis/apps/v1"},
                 "406: Not Acceptable\n\nAvailable representations: application/json, "
                 "application/yaml, application/vnd.kubernetes.protobuf");
  // The aggregator has no routes of go-restful.
  expect_refused({"/apis", "/apis/apps", "/apis/stable.example.com/v1"},
                 "only the following media types are accepted: application/json, application/yaml, "
                 "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(message(ask("/version", "text/html")),
            "406: Not Acceptable\n\nAvailable representations: application/json");
  EXPECT_EQ(ask("/version", "application/yaml").headers.at("content-type"), "application/yaml");
  // 1.36 has no beta version of aggregated discovery.
  constexpr const char* kBeta =
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
  EXPECT_EQ(ask("/apis", kBeta).code, 406);
  EXPECT_EQ(get("/apis", (std::string(kBeta) + ",application/json").c_str()).kind(),
            "APIGroupList");
  EXPECT_EQ(get("/apis", (std::string("application/json,") + kAggregated).c_str()).kind(),
            "APIGroupDiscoveryList");
}

TEST_F(Discovery, ComesInProtobuf) {
  for (const char* path : {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"}) {
    const HttpAnswer answer =
        http(server_.port(), "GET", path, {}, {{"Accept", "application/vnd.kubernetes.protobuf"}});
    EXPECT_EQ(answer.headers.at("content-type"), "application/vnd.kubernetes.protobuf") << path;
    const Object decoded = api::ProtobufDecoder().decode(answer.body);
    const Object plain = get(path);
    EXPECT_EQ(decoded.kind(), plain.kind());
    for (const char* part : {"versions", "groups", "resources", "groupVersion"})
      EXPECT_EQ(decoded[part], plain[part]) << path << " " << part;
  }
}

/// The fields of a protobuf message whose fields are texts and messages, except for numbers, which
/// are skipped.
std::multimap<unsigned, std::string> proto_fields(std::string_view bytes) {
  std::multimap<unsigned, std::string> out;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (!bytes.empty()) {
    const std::uint64_t tag = varint();
    const std::uint64_t value = varint();
    if ((tag & 7) != 2) continue;
    out.emplace(static_cast<unsigned>(tag >> 3), bytes.substr(0, value));
    bytes.remove_prefix(std::min<std::size_t>(value, bytes.size()));
  }
  return out;
}

std::string proto_text(const std::multimap<unsigned, std::string>& fields, unsigned number) {
  const auto at = fields.find(number);
  return at == fields.end() ? "(none)" : at->second;
}

std::string proto_texts(const std::multimap<unsigned, std::string>& fields, unsigned number) {
  std::string out;
  const auto [begin, end] = fields.equal_range(number);
  for (auto at = begin; at != end; ++at) out += at->second + ",";
  return out;
}

std::string json_texts(api::Value list) {
  std::string out;
  for (const api::Value one : list.elements()) out.append(one.as_string()).append(",");
  return out;
}

std::string proto_kind(const std::string& bytes) {
  const auto fields = proto_fields(bytes);
  return proto_text(fields, 1) + "/" + proto_text(fields, 2) + "/" + proto_text(fields, 3);
}

std::string json_kind(api::Value kind) {
  return fmt::format("{}/{}/{}", kind["group"].as_string(), kind["version"].as_string(),
                     kind["kind"].as_string());
}

/// A line for each resource and subresource.
std::vector<std::string> proto_lines(const std::string& list) {
  std::vector<std::string> out;
  const auto each = [](const std::multimap<unsigned, std::string>& fields, unsigned number,
                       const auto& visit) {
    const auto [begin, end] = fields.equal_range(number);
    for (auto at = begin; at != end; ++at) visit(proto_fields(at->second));
  };
  each(proto_fields(list), 2, [&](const auto& group) {
    const std::string name = proto_text(proto_fields(proto_text(group, 1)), 1);
    each(group, 2, [&](const auto& version) {
      out.push_back(fmt::format("{} {} {}", name, proto_text(version, 1), proto_text(version, 3)));
      each(version, 2, [&](const auto& resource) {
        out.push_back(fmt::format("{} {} {} {} {} {} {}", proto_text(resource, 1),
                                  proto_kind(proto_text(resource, 2)), proto_text(resource, 3),
                                  proto_text(resource, 4), proto_texts(resource, 5),
                                  proto_texts(resource, 6), proto_texts(resource, 7)));
        each(resource, 8, [&](const auto& part) {
          out.push_back(fmt::format("{} {} {}", proto_text(part, 1),
                                    proto_kind(proto_text(part, 2)), proto_texts(part, 4)));
        });
      });
    });
  });
  return out;
}

std::vector<std::string> json_lines(const Object& list) {
  std::vector<std::string> out;
  for (const api::Value group : list["items"].elements()) {
    for (const api::Value version : group["versions"].elements()) {
      out.push_back(fmt::format("{} {} {}", group["metadata"]["name"].as_string(),
                                version["version"].as_string(), version["freshness"].as_string()));
      for (const api::Value resource : version["resources"].elements()) {
        out.push_back(
            fmt::format("{} {} {} {} {} {} {}", resource["resource"].as_string(),
                        json_kind(resource["responseKind"]), resource["scope"].as_string(),
                        resource["singularResource"].as_string(), json_texts(resource["verbs"]),
                        json_texts(resource["shortNames"]), json_texts(resource["categories"])));
        for (const api::Value part : resource["subresources"].elements()) {
          out.push_back(fmt::format("{} {} {}", part["subresource"].as_string(),
                                    json_kind(part["responseKind"]), json_texts(part["verbs"])));
        }
      }
    }
  }
  return out;
}

TEST_F(Discovery, ComesInProtobufInAggregatedForm) {
  constexpr const char* kProtobuf =
      "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  for (const char* path : {"/api", "/apis"}) {
    const HttpAnswer answer = http(server_.port(), "GET", path, {}, {{"Accept", kProtobuf}});
    ASSERT_EQ(answer.code, 200) << answer.body;
    EXPECT_EQ(answer.headers.at("content-type"), kProtobuf);
    ASSERT_TRUE(api::is_protobuf(answer.body));
    const auto envelope = proto_fields(answer.body.substr(api::kProtobufMagic.size()));
    const auto type = proto_fields(proto_text(envelope, 1));
    EXPECT_EQ(proto_text(type, 1), "apidiscovery.k8s.io/v2");
    EXPECT_EQ(proto_text(type, 2), "APIGroupDiscoveryList");
    EXPECT_EQ(proto_lines(proto_text(envelope, 2)), json_lines(get(path, kAggregated)));
    // Both forms have one tag.
    EXPECT_EQ(http(server_.port(), "GET", path, {},
                   {{"Accept", kAggregated}, {"If-None-Match", answer.headers.at("etag")}})
                  .code,
              304);
  }
  // The first of several forms counts.
  get("/apis", (std::string(kAggregated) + "," + kProtobuf).c_str());
  EXPECT_TRUE(content_type_.starts_with("application/json;g=")) << content_type_;
}

TEST_F(Discovery, IsReadByTheMethodsOfItsRoutes) {
  const auto code = [&](const char* method, const char* path) {
    return http(server_.port(), method, path).code;
  };
  for (const char* path : {"/api", "/api/v1", "/apis/apps/v1", "/version"}) {
    EXPECT_EQ(code("POST", path), 405) << path;
    EXPECT_EQ(code("PUT", path), 405) << path;
  }
  for (const char* path : {"/apis", "/apis/apps", "/apis/stable.example.com/v1", "/"})
    EXPECT_EQ(code("PUT", path), 200) << path;
}

}  // namespace
}  // namespace lookout::apiserver
