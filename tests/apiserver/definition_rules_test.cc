// Validation of definitions, compared with the responses of a real apiextensions-apiserver 1.36.4.
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

class DefinitionRules : public ClientTest {};

/// Each cause of a rejection: its field and its message.
std::vector<std::string> sorted_causes(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements())
    out.push_back(std::string(cause["field"].as_string()) + ": " +
                  std::string(cause["message"].as_string()));
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(DefinitionRules, EqualARealServer) {
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
    // (Messages that quote the definition in Go's form, or differ only in wording, are not
    // compared.)
    if (one["causes"].is_null()) continue;
    const Object told = Object::parse(answer.body);
    EXPECT_EQ(sorted_causes(told["details"]["causes"]), sorted_causes(one["causes"]));
  }
  EXPECT_EQ(compared, 108u);
}

TEST_F(DefinitionRules, UnknownFieldsAreKeptOrDroppedSilently) {
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

/// From the source of apiextensions-apiserver; these are not in the recorded responses.
struct RefusedSchema {
  const char* name;
  /// In `{"name":"v1", ...}`.
  std::string version;
  const char* field;
  const char* message;
};

class RefusedDefinitions : public DefinitionRules,
                           public testing::WithParamInterface<RefusedSchema> {};

TEST_P(RefusedDefinitions, HaveTheExpectedMessage) {
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

constexpr const char* kDefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of gadgets with these versions, as JSON.
std::string gadgets(const std::string& versions, const std::string& group = "example.com",
                    const std::string& annotations = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"gadgets.{0}","annotations":{{{2}}}}},"spec":{{"group":"{0}",)"
      R"("scope":"Namespaced","names":{{"plural":"gadgets","kind":"Gadget"}},"versions":[{1}]}}}})",
      group, versions, annotations);
}
std::string gadget_version(const char* name, bool is_stored, const std::string& more) {
  return fmt::format(R"({{"name":"{}","served":true,"storage":{},{}}})", name, is_stored, more);
}

TEST_F(DefinitionRules, SharedFieldsAreValidatedOnce) {
  const auto causes = [&](const std::string& first, const std::string& second) {
    const std::string versions =
        gadget_version("v1", true, first) + "," + gadget_version("v2", false, second);
    const HttpAnswer answer = http(
        server_.port(), "POST", std::string(kDefinitionsPath) + "?dryRun=All", gadgets(versions));
    EXPECT_EQ(answer.code, 422) << answer.body;
    const Object told = Object::parse(answer.body);
    return sorted_causes(told["details"]["causes"]);
  };
  const std::string list = schema_of_a(R"({"type":"array"})");
  const std::string text = schema_of_a(R"({"type":"string"})");
  const std::string fields = R"(,"selectableFields":[{"jsonPath":".a"}])";
  EXPECT_THAT(causes(list, list),
              testing::ElementsAre("spec.validation.openAPIV3Schema.properties[a].items: Required "
                                   "value: must be specified"));
  EXPECT_THAT(causes(text, list),
              testing::ElementsAre("spec.versions[1].schema.openAPIV3Schema.properties[a].items: "
                                   "Required value: must be specified"));
  const std::string columns =
      R"(,"additionalPrinterColumns":[{"name":"A","type":"text","jsonPath":".a"}])";
  EXPECT_THAT(causes(text + columns, text + columns),
              testing::ElementsAre(testing::StartsWith("spec.additionalPrinterColumns[0].type: ")));
  EXPECT_THAT(causes(text + columns, text),
              testing::ElementsAre(
                  testing::StartsWith("spec.versions[0].additionalPrinterColumns[0].type: ")));
  // The fields are searched for at the same place in the schema.
  EXPECT_THAT(causes(text + fields, schema_of_a(R"({"type":"string","maxLength":4})") + fields),
              testing::ElementsAre("spec.selectableFields: Invalid value: \"\": may only be set "
                                   "when validations.schema is included"));
  EXPECT_THAT(causes(text + fields, text),
              testing::ElementsAre(testing::StartsWith(
                  "spec.versions[0].selectableFields: Invalid value: \"\": may only be set")));
}

TEST_F(DefinitionRules, ProtectedGroupsNeedAnApproval) {
  const std::string path = kDefinitionsPath;
  const std::string version = gadget_version("v1", true, schema_of_a(R"({"type":"string"})"));
  const auto create = [&](const std::string& approval) {
    return http(server_.port(), "POST", path,
                gadgets(version, "gadgets.k8s.io",
                        R"("api-approved.kubernetes.io":")" + approval + R"(")"));
  };
  const auto condition = [](const HttpAnswer& answer) {
    EXPECT_LT(answer.code, 300) << answer.body;
    const Object definition = Object::parse(answer.body);
    for (const api::Value one : definition["status"]["conditions"].elements()) {
      if (one["type"].as_string() == "KubernetesAPIApprovalPolicyConformant") {
        return fmt::format("{}/{}: {}", one["status"].as_string(), one["reason"].as_string(),
                           one["message"].as_string());
      }
    }
    return std::string("none");
  };
  for (const auto& [approval, why] :
       {std::pair("", "Required value: protected groups must have approval annotation "),
        std::pair("yes", "with either a URL or a reason starting with \\\"unapproved\\\""),
        std::pair("/only/a/path", "with either a URL or a reason")}) {
    const HttpAnswer refused = create(approval);
    EXPECT_EQ(refused.code, 422) << approval;
    EXPECT_THAT(refused.body, testing::HasSubstr(why));
  }
  EXPECT_EQ(condition(create("https://example.com/pull/1")),
            "True/ApprovedAnnotation: approved in https://example.com/pull/1");
  const auto change = [&](const std::string& approval) {
    return http(server_.port(), "PATCH", path + "/gadgets.gadgets.k8s.io",
                R"({"metadata":{"annotations":{"api-approved.kubernetes.io":)" + approval + "}}}",
                {{"Content-Type", "application/merge-patch+json"}});
  };
  EXPECT_EQ(condition(change(R"("unapproved, an experiment")")),
            "False/UnapprovedAnnotation: not approved: \"unapproved, an experiment\"");
  EXPECT_EQ(change("null").code, 422);
}

TEST_F(DefinitionRules, UnknownFormatsCauseWarnings) {
  const auto warning = [](const HttpAnswer& answer) {
    EXPECT_LT(answer.code, 300) << answer.body;
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  };
  const auto version = [](const char* type, const char* format) {
    return gadget_version(
        "v1", true, schema_of_a(fmt::format(R"({{"type":"{}","format":"{}"}})", type, format)));
  };
  const std::string path = kDefinitionsPath;
  const auto create = [&](const char* type, const char* format) {
    return warning(
        http(server_.port(), "POST", path + "?dryRun=All", gadgets(version(type, format))));
  };
  for (const auto& [type, format] :
       {std::pair("string", "date-time"), std::pair("string", "k8s-short-name"),
        std::pair("integer", "int64"), std::pair("number", "double")})
    EXPECT_EQ(create(type, format), "") << format;
  for (const auto& [type, format] :
       {std::pair("string", "int64"), std::pair("integer", "uint32"), std::pair("boolean", "byte")})
    EXPECT_EQ(create(type, format),
              fmt::format("299 - \"unrecognized format \\\"{}\\\"\"", format));
  // Unchanged values cause no warnings.
  http(server_.port(), "POST", path, gadgets(version("integer", "uint32")));
  const auto change = [&](const char* format) {
    return warning(http(server_.port(), "PATCH", path + "/gadgets.example.com",
                        R"({"spec":{"versions":[)" + version("integer", format) + "]}}",
                        {{"Content-Type", "application/merge-patch+json"}}));
  };
  EXPECT_THAT(change("uint64"), testing::HasSubstr("uint64"));
  const HttpAnswer labels = http(server_.port(), "PATCH", path + "/gadgets.example.com",
                                 R"({"metadata":{"labels":{"a":"b"}}})",
                                 {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(warning(labels), "");
}

/// Unset and unknown fields are removed, even in schemas inside of lists and maps, and numbers have
/// Go's form.
TEST_F(DefinitionRules, SchemasAreWrittenLikeGo) {
  const std::string schema =
      R"({"type":"array","items":{"type":"object","format":"","nullable":false,"unknown":1,)"
      R"("additionalProperties":{"type":"number","title":"","minimum":1.0,"maximum":1e3,)"
      R"("multipleOf":0.5,"enum":[2.0,2.5],"default":2.0},"maxProperties":0}})";
  const HttpAnswer answer =
      http(server_.port(), "POST", std::string(kDefinitionsPath) + "?dryRun=All",
           gadgets(gadget_version("v1", true, schema_of_a(schema))));
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_THAT(
      answer.body,
      testing::HasSubstr(R"({"a":{"type":"array","items":{"type":"object","maxProperties":0,)"
                         R"("additionalProperties":{"type":"number","default":2,"maximum":1000,)"
                         R"("minimum":1,"multipleOf":0.5,"enum":[2,2.5]}}}})"));
}

TEST_F(DefinitionRules, AServedDefinitionNeedsAValidConversionCertificate) {
  const std::string path = kDefinitionsPath;
  const auto conversion = [](const std::string& bundle) {
    return R"("conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],)"
           R"("clientConfig":{"caBundle":")" +
           bundle + R"(","service":{"name":"s","namespace":"n"}}}})";
  };
  std::string definition = gadgets(gadget_version("v1", true, schema_of_a(R"({"type":"string"})")));
  http(server_.port(), "POST", path, definition);
  const auto change = [&](const std::string& bundle) {
    return http(server_.port(), "PATCH", path + "/gadgets.example.com",
                R"({"spec":{)" + conversion(bundle) + "}}",
                {{"Content-Type", "application/merge-patch+json"}});
  };
  const HttpAnswer refused = change("Cg==");
  EXPECT_EQ(refused.code, 422);
  const Object told = Object::parse(refused.body);
  EXPECT_THAT(
      sorted_causes(told["details"]["causes"]),
      testing::ElementsAre(
          "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"Cg==\": unable to "
          "load root certificates: unable to parse bytes as PEM block"));
  EXPECT_EQ(change("").code, 200);
  // A new definition may have an invalid certificate, and keep it.
  definition.insert(definition.rfind(R"("versions")"), conversion("Cg==") + ",");
  http(server_.port(), "DELETE", path + "/gadgets.example.com");
  const HttpAnswer created = http(server_.port(), "POST", path, definition);
  EXPECT_EQ(created.code, 201) << created.body;
  EXPECT_EQ(change("Cgo=").code, 200);
}

}  // namespace
}  // namespace lookout::apiserver
