// YAML requests and responses.

#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

class Yaml : public ClientTest {
 protected:
  HttpAnswer ask(const std::string& method, const std::string& target,
                 const std::string& body = "") const {
    HttpClient::Headers headers{{"Accept", "application/yaml"}};
    if (!body.empty()) headers.emplace_back("Content-Type", "application/yaml");
    return http(server_.port(), method, target, body, headers);
  }
};

TEST_F(Yaml, IsAcceptedAndReturned) {
  const HttpAnswer created = ask("POST", kConfigMapsPath,
                                 "apiVersion: v1\n"
                                 "kind: ConfigMap\n"
                                 "metadata: {name: m, labels: {a: \"1\"}}\n"
                                 "data:\n"
                                 "  lines: |\n"
                                 "    one\n"
                                 "    two\n"
                                 "  flag: \"true\"\n");
  EXPECT_EQ(created.code, 201);
  EXPECT_EQ(created.headers.at("content-type"), "application/yaml");
  EXPECT_THAT(created.body, StartsWith("apiVersion: v1\n"
                                       "data:\n"
                                       "  flag: \"true\"\n"
                                       "  lines: |\n"
                                       "    one\n"
                                       "    two\n"
                                       "kind: ConfigMap\n"
                                       "metadata:\n"));
  EXPECT_EQ(lookout::test::held(in(kConfigMaps).get("m"))["data"]["lines"].as_string(),
            "one\ntwo\n");
  EXPECT_EQ(ask("PUT", std::string(kConfigMapsPath) + "/m", created.body).code, 200);
}

TEST_F(Yaml, SupportsListsAndFailures) {
  in(kConfigMaps).create(config_map("m"));
  EXPECT_THAT(
      ask("GET", kConfigMapsPath).body,
      AllOf(StartsWith("apiVersion: v1\nitems:\n- data:\n"), HasSubstr("kind: ConfigMapList\n")));
  const HttpAnswer failure = ask("GET", std::string(kConfigMapsPath) + "/none");
  EXPECT_EQ(failure.code, 404);
  EXPECT_THAT(failure.body, HasSubstr("message: configmaps \"none\" not found\n"));
  EXPECT_THAT(ask("GET", "/apis/apps/v1").body, HasSubstr("groupVersion: apps/v1\n"));
}

TEST_F(Yaml, IsNotSupportedForWatches) {
  const HttpAnswer answer = ask("GET", std::string(kConfigMapsPath) + "?watch=1");
  EXPECT_EQ(answer.code, 406);
  EXPECT_THAT(answer.body, HasSubstr("application/json;stream=watch"));
}

TEST_F(Yaml, IsRejectedIfMalformed) {
  const HttpAnswer answer = ask("POST", kConfigMapsPath, "a: [1, 2\nb: {");
  EXPECT_EQ(answer.code, 400);
  EXPECT_THAT(answer.body, HasSubstr("error converting YAML to JSON: yaml: line"));
  EXPECT_EQ(http(server_.port(), "PATCH", std::string(kConfigMapsPath) + "/m", "a: b",
                 {{"Content-Type", "application/yaml"}})
                .code,
            415);
}

// Watches are not available in YAML, even for clients that also accept JSON.
TEST_F(Yaml, IsTheEncodingOfARejectedWatch) {
  for (const char* accept : {"application/yaml", "application/yaml, application/json"}) {
    const HttpAnswer answer = http(server_.port(), "GET", std::string(kConfigMapsPath) + "?watch=1",
                                   "", {{"Accept", accept}});
    EXPECT_EQ(answer.code, 406);
    EXPECT_EQ(answer.headers.at("content-type"), "application/yaml");
    EXPECT_THAT(answer.body, HasSubstr("application/json;stream=watch"));
  }
}

TEST_F(Yaml, IsNegotiated) {
  in(kConfigMaps).create(config_map("m"));
  const auto type = [&](const std::string& accept) {
    return http(server_.port(), "GET", kConfigMapsPath, "", {{"Accept", accept}})
        .headers.at("content-type");
  };
  EXPECT_EQ(type("application/json, application/yaml"), "application/json");
  EXPECT_EQ(type("application/yaml, application/json;q=0.5"), "application/yaml");
  EXPECT_EQ(type("text/html, application/yaml"), "application/yaml");
}

}  // namespace
}  // namespace lookout::apiserver
