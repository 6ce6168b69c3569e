// Patches over HTTP, compared with the responses of a real kube-apiserver.

#include <string>

#include "lookout/api/merge_patch.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

/// Without fields that a server sets.
std::string comparable(const api::Object& object) {
  rapidjson::Document document = object.to_document();
  rapidjson::Document change;
  change.Parse(R"({"status":null,"metadata":{"uid":null,"resourceVersion":null,"generation":null,)"
               R"("creationTimestamp":null,"managedFields":null}})");
  api::apply_merge_patch(document, change, document.GetAllocator());
  return api::Object::from(document).to_json();
}

class Patches : public ClientTest {
 protected:
  HttpAnswer patch(const std::string& name, const std::string& type, const std::string& body) {
    return http(server_.port(), "PATCH", std::string(kDeploymentsPath) + "/" + name, body,
                {{"Content-Type", type}});
  }
};

TEST_F(Patches, EqualARealServer) {
  const auto recorded = api::Object::parse(
      R"({"cases":)" + test::read_file(test::testdata("kube-1.36/patches.json")) + "}");
  int compared = 0;
  for (const api::Value one : recorded["cases"].elements()) {
    SCOPED_TRACE(one["patch"].to_json());
    const auto before = changed(
        api::Object::parse(one["before"].to_json()),
        R"({"metadata":{"uid":null,"resourceVersion":null,"namespace":"default","managedFields":null}})");
    in(kDeployments).create(before);
    const HttpAnswer answer =
        patch(std::string(before.name()), std::string(one["contentType"].as_string()),
              one["patch"].to_json());
    EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
    if (answer.code == 200) {
      const auto after = changed(api::Object::parse(one["after"].to_json()),
                                 R"({"metadata":{"namespace":"default"}})");
      EXPECT_EQ(comparable(api::Object::parse(answer.body)), comparable(after));
    } else {
      EXPECT_EQ(lookout::test::held(api::Object::parse(answer.body))["message"].as_string(),
                one["status"]["message"].as_string());
    }
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

struct WrongPatch {
  const char* type;
  const char* body;
  int code;
  const char* message;
};
void PrintTo(const WrongPatch& patch, std::ostream* out) { *out << patch.body; }

class WrongPatches : public Patches, public testing::WithParamInterface<WrongPatch> {};

TEST_P(WrongPatches, AreRejectedAndChangeNothing) {
  const auto created =
      in(kDeployments)
          .create(from_json(
              R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)"
              R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  const auto& [type, body, code, message] = GetParam();
  const HttpAnswer answer = patch("web", type, body);
  EXPECT_EQ(answer.code, code);
  EXPECT_THAT(
      std::string(lookout::test::held(api::Object::parse(answer.body))["message"].as_string()),
      HasSubstr(message));
  EXPECT_EQ(in(kDeployments).get("web"), created);
}

constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kJson = "application/json-patch+json";

INSTANTIATE_TEST_SUITE_P(
    Server, WrongPatches,
    testing::Values(
        WrongPatch{kStrategic, "[]", 400, "json: cannot unmarshal array into Go value of type map"},
        WrongPatch{kStrategic, "{", 400, "unexpected end of JSON input"},
        WrongPatch{kStrategic, "{x", 400, "invalid character 'x' looking for beginning of object"},
        WrongPatch{kMerge, "{x", 400, "error decoding patch: invalid character 'x' looking for"},
        WrongPatch{kStrategic, R"({"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}})",
                   500, "does not contain declared merge key: name"},
        WrongPatch{kStrategic, R"({"spec":{"$patch":"destroy"}})", 500, "destroy"},
        WrongPatch{kStrategic, R"({"spec":{"replicas":-1}})", 422, "spec.replicas"},
        WrongPatch{kStrategic, R"({"metadata":{"name":"other"}})", 400, "other"},
        WrongPatch{kStrategic, R"({"metadata":{"labels":"x"}})", 422,
                   R"("map[metadata:map[labels:x]]": cannot restore map from string)"},
        WrongPatch{kStrategic, R"({"metadata":{"finalizers":true}})", 422,
                   "cannot restore slice from bool"},
        WrongPatch{kStrategic, R"({"spec":["x"]})", 422, "cannot restore struct from: slice"},
        WrongPatch{kStrategic, R"({"spec":{"replicas":"x"}})", 422, "unrecognized type: int32"},
        WrongPatch{kStrategic, R"({"spec":{"replicas":1.5}})", 422,
                   "cannot convert float64 to int32"},
        WrongPatch{kStrategic, R"({"metadata":{"labels":{"a":3}}})", 422,
                   "cannot convert int64 to string"},
        WrongPatch{kStrategic, R"({"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}})", 422,
                   "json: cannot unmarshal bool into Go"},
        WrongPatch{kMerge, "[]", 400, "cannot unmarshal array"},
        WrongPatch{kMerge, R"({"metadata":{"namespace":"other"}})", 400,
                   "the namespace of the provided object does not match the namespace sent on"},
        WrongPatch{kMerge, R"({"spec":5})", 422, "of type v1.DeploymentSpec"},
        WrongPatch{kJson, "{}", 400, "cannot unmarshal object"},
        WrongPatch{kJson, R"([{"op":"remove","path":"/none"}])", 422, ""},
        WrongPatch{kJson, R"([{"op":"spam","path":"/spec"}])", 422,
                   "the server rejected our request due to an error in our request"},
        WrongPatch{kJson, R"([{"op":"remove"}])", 422, "due to an error in our request"},
        WrongPatch{kJson, R"([{"op":"move","path":"/spec"}])", 422,
                   "due to an error in our request"},
        WrongPatch{kJson, "[null]", 422, "due to an error in our request"},
        WrongPatch{kJson, "[1]", 400,
                   "error decoding patch: json: cannot unmarshal number into Go value of type "
                   "handlers.jsonPatchOp"},
        WrongPatch{kJson, R"([{"op":["add"],"path":"/spec"}])", 400,
                   "error decoding patch: json: cannot unmarshal array into Go struct field "
                   "jsonPatchOp.op of type string"},
        WrongPatch{"application/apply-patch+yaml", "spec: {}", 422, "fieldManager: Required value"},
        WrongPatch{"text/plain", "{}", 415, ""}));

TEST_F(Patches, ChangeNothingIfNull) {
  in(kConfigMaps).create(config_map("c"));
  const auto answer = [&](const char* type) {
    return http(server_.port(), "PATCH", std::string(kConfigMapsPath) + "/c", "null",
                {{"Content-Type", type}});
  };
  EXPECT_EQ(answer(kJson).code, 200);
  EXPECT_EQ(answer(kStrategic).code, 200);
  const HttpAnswer merge = answer(kMerge);
  EXPECT_EQ(merge.code, 400);
  EXPECT_EQ(lookout::test::held(api::Object::parse(merge.body))["message"].as_string(),
            "Invalid JSON Patch");
}

TEST_F(Patches, AddANullWhereTheyHaveNoValue) {
  in(kConfigMaps).create(config_map("c"));
  const api::Object after =
      in(kConfigMaps).patch("c", rest::PatchType::kJson, R"([{"op":"replace","path":"/data"}])");
  EXPECT_FALSE(after["data"].exists());
}

// The object is looked for before the patch is read, but after its type.
TEST_F(Patches, AreNotParsedIfTheObjectIsAbsent) {
  for (const char* type : {kStrategic, kMerge, kJson})
    EXPECT_EQ(patch("none", type, "{").code, 404) << type;
  EXPECT_EQ(patch("none", "text/plain", "{}").code, 415);
}

TEST_F(Patches, CreateNothing) {
  // (A PUT creates services and leases.)
  for (const api::Resource& resource : {kServices, kLeases, kConfigMaps}) {
    for (const auto type : {rest::PatchType::kMerge, rest::PatchType::kStrategicMerge}) {
      const api::Status status = status_of(
          [&] { in(resource).patch("none", type, R"({"metadata":{"labels":{"a":"b"}}})"); });
      EXPECT_EQ(status.code, 404) << status.message;
      EXPECT_EQ(status.reason, "NotFound");
    }
  }
}

}  // namespace
}  // namespace lookout::apiserver
