// What a custom resource's definition has to be, beside the answers of a real apiextensions-apiserver 1.36.4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/json_patch.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using api::Object;

class DefinitionRules : public ClientTest {};

/// Each cause of a refusal: its field and its message.
std::vector<std::string> sorted_causes(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements())
    out.push_back(std::string(cause["field"].as_string()) + ": " +
                  std::string(cause["message"].as_string()));
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(DefinitionRules, AreThoseOfARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/definitions.json")));
  std::size_t compared = 0;
  for (const api::Value one : recorded["cases"].elements()) {
    SCOPED_TRACE(std::string(one["name"].as_string()));
    rapidjson::Document whole = recorded.to_document();
    rapidjson::Document change =
        Object::parse(R"({"change":)" + one["change"].to_json() + "}").to_document();
    rapidjson::Document definition;
    definition.CopyFrom(whole["definition"], definition.GetAllocator());
    api::apply_json_patch(definition, change["change"], definition.GetAllocator());
    const HttpAnswer answer = http(
        server_.port(), "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict",
        Object::from(definition).to_json(), {{"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
    ++compared;
    // (What repeats the definition as Go shows it, or says the same in other words, is not compared.)
    if (one["causes"].is_null()) continue;
    const Object told = Object::parse(answer.body);
    EXPECT_EQ(sorted_causes(told["details"]["causes"]), sorted_causes(one["causes"]));
  }
  EXPECT_EQ(compared, 108u);
}

TEST_F(DefinitionRules, UnknownFieldsAreKeptOrNotMentioned) {
  for (const auto& [keeps, code] : {std::pair("true", 201), std::pair("false", 422)}) {
    const std::string definition =
        kThingDefinition +
        std::string(R"("schema":{"openAPIV3Schema":{"type":"object","properties":)") +
        R"({"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":)" + keeps + "}}}}}]}}";
    const HttpAnswer answer =
        http(server_.port(), "POST",
             "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", definition);
    EXPECT_EQ(answer.code, code) << answer.body;
    if (code == 422) {
      const Object told = Object::parse(answer.body);
      EXPECT_THAT(
          sorted_causes(told["details"]["causes"]),
          testing::ElementsAre(testing::EndsWith(
              "properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: "
              "must be true or undefined")));
    }
  }
}

}  // namespace
}  // namespace lookout::apiserver
