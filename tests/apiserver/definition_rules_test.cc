// What a custom resource's definition has to be, beside the answers of a real apiextensions-apiserver 1.36.4.
#include <fmt/format.h>
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

/// By the source of apiextensions-apiserver; these are not among the recorded answers.
struct RefusedSchema {
  const char* name;
  /// In `{"name":"v1", ...}`.
  std::string version;
  const char* field;
  const char* message;
};

class RefusedDefinitions : public DefinitionRules,
                           public testing::WithParamInterface<RefusedSchema> {};

TEST_P(RefusedDefinitions, SayWhy) {
  const std::string definition = kThingDefinition + GetParam().version + "}]}}";
  const HttpAnswer answer =
      http(server_.port(), "POST",
           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", definition);
  EXPECT_EQ(answer.code, 422) << answer.body;
  const Object told = Object::parse(answer.body);
  EXPECT_THAT(sorted_causes(told["details"]["causes"]),
              testing::Contains(testing::AllOf(
                  testing::StartsWith(std::string("spec.") + GetParam().field + ": "),
                  testing::HasSubstr(GetParam().message))))
      << answer.body;
}

std::string schema_with(const std::string& members) {
  return R"("schema":{"openAPIV3Schema":{"type":"object",)" + members + "}}";
}
/// A field "a" with this schema.
std::string schema_of_a(const std::string& schema) {
  return schema_with(R"("properties":{"a":)" + schema + "}");
}

std::string many_selectable_fields() {
  std::string properties;
  std::string paths;
  for (int i = 0; i < 9; ++i) {
    properties += fmt::format(R"({}"f{}":{{"type":"string"}})", i == 0 ? "" : ",", i);
    paths += fmt::format(R"({}{{"jsonPath":".f{}"}})", i == 0 ? "" : ",", i);
  }
  return schema_with(R"("properties":{)" + properties + "}") + R"(,"selectableFields":[)" + paths +
         "]";
}

constexpr const char* kRootSchema = "validation.openAPIV3Schema";

INSTANTIATE_TEST_SUITE_P(
    DefinitionRules, RefusedDefinitions,
    testing::Values(
        RefusedSchema{"Ref", schema_of_a(R"({"type":"object","$ref":"#/x"})"),
                      "validation.openAPIV3Schema.properties[a].$ref", "$ref is not supported"},
        RefusedSchema{
            "PatternProperties", schema_with(R"("patternProperties":{"a":{"type":"string"}})"),
            "validation.openAPIV3Schema.patternProperties", "patternProperties is not supported"},
        RefusedSchema{"ListOfItems", schema_of_a(R"({"type":"array","items":[{"type":"string"}]})"),
                      "validation.openAPIV3Schema.properties[a].items",
                      "items must be a schema object and not an array"},
        RefusedSchema{"RootBesideStatus",
                      schema_with(R"("properties":{"spec":{"type":"object"}},"maxProperties":4)") +
                          R"(,"subresources":{"status":{}})",
                      kRootSchema,
                      "fields are allowed at the root of the schema if the status subresource"},
        RefusedSchema{"NullableItems",
                      schema_of_a(R"({"type":"array","x-kubernetes-list-type":"set",)"
                                  R"("items":{"type":"string","nullable":true}})"),
                      "validation.openAPIV3Schema.properties[a].items.nullable",
                      "cannot be nullable when x-kubernetes-list-type is set"},
        RefusedSchema{
            "NullableKeys",
            schema_of_a(
                R"({"type":"array","x-kubernetes-list-type":"map",)"
                R"("x-kubernetes-list-map-keys":["k"],"items":{"type":"object",)"
                R"("required":["k"],"properties":{"k":{"type":"string","nullable":true}}}})"),
            "validation.openAPIV3Schema.properties[a].items.properties[k].nullable",
            "so it cannot be nullable"},
        RefusedSchema{"ManySelectableFields", many_selectable_fields(), "selectableFields",
                      "Too many: 9: must have at most 8 items"},
        RefusedSchema{"IncompleteRoot",
                      schema_with(R"("anyOf":[{"properties":{"zz":{"minLength":1}}}])"),
                      "validation.openAPIV3Schema.properties[zz]",
                      "because it is defined in "
                      "spec.validation.openAPIV3Schema.anyOf[0].properties[zz]"},
        RefusedSchema{"AnyMembersOfTheRoot", schema_with(R"("additionalProperties":true)"),
                      "validation.openAPIV3Schema.additionalProperties",
                      "must not be used at the root"},
        RefusedSchema{"NoOtherMembers",
                      schema_of_a(R"({"type":"object","properties":{"x":{"type":"string"}},)"
                                  R"("additionalProperties":false})"),
                      "validation.openAPIV3Schema.properties[a].additionalProperties",
                      "mutual exclusive"},
        RefusedSchema{
            "FreeIntOrString",
            schema_of_a(R"({"x-kubernetes-int-or-string":true,)"
                        R"("x-kubernetes-preserve-unknown-fields":true})"),
            "validation.openAPIV3Schema.properties[a].x-kubernetes-preserve-unknown-fields",
            "must be false if x-kubernetes-int-or-string is true"},
        RefusedSchema{"EmbeddedWithoutType",
                      schema_of_a(R"({"x-kubernetes-embedded-resource":true,)"
                                  R"("x-kubernetes-preserve-unknown-fields":true})"),
                      "validation.openAPIV3Schema.properties[a].type",
                      "must be object if x-kubernetes-embedded-resource is true"},
        RefusedSchema{"EmbeddedMap",
                      schema_of_a(R"({"type":"object","x-kubernetes-embedded-resource":true,)"
                                  R"("x-kubernetes-preserve-unknown-fields":true,)"
                                  R"("additionalProperties":{"type":"string"}})"),
                      "validation.openAPIV3Schema.properties[a].additionalProperties",
                      "must not be used if x-kubernetes-embedded-resource is set"},
        RefusedSchema{"EmbeddedKind",
                      schema_of_a(R"({"type":"object","x-kubernetes-embedded-resource":true,)"
                                  R"("properties":{"kind":{"type":"integer"}}})"),
                      "validation.openAPIV3Schema.properties[a].properties[kind].type",
                      "must be string"},
        RefusedSchema{"MapWithoutType",
                      schema_of_a(R"({"x-kubernetes-map-type":"atomic",)"
                                  R"("x-kubernetes-preserve-unknown-fields":true})"),
                      "validation.openAPIV3Schema.properties[a].type",
                      "must be object if x-kubernetes-map-type is specified"},
        RefusedSchema{
            "RequiredMetadata",
            schema_with(R"("properties":{"metadata":{"type":"object","required":["name"]}})"),
            "validation.openAPIV3Schema.properties[metadata]",
            "must not specify anything other than name and generateName"},
        RefusedSchema{"RuleWithoutText", schema_with(R"("x-kubernetes-validations":[{"rule":""}])"),
                      "validation.openAPIV3Schema.x-kubernetes-validations[0].rule",
                      "rule is not specified"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace lookout::apiserver
