// The form of responses: indented JSON, warnings, failures, and errors of requests that are
// malformed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apiserver/endpoints/indentation.h"
#include "apiserver/endpoints/json_syntax.h"
#include "apiserver/endpoints/warning_headers.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

constexpr const char* kMetadataOnly =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

class Answers : public ClientTest {
 protected:
  HttpAnswer get(const std::string& target, const HttpClient::Headers& headers = {}) const {
    return http(server_.port(), "GET", target, {}, headers);
  }
  std::string message(const HttpAnswer& answer) const {
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  }
  const std::string configs_ = kConfigMapsPath;
};

TEST(Indentation, EqualsGo) {
  const std::string json = R"({"a":{},"b":[],"c":[1,{"d":"x\"{,:\\"}],"e":"","f":null})"
                           "\n";
  const std::string expected =
      "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x\\\"{,:\\\\\"\n"
      "    }\n  ],\n  \"e\": \"\",\n  \"f\": null\n}";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, json.size()}) {
    endpoints::JsonIndenter indenter;
    std::string out;
    for (std::size_t at = 0; at < json.size(); at += step)
      indenter.add(std::string_view(json).substr(at, step), out);
    EXPECT_EQ(out, expected) << step;
  }
}

TEST_F(Answers, AreIndentedForPeople) {
  in(kConfigMaps).create(config_map("c"));
  const HttpClient::Headers curl = {{"User-Agent", "curl/8.0"}};
  const HttpClient::Headers accepted = {{"Accept", "application/json;pretty=1"}};
  for (const std::string& path : {configs_, configs_ + "/c", configs_ + "/none",
                                  std::string("/api"), std::string("/apis/apps/v1")}) {
    const std::string plain = get(path).body;
    const std::string indented = get(path + "?pretty=true").body;
    EXPECT_TRUE(indented.starts_with("{\n  \"kind\": \"")) << indented;
    EXPECT_TRUE(indented.ends_with("\n}")) << path;
    EXPECT_FALSE(plain.starts_with("{\n")) << plain;
    EXPECT_EQ(Object::parse(indented), Object::parse(plain));
    EXPECT_EQ(get(path, curl).body, indented);
    EXPECT_EQ(get(path, accepted).body, indented);
    EXPECT_EQ(get(path + "?pretty=0", curl).body, plain);
  }
}

TEST_F(Answers, OfWatchesHaveOneEventPerLine) {
  in(kConfigMaps).create(config_map("c"));
  const HttpAnswer events =
      get(configs_ + "?watch=1&resourceVersion=0&timeoutSeconds=1&pretty=true");
  EXPECT_TRUE(events.body.starts_with(R"({"type":"ADDED","object":{)")) << events.body;
}

TEST_F(Answers, AreNotCachedByDefault) {
  for (const char* path :
       {"/nothing", "/api/v1/nodes", "/healthz", "/healthz/ping", "/version", "/"})
    EXPECT_EQ(get(path).headers.at("cache-control"), "no-cache, private") << path;
  EXPECT_EQ(get("/nothing").headers.at("x-content-type-options"), "nosniff");
  const HttpAnswer aggregated =
      get("/apis",
          {{"Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}});
  EXPECT_EQ(aggregated.headers.at("cache-control"), "public");
}

TEST_F(Answers, ListPathsAtTheRoot) {
  const std::string body = get("/").body;
  for (const char* path :
       {"/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz/ping", "/openapi/v3"})
    EXPECT_THAT(body, HasSubstr("\n    \"" + std::string(path) + "\"")) << body;
  EXPECT_EQ(get("/index.html").body, body);
}

TEST_F(Answers, AreNotConvertedIfTheyAreFailures) {
  const HttpAnswer metadata = get(configs_ + "/none", {{"Accept", kMetadataOnly}});
  EXPECT_EQ(metadata.headers.at("content-type"), "application/json");
  EXPECT_EQ(message(metadata), "configmaps \"none\" not found");
  const HttpAnswer binary =
      get(configs_ + "/none", {{"Accept", "application/vnd.kubernetes.protobuf"}});
  EXPECT_EQ(binary.headers.at("content-type"), "application/vnd.kubernetes.protobuf");
  // A client that accepts none of the encodings gets a readable message.
  const HttpAnswer none = get(configs_ + "/none", {{"Accept", "image/png"}});
  EXPECT_EQ(none.code, 406);
  EXPECT_TRUE(none.body.starts_with("{\n  \"kind\": \"Status\"")) << none.body;
}

TEST_F(Answers, AreNotConvertedIfTheyAreNotObjects) {
  in(kConfigMaps).create(config_map("c"));
  const HttpAnswer removed =
      http(server_.port(), "DELETE", configs_ + "/c", {}, {{"Accept", kMetadataOnly}});
  EXPECT_EQ(removed.headers.at("content-type"), "application/vnd.kubernetes.protobuf");
  EXPECT_THAT(removed.body, HasSubstr("Success"));
  in(kConfigMaps).create(config_map("c"));
  const HttpAnswer in_json =
      http(server_.port(), "DELETE", configs_ + "/c", {},
           {{"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}});
  EXPECT_EQ(lookout::test::held(Object::parse(in_json.body))["details"]["name"].as_string(), "c");
}

TEST_F(Answers, RejectATimeoutWithoutAUnit) {
  const HttpAnswer answer = get(configs_ + "?timeout=30");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(message(answer),
            "invalid timeout specified in the request URL - time: missing unit in duration \"30\"");
  EXPECT_EQ(
      message(get(configs_ + "?timeout=3days")),
      "invalid timeout specified in the request URL - time: unknown unit \"days\" in duration "
      "\"3days\"");
  EXPECT_EQ(message(get(configs_ + "?timeout=soon")),
            "invalid timeout specified in the request URL - time: invalid duration \"soon\"");
  for (const char* good : {"30s", "0", "1h2m3.5s", "-1s", ""})
    EXPECT_EQ(get(configs_ + "?timeout=" + good).code, 200) << good;
  EXPECT_EQ(get(configs_ + "?watch=1&timeoutSeconds=1&timeout=x").code, 200);
}

TEST_F(Answers, RejectExport) {
  in(kConfigMaps).create(config_map("c"));
  const HttpAnswer answer = get(configs_ + "/c?export=true");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(message(answer),
            "the export parameter, deprecated since v1.14, is no longer supported");
  EXPECT_EQ(get(configs_ + "/c?export=false").code, 200);
}

TEST_F(Answers, NameAllErrorsOfAFieldManager) {
  const HttpAnswer answer =
      http(server_.port(), "PATCH", configs_ + "/c?force=1&fieldManager=a%0Ab%C2%A0", "[]",
           {{"Content-Type", "application/json-patch+json"}});
  EXPECT_EQ(answer.code, 422);
  EXPECT_THAT(causes_of(answer),
              testing::ElementsAre(
                  "force: Forbidden: may not be specified for non-apply patch",
                  "fieldManager: Invalid value: \"a\\nb\\u00a0\": invalid character U+000A (at "
                  "position 1)",
                  "fieldManager: Invalid value: \"a\\nb\\u00a0\": invalid character U+00A0 (at "
                  "position 3)"));
}

TEST(WarningHeaders, AreNotRepeated) {
  using endpoints::warning_headers;
  EXPECT_THAT(warning_headers({"a", "b\"\\", "a", "", "c\nd", "\xff", "\xc3\xa9"}),
              testing::ElementsAre("299 - \"a\"", R"(299 - "b\"\\")", "299 - \"c d\"",
                                   "299 - \"\xc3\xa9\""));
}

TEST(WarningHeaders, AreLimited) {
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i) texts.push_back(std::to_string(100 + i) + std::string(297, 'x'));
  const std::vector<std::string> few(texts.begin(), texts.begin() + 13);
  EXPECT_THAT(endpoints::warning_headers(few),
              testing::AllOf(testing::SizeIs(13), testing::Each(testing::SizeIs(308))));
  EXPECT_THAT(endpoints::warning_headers(texts),
              testing::AllOf(testing::SizeIs(16), testing::Each(testing::SizeIs(264))));
}

/// The messages of Go 1.26.
TEST(JsonSyntax, ErrorsEqualGo) {
  using endpoints::json_syntax_error;
  const std::pair<std::string, const char*> cases[] = {
      {"", "unexpected end of JSON input"},
      {"x", "invalid character 'x' looking for beginning of value"},
      {"\xcf", "invalid character '\xc3\x8f' looking for beginning of value"},
      {R"({"a":1,})", "invalid character '}' looking for beginning of object key string"},
      {"{'a':1}", R"(invalid character '\'' looking for beginning of object key string)"},
      {R"({"a" 1})", "invalid character '1' after object key"},
      {R"({"a":01})", "invalid character '1' after object key:value pair"},
      {R"({"a":tru})", "invalid character '}' in literal true (expecting 'e')"},
      {"nul", "invalid character ' ' in literal null (expecting 'l')"},
      {"[1 2]", "invalid character '2' after array element"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"[1", "unexpected end of JSON input"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"-", "invalid character ' ' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1e", "invalid character ' ' in exponent of numeric literal"},
      {R"("\x")", "invalid character 'x' in string escape code"},
      {R"("\u12g")", R"(invalid character 'g' in \u hexadecimal character escape)"},
      {"\"a\nb\"", R"(invalid character '\n' in string literal)"},
      {"\"a", "unexpected end of JSON input"},
      {std::string(10001, '['), "exceeded max depth"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(json_syntax_error(text), error) << text;
  for (const char* good :
       {R"( {"a":[1,-0.5e+3,"\u00e9\n",true,null],"b":{}} )", "0", "[]", R"("x")"})
    EXPECT_EQ(json_syntax_error(good), "") << good;
  EXPECT_EQ(json_syntax_error(std::string(10000, '[') + std::string(10000, ']')), "");
}

// client-go's metadata client requests objects, and lists of them, in two different encodings.
TEST_F(Answers, ThatAreListsAreNotConvertedToObjects) {
  constexpr const char* kOne = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  constexpr const char* kMany = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  in(kConfigMaps).create(config_map("c"));
  const HttpAnswer list = get(configs_, {{"Accept", kOne}});
  EXPECT_EQ(list.code, 406);
  EXPECT_EQ(message(list),
            "you requested PartialObjectMetadata, but the requested object is a list "
            "(*core.ConfigMapList)");
  const HttpAnswer one = get(configs_ + "/c", {{"Accept", kMany}});
  EXPECT_EQ(one.code, 406);
  EXPECT_EQ(message(one),
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            "(*core.ConfigMap)");
  EXPECT_EQ(get(configs_ + "/none", {{"Accept", kMany}}).code, 404);
  // Writes take effect before the response is converted.
  const HttpAnswer created = http(server_.port(), "POST", configs_, config_map_text("d"),
                                  {{"Content-Type", "application/json"}, {"Accept", kMany}});
  EXPECT_EQ(created.code, 406);
  EXPECT_EQ(get(configs_ + "/d").code, 200);
  EXPECT_EQ(http(server_.port(), "DELETE", configs_, {}, {{"Accept", kOne}}).code, 406);
  EXPECT_EQ(get(configs_ + "/d").code, 404);
}

// kube-apiserver accepts the type, but fails to encode the first object.
TEST_F(Answers, AWatchOfListsEndsWithItsFirstObject) {
  in(kConfigMaps).create(config_map("c"));
  for (const char* type : {"application/json", "application/vnd.kubernetes.protobuf"}) {
    const std::string accept =
        std::string(type) + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    const HttpAnswer watch = get(configs_ + "?watch=true&timeoutSeconds=5", {{"Accept", accept}});
    EXPECT_EQ(watch.code, 200);
    EXPECT_TRUE(watch.headers.at("content-type").starts_with(type));
    EXPECT_EQ(watch.body, "");
  }
  // An error is no object.
  const HttpAnswer gone =
      get(configs_ + "?watch=true&resourceVersion=1",
          {{"Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}});
  EXPECT_NE(gone.body.find("Expired"), std::string::npos) << gone.body;
}

TEST_F(Answers, HaveThePreferredType) {
  in(kConfigMaps).create(config_map("c"));
  const auto type = [&](const char* accept) {
    return get(configs_ + "/c", {{"Accept", accept}}).headers.at("content-type");
  };
  EXPECT_EQ(type("application/json;q=0.5,application/yaml"), "application/yaml");
  EXPECT_EQ(type("*/*,application/yaml"), "application/yaml");
  EXPECT_EQ(type("application/json,application/yaml"), "application/json");
}

}  // namespace
}  // namespace lookout::apiserver
