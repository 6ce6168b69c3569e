// The recorded failed requests must have the same responses from the embedded server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/ascii.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using api::Object;
using api::Value;

std::string testdata_text(const std::string& name) { return test::read_file(test::testdata(name)); }

std::string without_server_fields(const std::string& json) {
  rapidjson::Document document = Object::parse(json).to_document();
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"})
    document["metadata"].RemoveMember(field);
  return Object::from(document).to_json();
}

/// The objects of the recorded requests.
void load(Server& server) {
  const auto post = [&](const std::string& path, const std::string& body) {
    const auto answer = http(server.port(), "POST", path, body);
    ASSERT_EQ(answer.code, 201) << answer.body;
  };
  for (const char* ns : {"shop", "shop2"})
    post("/api/v1/namespaces", R"({"metadata":{"name":")" + std::string(ns) + R"("}})");
  post("/api/v1/namespaces/shop/configmaps",
       R"({"metadata":{"name":"app-config"},"data":{"a":"b"}})");
  const Object pods = Object::parse(testdata_text("kube-1.36/selectors/pods.json"));
  for (const Value item : pods["items"].elements()) {
    const std::string pod = without_server_fields(item.to_json());
    post("/api/v1/namespaces/shop2/pods", pod);
    // Status updates by nodes follow later.
    const auto answer = http(server.port(), "PUT",
                             "/api/v1/namespaces/shop2/pods/" +
                                 std::string(item["metadata"]["name"].as_string()) + "/status",
                             pod);
    ASSERT_EQ(answer.code, 200) << answer.body;
  }
}

/// Recorded responses whose text differs in the embedded server.
struct Exception {
  /// The expected message, as a regular expression; empty if the whole response differs and is checked
  /// below.
  const char* message;
};
const std::map<std::string, Exception>& exceptions() {
  static const std::map<std::string, Exception> kExceptions = {
      // Contains the newest revision, which differs here.
      {"rv_too_large", {R"(Timeout: Too large resource version: 999999999, current: \d+)"}},
      // Lists the available encodings, without YAML.
      {"not_acceptable",
       {R"(406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch)"}},
      // In the original, a comparison of Go's structures follows.
      {"immutable",
       {R"(Pod "p1" is invalid: spec: Forbidden: pod updates may not change fields other than [^@]*)"}},
  };
  return kExceptions;
}

class RecordedStatus : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServerOptions options;
    // As low as the recorded server's: 999999999 is in the future.
    options.first_revision = 100;
    // The resourceVersion 1 must be before the history.
    options.history = 12;
    options.future_wait = std::chrono::milliseconds(50);
    server_ = new Server(options);
    load(*server_);
  }
  static void TearDownTestSuite() { delete server_; }

  static inline Server* server_ = nullptr;
};

TEST_F(RecordedStatus, EveryResponseEqualsTheRecording) {
  const Object recordings = Object::parse(testdata_text("kube-1.36/status.json"));
  // Cases with credentials (see the authentication tests) and watches (see below).
  const std::set<std::string_view> elsewhere = {"anonymous", "bad_token", "watch_gone",
                                                "watch_rv_future"};
  int compared = 0;
  for (const auto& [name, recording] : recordings.body().members()) {
    if (elsewhere.contains(name)) continue;
    SCOPED_TRACE(name);
    const Value request = recording["request"];
    HttpClient::Headers headers;
    for (const auto& [header, value] : request["headers"].members())
      headers.emplace_back(header, value.as_string());
    const auto answer = http(server_->port(), std::string(request["method"].as_string()),
                             std::string(request["path"].as_string()),
                             std::string(request["body"].as_string()), headers);
    EXPECT_EQ(answer.code, recording["code"].as_int());
    EXPECT_EQ(answer.headers.at("content-type"), recording["headers"]["Content-Type"].as_string());
    if (const auto retry = recording["headers"]["Retry-After"]; retry.exists()) {
      EXPECT_EQ(answer.headers.at("retry-after"), retry.as_string());
    }
    const auto given = api::Status::from(Object::parse(answer.body));
    auto expected = api::Status::from(Object::parse(recording["body"].to_json()));
    ASSERT_TRUE(given) << answer.body;
    ASSERT_TRUE(expected);
    if (const auto exception = exceptions().find(std::string(name));
        exception != exceptions().end()) {
      EXPECT_TRUE(std::regex_match(given->message, std::regex(exception->second.message)))
          << given->message;
      expected->message = given->message;
      for (std::size_t i = 0; i < expected->causes.size() && i < given->causes.size(); ++i) {
        if (name == "immutable") expected->causes[i].message = given->causes[i].message;
      }
    }
    EXPECT_EQ(given->to_object().to_pretty_json(), expected->to_object().to_pretty_json());
    ++compared;
  }
  EXPECT_EQ(compared, 21);
}

// The recorded server waits silently until the watch times out. Here a memory server may restart
// with lower revisions, and clients must notice that.
TEST_F(RecordedStatus, AWatchFromTheFutureGetsAnError) {
  const auto answer = http(server_->port(), "GET",
                           "/api/v1/namespaces/shop2/pods?watch=1&resourceVersion=999999999&"
                           "timeoutSeconds=60&allowWatchBookmarks=true");
  EXPECT_EQ(answer.code, 200);
  const Object event = Object::parse(answer.body);
  EXPECT_EQ(event["type"].as_string(), "ERROR");
  const auto status = api::Status::from(Object::parse(event["object"].to_json()));
  ASSERT_TRUE(status);
  EXPECT_TRUE(api::is_too_large_resource_version(api::StatusError(*status))) << answer.body;
}

TEST_F(RecordedStatus, AWatchFromTooFarBackGetsTheRecordedError) {
  const auto answer =
      http(server_->port(), "GET",
           "/api/v1/namespaces/shop2/pods?watch=1&resourceVersion=2&timeoutSeconds=10");
  EXPECT_EQ(answer.code, 200);
  const Object event = Object::parse(answer.body);
  Object recorded = Object::parse(testdata_text("kube-1.36/watch/gone.jsonl"));
  const std::string message(event["object"]["message"].as_string());
  EXPECT_TRUE(std::regex_match(message, std::regex(R"(too old resource version: 2 \(\d+\))")))
      << message;
  rapidjson::Document expected = recorded.to_document();
  expected["object"]["message"].SetString(message.c_str(), expected.GetAllocator());
  EXPECT_EQ(event.to_pretty_json(), Object::from(expected).to_pretty_json());
}

struct SelectorKind {
  const char* file;
  const char* parameter;
};

class RecordedSelectors : public testing::TestWithParam<SelectorKind> {};

TEST_P(RecordedSelectors, SelectTheSameObjectsAsARealServer) {
  Server server;
  load(server);
  HttpClient client(server.port());
  const Object recordings = Object::parse(
      R"({"all":)" + testdata_text(std::string("kube-1.36/selectors/") + GetParam().file) + "}");
  for (const Value recording : recordings["all"].elements()) {
    const std::string selector(recording["selector"].as_string());
    SCOPED_TRACE(selector);
    const auto answer =
        client.get("/api/v1/namespaces/shop2/pods?" + std::string(GetParam().parameter) + "=" +
                   base::percent_encode(selector));
    EXPECT_EQ(answer.code, recording["code"].as_int());
    const Object body = Object::parse(answer.body);
    if (answer.code != 200) {
      EXPECT_EQ(body["message"].as_string(), recording["message"].as_string());
      EXPECT_EQ(body["reason"].as_string(), recording["reason"].as_string());
      continue;
    }
    std::vector<std::string_view> names;
    std::vector<std::string_view> expected;
    for (const Value item : body["items"].elements())
      names.push_back(item["metadata"]["name"].as_string());
    for (const Value name : recording["names"].elements()) expected.push_back(name.as_string());
    EXPECT_EQ(names, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Kube136, RecordedSelectors,
                         testing::Values(SelectorKind{"label.json", "labelSelector"},
                                         SelectorKind{"field.json", "fieldSelector"}),
                         [](const auto& test) { return std::string(test.param.parameter); });

}  // namespace
}  // namespace lookout::apiserver
