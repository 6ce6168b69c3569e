// Validation of built-in kinds, compared with the responses of a kube-apiserver 1.36.2.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "lookout/api/json_patch.h"
#include "lookout/api/protobuf.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

class Refusals : public ClientTest {};

/// Each cause of a rejection, in order: its field, its reason and its message.
std::vector<std::string> causes_in(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements()) {
    out.push_back(std::string(cause["field"].as_string()) + ": " +
                  std::string(cause["reason"].as_string()) + ": " +
                  std::string(cause["message"].as_string()));
  }
  return out;
}

/// Each case changes a valid object at one place.
TEST_F(Refusals, EqualARealServer) {
  const Object recorded =
      Object::parse(lookout::test::read_file(lookout::test::testdata("kube-1.36/refusals.json")));
  std::size_t compared = 0;
  for (const api::Value kind : recorded["kinds"].elements()) {
    const std::string path(kind["path"].as_string());
    const Object valid = Object::parse(kind["object"].to_json());
    const auto create = [&](const Object& object) {
      return http(server_.port(), "POST", path + "?dryRun=All", object.to_json(),
                  {{"Content-Type", "application/json"}});
    };
    EXPECT_EQ(create(valid).code, 201) << path;
    for (const api::Value one : kind["cases"].elements()) {
      SCOPED_TRACE(path + " " + one["change"].to_json());
      rapidjson::Document object = valid.to_document();
      const rapidjson::Document change =
          Object::parse(R"({"change":[)" + one["change"].to_json() + "]}").to_document();
      api::apply_json_patch(object, change["change"], object.GetAllocator());
      const HttpAnswer answer = create(Object::from(object));
      EXPECT_EQ(answer.code, 422) << answer.body;
      const Object told = Object::parse(answer.body);
      EXPECT_EQ(causes_in(told["details"]["causes"]), causes_in(one["causes"]));
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);
}

/// Objects in memory are compared with objects from clients in any encoding, so they must equal the
/// result of a protobuf storage.
TEST_F(Refusals, ObjectsAreUnchangedByProtobuf) {
  const Object recorded =
      Object::parse(lookout::test::read_file(lookout::test::testdata("kube-1.36/refusals.json")));
  const auto create = [&](const std::string& path, const std::string& object) {
    const HttpAnswer answer =
        http(server_.port(), "POST", path, object, {{"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, 201) << answer.body;
    const Object created = Object::parse(answer.body);
    std::string bytes;
    api::ProtobufEncoder encoder;
    EXPECT_TRUE(encoder.encode(created, bytes)) << path;
    EXPECT_EQ(api::ProtobufDecoder().decode(bytes), created) << created.to_json();
  };
  for (const api::Value kind : recorded["kinds"].elements())
    create(std::string(kind["path"].as_string()), kind["object"].to_json());
  const std::string core = "/api/v1/namespaces/default/";
  create(core + "secrets", R"({"metadata":{"name":"a"},"data":{"a":"YR==","b":"Y\nQ==","c":""}})");
  create(core + "serviceaccounts", R"({"metadata":{"name":"a","finalizers":[]},"secrets":[]})");
  create(core + "pods",
         R"({"metadata":{"name":"a"},"spec":{"hostNetwork":false,"hostname":"",)"
         R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"0.5Gi"}}],)"
         R"("containers":[{"name":"c","image":"i","command":[],)"
         R"("livenessProbe":{"exec":{"command":["a"]},"initialDelaySeconds":0}}]}})");
  create("/apis/coordination.k8s.io/v1/namespaces/default/leases",
         R"({"metadata":{"name":"a"},"spec":{"renewTime":"2026-01-02T03:04:05.000006+02:00",)"
         R"("leaseTransitions":0}})");
  create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
         R"({"metadata":{"name":"a"},"rules":[]})");
}

class RefusedBodies : public ClientTest {};

/// Bodies for subresources, reviews and deletions, and patches, that do not fit their types, and
/// changes that a subresource does not make. A case without a message repeats the object.
TEST_F(RefusedBodies, EqualARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/refused_bodies.json")));
  for (const api::Value setup : recorded["objects"].elements()) {
    const HttpAnswer made = http(server_.port(), "POST", std::string(setup["path"].as_string()),
                                 setup["object"].to_json(), {{"Content-Type", "application/json"}});
    EXPECT_EQ(made.code, 201) << made.body;
  }
  std::size_t compared = 0;
  for (const api::Value one : recorded["requests"].elements()) {
    SCOPED_TRACE(one.to_json());
    const api::Value type = one["type"];
    const HttpAnswer answer = http(
        server_.port(), std::string(one["method"].as_string()),
        std::string(one["path"].as_string()), std::string(one["body"].as_string()),
        {{"Content-Type", std::string(type.exists() ? type.as_string() : "application/json")}});
    EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
    const api::Value message = one["message"];
    if (message.exists()) {
      EXPECT_EQ(lookout::test::held(Object::parse(answer.body))["message"].as_string(),
                message.as_string());
    }
    ++compared;
  }
  EXPECT_GT(compared, 900u);
}

class StatusWrites : public ClientTest {};

/// The result of a write: the status, and the metadata that a client can set. Times are the
/// recorded ones, or now.
Object outcome(const Object& written, bool with_metadata) {
  rapidjson::Document out(rapidjson::kObjectType);
  rapidjson::Document whole = written.to_document();
  const auto move = [&](const char* name, rapidjson::Value& from) {
    if (const auto member = from.FindMember(name); member != from.MemberEnd()) {
      out.AddMember(rapidjson::StringRef(name), rapidjson::Value(member->value, out.GetAllocator()),
                    out.GetAllocator());
    }
  };
  move("status", whole);
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (with_metadata) move(name, whole["metadata"]);
  }
  static const std::regex kTimes(R"re("(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\dZ")re");
  const std::string text = Object::from(out).to_json();
  std::string shown;
  std::size_t end = 0;
  for (std::sregex_iterator one(text.begin(), text.end(), kTimes), last; one != last; ++one) {
    shown += text.substr(end, static_cast<std::size_t>(one->position()) - end);
    const bool is_recorded = (*one)[1] == "2025-01-01" || (*one)[1] == "2026-01-01";
    shown += is_recorded ? one->str() : "\"NOW\"";
    end = static_cast<std::size_t>(one->position() + one->length());
  }
  return Object::parse(shown + text.substr(end));
}

/// Writes each object repeatedly, with valid and invalid changes.
TEST_F(StatusWrites, EqualARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/status_writes.json")));
  std::size_t compared = 0;
  for (const api::Value group : recorded["groups"].elements()) {
    const std::string list(group["path"].as_string());
    const std::string path =
        list + "/" + std::string(group["object"]["metadata"]["name"].as_string());
    const HttpAnswer made = http(server_.port(), "POST", list, group["object"].to_json(),
                                 {{"Content-Type", "application/json"}});
    EXPECT_EQ(made.code, 201) << made.body;
    for (const api::Value one : group["writes"].elements()) {
      SCOPED_TRACE(path + " " + one.to_json());
      const bool replaces = one["method"].as_string() == "PUT";
      const api::Value type = one["type"];
      const HttpAnswer answer =
          http(server_.port(), replaces ? "PUT" : "PATCH",
               path + std::string(one["on"].exists() ? one["on"].as_string() : "/status"),
               one["body"].to_json(),
               {{"Content-Type", replaces        ? "application/json"
                                 : type.exists() ? std::string(type.as_string())
                                                 : "application/merge-patch+json"}});
      const Object told = Object::parse(answer.body);
      if (one["causes"].exists()) {
        EXPECT_EQ(answer.code, 422) << answer.body;
        EXPECT_EQ(causes_in(told["details"]["causes"]), causes_in(one["causes"]));
      } else {
        EXPECT_EQ(answer.code, 200) << answer.body;
        const Object left = outcome(told, one["body"]["metadata"].exists());
        EXPECT_TRUE(left.to_document() == Object::parse(one["left"].to_json()).to_document())
            << left.to_json();
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 600u);
}

}  // namespace
}  // namespace lookout::apiserver
