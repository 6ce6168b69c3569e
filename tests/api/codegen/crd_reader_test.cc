#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "api/codegen/crd.h"
#include "tests/support/thrown.h"

namespace lookout::codegen {
namespace {

using testing::HasSubstr;

/// A CRD whose spec has these properties, in flow style.
std::string crd(const std::string& properties) {
  return "apiVersion: apiextensions.k8s.io/v1\n"
         "kind: CustomResourceDefinition\n"
         "metadata: {name: things.example.com}\n"
         "spec:\n"
         "  group: example.com\n"
         "  scope: Namespaced\n"
         "  names: {kind: Thing, plural: things}\n"
         "  versions:\n"
         "  - name: v1\n"
         "    served: true\n"
         "    storage: true\n"
         "    schema:\n"
         "      openAPIV3Schema:\n"
         "        type: object\n"
         "        properties:\n"
         "          spec: {type: object, properties: " +
         properties + "}\n";
}

std::string error_of(const std::string& text) {
  return lookout::test::refusal<std::runtime_error>([&] { read_crds(text, "crd.yaml"); });
}

CrdType type_of(const std::string& schema) {
  const auto crds = read_crds(crd("{x: " + schema + "}"), "crd.yaml");
  return crds.at(0).versions.at(0).fields.at(0).type.fields.at(0).type;
}

TEST(CrdReader, ScalarsHaveTheirFormats) {
  EXPECT_EQ(type_of("{type: string}").name, "string");
  EXPECT_EQ(type_of("{type: string, format: byte}").name, "string:byte");
  EXPECT_EQ(type_of("{type: string, format: uuid}").name, "string");
  EXPECT_EQ(type_of("{type: integer}").name, "integer:int64");
  EXPECT_EQ(type_of("{type: integer, format: int32}").name, "integer:int32");
  EXPECT_EQ(type_of("{type: number, format: float}").name, "number:double");
  EXPECT_EQ(type_of("{x-kubernetes-int-or-string: true}").name, "string:int-or-string");
  EXPECT_EQ(type_of("{type: object}").name, "any");
  EXPECT_EQ(type_of("{}").name, "any");
}

TEST(CrdReader, ValuesFitTheirType) {
  EXPECT_EQ(type_of("{type: integer, enum: [1, 5000000000]}").values.size(), 2u);
  EXPECT_EQ(type_of("{type: integer, format: int32, enum: [1, 5000000000]}").values.size(), 1u);
  EXPECT_EQ(type_of("{type: integer, enum: [1, 99999999999999999999]}").values.size(), 1u);
}

TEST(CrdReader, BlocksThatOnlyValidateDefineNoTypes) {
  EXPECT_EQ(type_of("{type: string, anyOf: [{format: a}, {format: b}], not: {format: c}}").name,
            "string");
}

TEST(CrdReader, AQuotedTrueIsNotABoolean) {
  EXPECT_EQ(type_of("{type: string, x-kubernetes-int-or-string: \"true\"}").name, "string");
}

TEST(CrdReader, ConditionsUseKubernetesType) {
  const std::string fields =
      "lastTransitionTime: {type: string, format: date-time}, message: {type: string}, reason: "
      "{type: string}, status: {type: string}, type: {type: string}";
  EXPECT_EQ(type_of("{type: object, properties: {observedGeneration: {type: integer, format: "
                    "int64}, " +
                    fields + "}}")
                .kind,
            CrdType::Kind::kBuiltin);
  // With an additional field, it is a separate structure.
  EXPECT_EQ(type_of("{type: object, properties: {severity: {type: string}, " + fields + "}}").kind,
            CrdType::Kind::kStructure);
}

TEST(CrdReader, ErrorsNameThePosition) {
  EXPECT_THAT(
      error_of(crd("{a: {type: array, items: {type: text}}}")),
      HasSubstr("crd.yaml:16: things.example.com v1: .spec.a[]: the unknown type \"text\""));
  EXPECT_THAT(error_of("---\n" + crd("{a: {$ref: \"#/b\"}}")),
              HasSubstr("crd.yaml:17: things.example.com v1: .spec.a: \"$ref\""));
  EXPECT_THAT(error_of(crd("{a: {type: array, x-kubernetes-list-type: map, items: {type: "
                           "object, properties: {}}, x-kubernetes-list-map-keys: [k]}}")),
              HasSubstr("the key \"k\" of the list is not a field of its elements"));
  EXPECT_THAT(error_of("kind: Pod\napiVersion: v1\n"),
              HasSubstr("crd.yaml: no CustomResourceDefinition: give"));
  EXPECT_THAT(error_of("a: [\n"), HasSubstr("crd.yaml:"));
}

TEST(CrdReader, DefinitionsMayFollowEachOtherInJson) {
  const auto json = [](const std::string& kind) {
    return R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{)"
           R"("group":"example.com","scope":"Cluster","names":{"kind":")" +
           kind + R"(","plural":"things"},"versions":[{"name":"v1","served":true}]}})";
  };
  const auto crds = read_crds(json("A") + "\n" + json("B"), "crds.json");
  ASSERT_EQ(crds.size(), 2u);
  EXPECT_EQ(crds[0].kind, "A");
  EXPECT_EQ(crds[1].kind, "B");
}

TEST(CrdReader, OtherObjectsAreIgnored) {
  const std::string list =
      "---\nkind: AllowList\napiVersion: example.com/v1\nitems: [10.0.0.1]\n"
      "---\nkind: DenyList\napiVersion: example.com/v1\nitems: {a: b}\n";
  EXPECT_EQ(read_crds(crd("{}") + list, "crd.yaml").size(), 1u);
}

TEST(CrdReader, PropertiesMayBeEmpty) {
  EXPECT_EQ(type_of("{type: object, properties: }").name, "any");
  std::string text = crd("{}");
  text.resize(text.find("          spec: "));
  const auto crds = read_crds(text, "crd.yaml");
  EXPECT_TRUE(crds.at(0).versions.at(0).fields.empty());
}

TEST(CrdReader, DefinitionsMustBeOfV1) {
  std::string text = crd("{}");
  text.replace(text.find("k8s.io/v1"), 9, "k8s.io/v1beta1");
  EXPECT_THAT(error_of(text), HasSubstr("crd.yaml:1: things.example.com: "
                                        "apiextensions.k8s.io/v1beta1 is not served"));
}

TEST(CrdReader, AVersionMustBeServed) {
  std::string text = crd("{}");
  text.replace(text.find("served: true"), 12, "served: false");
  EXPECT_THAT(error_of(text), HasSubstr("things.example.com: serves no version"));
}

TEST(CrdReader, TheDepthOfSchemasIsLimited) {
  std::string schema;
  for (int i = 0; i < 1000; ++i) schema += "{type: array, items: ";
  schema += "{}";
  schema += std::string(1000, '}');
  EXPECT_THAT(error_of(crd("{a: " + schema + "}")), HasSubstr("crd.yaml:"));
}

TEST(CrdHeader, IsDeterministic) {
  const auto header = [](const std::string& ns) {
    return generate_crd_header(read_crds(crd("{b: {type: string}, a: {type: string}}"), "f"),
                               {ns, "f"});
  };
  EXPECT_EQ(header(""), header(""));
  EXPECT_THAT(header(""), HasSubstr("namespace example::v1 {"));
  EXPECT_THAT(header("acme::apis"), HasSubstr("namespace acme::apis::v1 {"));
  EXPECT_THROW(header("not a name"), std::runtime_error);
}

TEST(CrdHeader, RejectsDuplicateDefinitions) {
  const auto once = read_crds(crd("{}"), "f");
  auto twice = once;
  twice.push_back(once.front());
  EXPECT_NO_THROW(generate_crd_header(once, {}));
  EXPECT_THROW(generate_crd_header(twice, {}), std::runtime_error);
}

TEST(CrdHeader, DescriptionsCannotEndComments) {
  const auto crds = read_crds(
      crd("{a: {type: string, description: \"a\\\\\\nb \\u202e c\\a\\nd\"}}"), "odd\nname");
  const std::string header = generate_crd_header(crds, {"", "odd\nname"});
  EXPECT_THAT(header, HasSubstr("// Generated by lookout from odd name."));
  EXPECT_THAT(header, HasSubstr("  /// a\\.\n  /// b   c\n  /// d\n"));
}

}  // namespace
}  // namespace lookout::codegen
