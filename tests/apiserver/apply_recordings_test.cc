// Conversations with a real kube-apiserver about server-side apply, replayed: the same objects, the
// same managedFields, the same failures.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using api::Object;
using api::Value;

/// A response without server-specific values.
struct Comparable {
  std::string content;
  /// Within a second, entries are in the order of their managers; so their order is the times'.
  std::vector<std::string> owners;

  friend bool operator==(const Comparable&, const Comparable&) = default;
};
void PrintTo(const Comparable& answer, std::ostream* out) {
  *out << answer.content;
  for (const std::string& owner : answer.owners) *out << "\n    " << owner;
}

Comparable comparable(const Object& answer) {
  Comparable out;
  if (answer.kind() == "Status") {
    out.content = std::string(answer["reason"].as_string());
    for (const Value cause : answer["details"]["causes"].elements())
      out.owners.push_back(cause.to_json());
    std::sort(out.owners.begin(), out.owners.end());
    return out;
  }
  rapidjson::Document document = answer.to_document();
  auto& metadata = document["metadata"];
  if (metadata.HasMember("managedFields")) {
    for (auto& entry : metadata["managedFields"].GetArray()) {
      entry.RemoveMember("time");
      out.owners.push_back(Object::from(entry).to_json());
    }
  }
  std::sort(out.owners.begin(), out.owners.end());
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"})
    metadata.RemoveMember(field);
  if (answer.kind() == "Service") {
    for (const char* field : {"clusterIP", "clusterIPs"}) document["spec"].RemoveMember(field);
  }
  out.content = Object::from(document).to_json();
  return out;
}

class ApplyRecordings : public testing::Test {
 protected:
  HttpAnswer send(Value step) {
    const std::string method(step["method"].as_string());
    const std::string path(step["path"].as_string());
    // The recorder's user agent.
    HttpClient::Headers headers = {{"User-Agent", "recorder/1.0"}};
    if (step["type"].is_string())
      headers.emplace_back("Content-Type", std::string(step["type"].as_string()));
    return http(server_.port(), method, path, body_of(step, method, path), headers);
  }

  /// The body, with this server's versions instead of the recorded ones.
  std::string body_of(Value step, const std::string& method, const std::string& path) {
    const Value body = step["body"];
    if (!body.exists() || body.is_null()) return "";
    if (body["$raw"].is_string()) return std::string(body["$raw"].as_string());
    if (!body.is_object()) return body.to_json();
    rapidjson::Document document = Object::parse(body.to_json()).to_document();
    auto& allocator = document.GetAllocator();
    if (!document.HasMember("metadata")) return body.to_json();
    auto& metadata = document["metadata"];
    if (method == "PUT") {
      const auto present =
          Object::parse(http(server_.port(), "GET", path.substr(0, path.find('?'))).body)
              .to_document();
      for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
        if (!metadata.HasMember(field)) continue;
        metadata.RemoveMember(field);
        rapidjson::Value name(field, allocator);
        rapidjson::Value value(present["metadata"][field], allocator);
        metadata.AddMember(name, value, allocator);
      }
    } else if (metadata.HasMember("resourceVersion")) {
      const auto ours = versions_.find(metadata["resourceVersion"].GetString());
      if (ours != versions_.end())
        metadata["resourceVersion"].SetString(ours->second.c_str(), allocator);
    }
    return Object::from(document).to_json();
  }

  void remember_version(Value recorded, const Object& ours) {
    const std::string version(recorded["metadata"]["resourceVersion"].as_string());
    if (!version.empty()) versions_[version] = std::string(ours.resource_version());
  }

  Server server_;
  std::map<std::string, std::string> versions_;
};

TEST_F(ApplyRecordings, HaveTheSameResponses) {
  const Object recorded =
      Object::parse(R"({"cases":)" + test::read_file(test::testdata("kube-1.36/apply.json")) + "}");
  int steps = 0;
  for (const Value one : recorded["cases"].elements()) {
    int number = 0;
    for (const Value step : one["steps"].elements()) {
      SCOPED_TRACE(std::string(one["case"].as_string()) + ", step " + std::to_string(number++) +
                   ": " + std::string(step["method"].as_string()) + " " +
                   std::string(step["path"].as_string()) + " " + step["body"].to_json());
      const HttpAnswer answer = send(step);
      ++steps;
      EXPECT_EQ(answer.code, step["code"].as_int()) << answer.body;
      if (!step["answer"].is_object()) continue;
      const Object ours = Object::parse(answer.body);
      remember_version(step["answer"], ours);
      EXPECT_EQ(comparable(ours), comparable(Object::parse(step["answer"].to_json())));
    }
  }
  EXPECT_EQ(steps, 310);
}

}  // namespace
}  // namespace lookout::apiserver
