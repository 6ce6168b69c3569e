// Objects from protobuf: equal, byte by byte, to those from JSON; malformed ones are rejected.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/api/protobuf_bytes.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;
using test::bytes_field;
using test::enveloped;
using test::fields_of;
using test::number_field;

Object decode(std::string_view bytes, const Projection& projection = {}) {
  ProtobufDecoder decoder(projection);
  Object object = decoder.decode(bytes);
  EXPECT_EQ(decoder.error(), "");
  return object;
}

std::string error_of(std::string_view bytes) {
  ProtobufDecoder decoder;
  const Object object = decoder.decode(bytes);
  EXPECT_EQ(static_cast<bool>(object), decoder.error().empty());
  return decoder.error();
}

class RecordedListTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordedListTest, EqualsItsJson) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  const Object from_json = Object::parse(test::list_body(GetParam()));
  const Object object = decode(bytes);
  EXPECT_EQ(object.to_pretty_json(), from_json.to_pretty_json());
  EXPECT_EQ(object, from_json);
}

TEST_P(RecordedListTest, ItemsEqualTheirJson) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  const auto raw = fields_of(std::string_view(bytes).substr(kProtobufMagic.size()), 2);
  ASSERT_EQ(raw.size(), 1u);
  const auto items = fields_of(raw[0], 2);
  const auto expected = test::recorded_items(GetParam());
  ASSERT_EQ(items.size(), expected.size());
  for (const Projection& projection :
       {Projection(), Projection::without_managed_fields(),
        Projection::keep({"metadata.labels", "spec.containers.name", "spec.template.spec", "data",
                          "rules.verbs", "status.conditions.type"})}) {
    ProtobufDecoder decoder(projection);
    JsonDecoder json(projection);
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::string text = expected[i];
      const Object from_json = json.decode(text);
      const Object object =
          decoder.decode_item(from_json.api_version(), from_json.kind(), items[i]);
      EXPECT_EQ(decoder.error(), "");
      EXPECT_EQ(object.to_pretty_json(), from_json.to_pretty_json());
      EXPECT_TRUE(object == from_json);
      EXPECT_EQ(object.key_hash(), from_json.key_hash());
    }
  }
}

TEST_P(RecordedListTest, IsRejectedIfTruncated) {
  const std::string bytes = test::protobuf_recording("list/" + GetParam() + ".pb");
  ProtobufDecoder decoder;
  // Between its two non-empty fields the envelope is complete, with an empty object.
  const std::size_t whole = kProtobufMagic.size() + 2 + static_cast<unsigned char>(bytes[5]);
  const std::size_t step = 1 + bytes.size() / 500;
  for (std::size_t size = 0; size + 4 < bytes.size(); size += step) {
    const Object object = decoder.decode(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(static_cast<bool>(object), size == whole) << size;
    EXPECT_EQ(decoder.error().empty(), size == whole) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedListTest, testing::ValuesIn(test::lists_in_both_encodings()),
                         [](const auto& parameter) { return test::test_name(parameter.param); });

// Go's JSON for a message that is the complete input.
struct Rule {
  const char* name;
  const char* api_version;
  const char* kind;
  std::string message;
  const char* json;  // apart from apiVersion and kind
};

const std::string kPvc = bytes_field(1, bytes_field(1, "data"));
/// A Deployment whose spec has these fields.
std::string with_spec(const std::string& fields) { return bytes_field(2, fields); }

std::string time_message(std::uint64_t seconds, std::uint64_t nanos) {
  return number_field(1, seconds) + number_field(2, nanos);
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {"StructuresAreWrittenThoughEmpty", "v1", "Pod", "",
       R"({"metadata":{},"spec":{"containers":null},"status":{}})"},
      {"AListOfNothingHasItems", "v1", "PodList", "", R"({"metadata":{},"items":[]})"},
      {"ZeroesOfNoPointersAreLeftOut", "v1", "ConfigMap",
       bytes_field(1, bytes_field(1, "a") + bytes_field(2, "") + number_field(7, 0)),
       R"({"metadata":{"name":"a"}})"},
      {"ZeroesOfPointersAreWritten", "v1", "ConfigMap", number_field(4, 0),
       R"({"metadata":{},"immutable":false})"},
      {"RequiredFieldsAreWrittenThoughZero", "v1", "ResourceQuotaList", bytes_field(1, ""),
       R"({"metadata":{},"items":[]})"},
      {"RequiredListsAreNull", "rbac.authorization.k8s.io/v1", "Role", "",
       R"({"metadata":{},"rules":null})"},
      {"TimesAreTextOrNull", "v1", "Event",
       bytes_field(6, time_message(1763637297, 5)) + bytes_field(7, "") +
           bytes_field(10, time_message(1763637297, 123456789)),
       R"({"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":"2025-11-20T11:14:57Z",)"
       R"("lastTimestamp":null,"eventTime":"2025-11-20T11:14:57.123456Z",)"
       R"("reportingComponent":"","reportingInstance":""})"},
      {"ACreationTimestampOfNothingIsLeftOut", "v1", "ConfigMap",
       bytes_field(1, bytes_field(8, "") + bytes_field(9, "")),
       R"({"metadata":{"deletionTimestamp":null}})"},
      {"BytesAreBase64", "v1", "Secret",
       bytes_field(2, bytes_field(1, "a") + bytes_field(2, "\xFF\0z"sv)) +
           bytes_field(2, bytes_field(1, "empty") + bytes_field(2, "")) +
           bytes_field(2, bytes_field(1, "none")),
       R"({"metadata":{},"data":{"a":"/wB6","empty":"","none":null}})"},
      {"OfANameThatIsGivenTwiceTheLastValueCounts", "v1", "ConfigMap",
       bytes_field(2, bytes_field(1, "b") + bytes_field(2, "1")) +
           bytes_field(2, bytes_field(2, "2") + bytes_field(1, "a")) +
           bytes_field(2, bytes_field(1, "b") + bytes_field(2, "3")) +
           bytes_field(1, bytes_field(1, "first") + bytes_field(1, "last")),
       R"({"metadata":{"name":"last"},"data":{"a":"2","b":"3"}})"},
      {"NumbersMayBeNegative", "v1", "ReplicationController",
       with_spec(number_field(1, ~std::uint64_t{0}) + number_field(4, 7)),
       R"({"metadata":{},"spec":{"replicas":-1,"minReadySeconds":7},"status":{"replicas":0}})"},
      {"IntsOrStringsAreEither", "policy/v1", "PodDisruptionBudget",
       with_spec(bytes_field(1, number_field(1, 0) + number_field(2, ~std::uint64_t{0}) +
                                    bytes_field(3, "")) +
                 bytes_field(3, number_field(1, 1) + number_field(2, 0) + bytes_field(3, "50%"))),
       R"({"metadata":{},"spec":{"minAvailable":-1,"maxUnavailable":"50%"},"status":)"
       R"({"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}})"},
      {"QuantitiesAreTheirText", "v1", "ResourceQuota",
       with_spec(bytes_field(1, bytes_field(1, "cpu") + bytes_field(2, bytes_field(1, "500m"))) +
                 bytes_field(1, bytes_field(1, "none") + bytes_field(2, ""))),
       R"({"metadata":{},"spec":{"hard":{"cpu":"500m","none":"0"}},"status":{}})"},
      {"RawJsonIsRead", "apps/v1", "ControllerRevision",
       bytes_field(2, bytes_field(1, R"({"b": [1, 2.5e3], "a": null})")) + number_field(3, 0),
       R"({"metadata":{},"data":{"a":null,"b":[1,2.5e3]},"revision":0})"},
      {"RawJsonOfNothingIsNull", "apps/v1", "ControllerRevision", number_field(3, 9),
       R"({"metadata":{},"data":null,"revision":9})"},
      {"WhatIsInlinedIsFlat", "v1", "PersistentVolume",
       with_spec(bytes_field(2, bytes_field(3, bytes_field(1, "/data")))),
       R"({"metadata":{},"spec":{"hostPath":{"path":"/data"}},"status":{}})"},
      {"WhatIsInlinedTwiceIsFlat", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
       with_spec(bytes_field(
           2, bytes_field(3, bytes_field(1, "name") +
                                 bytes_field(2, bytes_field(1, "CREATE") +
                                                    bytes_field(2, bytes_field(3, "pods")))))),
       R"({"metadata":{},"spec":{"matchConstraints":{"resourceRules":[{"resourceNames":["name"],)"
       R"("operations":["CREATE"],"resources":["pods"]}]}},"status":{}})"},
      {"TemplatesOfClaimsHaveTheirType", "apps/v1", "StatefulSet", with_spec(bytes_field(4, kPvc)),
       R"({"metadata":{},"spec":{"selector":null,"template":{"metadata":{},"spec":)"
       R"({"containers":null}},"volumeClaimTemplates":[{"apiVersion":"v1","kind":)"
       R"("PersistentVolumeClaim","metadata":{"name":"data"},"spec":{"resources":{}},)"
       R"("status":{}}],"serviceName":"","updateStrategy":{}},"status":{"replicas":0,)"
       R"("availableReplicas":0}})"},
      {"ListsOfNumbersMayBePacked", "v1", "Pod",
       with_spec(bytes_field(14, number_field(4, 1) + bytes_field(4, "\x02\x80\x01"))),
       R"({"metadata":{},"spec":{"containers":null,"securityContext":)"
       R"({"supplementalGroups":[1,2,128]}},"status":{}})"},
      {"FieldsOfAListNeedNotBeTogether", "v1", "ServiceAccount",
       bytes_field(3, bytes_field(1, "a")) + bytes_field(1, bytes_field(1, "x")) +
           bytes_field(3, bytes_field(1, "b")),
       R"({"metadata":{"name":"x"},"imagePullSecrets":[{"name":"a"},{"name":"b"}]})"},
      {"UnknownFieldsAreSkipped", "v1", "ConfigMap",
       number_field(1000, 5) + bytes_field(99, "\xFF\xFF") + "\xA9\x06" + "12345678" + "\xAD\x06" +
           "1234" + bytes_field(1, number_field(100, 1)),
       R"({"metadata":{}})"},
      {"MapsOfListsOfStrings", "authorization.k8s.io/v1", "SubjectAccessReview",
       with_spec(bytes_field(5, bytes_field(1, "scopes") +
                                    bytes_field(2, bytes_field(1, "a") + bytes_field(1, "b"))) +
                 bytes_field(5, bytes_field(1, "none"))),
       R"({"metadata":{},"spec":{"extra":{"none":null,"scopes":["a","b"]}},)"
       R"("status":{"allowed":false}})"},
      {"BadTextIsRepaired", "v1", "ConfigMap",
       bytes_field(2, bytes_field(1, "k\xFF") + bytes_field(2, "a\xE2\x82z\xC3\xA9")),
       "{\"metadata\":{},\"data\":{\"k\xEF\xBF\xBD\":\"a\xEF\xBF\xBD\xEF\xBF\xBDz\xC3\xA9\"}}"},
      {"OptionsOfDeletionsAreOfEveryGroup", "apps/v1", "DeleteOptions",
       number_field(1, 0) + bytes_field(2, bytes_field(1, "u")) + bytes_field(4, "Orphan"),
       R"({"gracePeriodSeconds":0,"preconditions":{"uid":"u"},"propagationPolicy":"Orphan"})"},
      {"MetadataAlone", "meta.k8s.io/v1", "PartialObjectMetadataList",
       bytes_field(1, bytes_field(2, "7")) + bytes_field(2, bytes_field(1, bytes_field(1, "a"))),
       R"({"metadata":{"resourceVersion":"7"},"items":[{"kind":"PartialObjectMetadata",)"
       R"("apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}]})"},
  };
  return kRules;
}

class JsonRuleTest : public testing::TestWithParam<Rule> {};

TEST_P(JsonRuleTest, Holds) {
  const Rule& rule = GetParam();
  const std::string type =
      std::string(R"({"apiVersion":")") + rule.api_version + R"(","kind":")" + rule.kind + "\"";
  const Object expected =
      Object::parse(type + (rule.json == "{}"sv ? "" : ",") + std::string(rule.json).substr(1));
  const Object object = decode(enveloped(rule.api_version, rule.kind, rule.message));
  EXPECT_EQ(object.to_pretty_json(), expected.to_pretty_json());
  EXPECT_TRUE(object == expected);
}

INSTANTIATE_TEST_SUITE_P(All, JsonRuleTest, testing::ValuesIn(rules()),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

std::string double_field(unsigned field, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string out = test::varint(field << 3 | 1);
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>(bits >> (8 * i));
  return out;
}

/// A CustomResourceDefinition of one version, whose schema has these fields.
std::string definition(const std::string& schema) {
  return enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                   with_spec(bytes_field(7, bytes_field(4, bytes_field(1, schema)))));
}

Value schema_of(const Object& object) {
  return object.at("spec.versions[0].schema.openAPIV3Schema");
}

TEST(ProtobufDecoderTest, NumbersAreFormattedLikeGo) {
  const auto maximum = [](double value) {
    const Object object = decode(definition(double_field(9, value)));
    return schema_of(object)["maximum"].to_json();
  };
  EXPECT_EQ(maximum(10), "10");
  EXPECT_EQ(maximum(-0.5), "-0.5");
  EXPECT_EQ(maximum(1e20), "100000000000000000000");
  EXPECT_EQ(lookout::test::held(Object::parse(R"({"v":1e21})"))["v"].as_double(), 1e21);
  const Object object = decode(definition(double_field(9, 1e21)));
  EXPECT_TRUE(schema_of(object)["maximum"] ==
              lookout::test::held(Object::parse(R"({"v":1e+21})"))["v"]);
  const Object small = decode(definition(double_field(9, 1.5e-7)));
  EXPECT_TRUE(schema_of(small)["maximum"] ==
              lookout::test::held(Object::parse(R"({"v":1.5e-7})"))["v"]);
  EXPECT_THAT(error_of(definition(double_field(9, std::numeric_limits<double>::infinity()))),
              HasSubstr("JSONSchemaProps.maximum"));
}

// Most JSON in protobuf takes a fast path, which must give the same results as the slow path.
TEST(ProtobufDecoderTest, FieldSetsEqualTheirJson) {
  for (const char* text : {R"({})",
                           R"({"f:a":{}})",
                           R"({"f:metadata":{"f:labels":{".":{},"f:app":{}},"f:name":{}}})",
                           R"({"k:{\"name\":\"a\\b\"}":{".":{}},"v:\"x\"":{}})",
                           R"({"":{}})",
                           R"({"f:b":{},"f:a":{},"f:b":{"f:x":{}}})",
                           R"({"f:z":{},"a":{},"f:name":{}})",
                           R"({"a":{},"b":1})",
                           R"({"a":{"b":[{}]}})",
                           R"({"a": {}})",
                           R"( {"a":{}} )",
                           R"({"a\n":{}})",
                           R"({"\u00e9":{}})",
                           "{\"\xC3\xA9\":{}}",
                           R"({"a\\":{},"b\"":{}})",
                           R"({"a":{"b":{}},"c":{"d":{"e":{}}}})",
                           R"([])",
                           R"("text")",
                           R"(12)",
                           R"(null)"}) {
    const Object object =
        decode(enveloped("apps/v1", "ControllerRevision",
                         bytes_field(2, bytes_field(1, text)) + number_field(3, 0)));
    const Object expected = Object::parse(std::string(R"({"data":)") + text + "}");
    EXPECT_EQ(object["data"].to_json(), expected["data"].to_json()) << text;
    EXPECT_TRUE(object["data"] == expected["data"]) << text;
  }
  for (const std::string text :
       {"{", "}", "{\"a\"", "{\"a\":", "{\"a\":{}", "{\"a\":{}}}", "{,}", "{\"a\":{},}", "{{}}",
        "{\"a\":{}\"b\":{}}", "{\"a\n\":{}}", "{\"a\\\":{}}", "{\"a\\", "{\"\\\n\":{}}",
        "{\"\\\\\n\":{}}", "{\"a\":{}}{}", "{\"\xFF\":{}}", "{\"a\":{\"b\":{}},\"c\":{\"d\"}}"}) {
    EXPECT_NE(error_of(enveloped("apps/v1", "ControllerRevision",
                                 bytes_field(2, bytes_field(1, text)) + number_field(3, 0))),
              "")
        << text;
  }
  std::string deep;
  for (int i = 0; i < 11'000; ++i) deep += R"({"a":)";
  deep += "{}" + std::string(11'000, '}');
  EXPECT_THAT(error_of(enveloped("apps/v1", "ControllerRevision",
                                 bytes_field(2, bytes_field(1, deep)) + number_field(3, 0))),
              HasSubstr("deep"));
}

TEST(ProtobufDecoderTest, SchemasMayBeUnions) {
  const std::string type = bytes_field(5, "string");
  const std::string either = bytes_field(1, type);
  const auto json = [](const std::string& schema) {
    const Object object = decode(definition(schema));
    return schema_of(object).to_json();
  };
  // items, additionalProperties, dependencies, default
  EXPECT_EQ(json(bytes_field(24, either)), R"({"items":{"type":"string"}})");
  EXPECT_EQ(json(bytes_field(24, bytes_field(2, type) + bytes_field(2, ""))),
            R"({"items":[{"type":"string"},{}]})");
  EXPECT_EQ(json(bytes_field(24, "")), R"({"items":null})");
  EXPECT_EQ(json(bytes_field(30, number_field(1, 1))), R"({"additionalProperties":true})");
  EXPECT_EQ(json(bytes_field(30, "")), R"({"additionalProperties":false})");
  EXPECT_EQ(json(bytes_field(30, number_field(1, 1) + bytes_field(2, type))),
            R"({"additionalProperties":{"type":"string"}})");
  EXPECT_EQ(json(bytes_field(32, bytes_field(1, "k") + bytes_field(2, bytes_field(2, "p")))),
            R"({"dependencies":{"k":["p"]}})");
  EXPECT_EQ(json(bytes_field(8, bytes_field(1, "[1]"))), R"({"default":[1]})");
  EXPECT_EQ(json(bytes_field(8, bytes_field(1, "\"x\""))), R"({"default":"x"})");
}

TEST(ProtobufDecoderTest, ReportsErrors) {
  const auto pod = [](const std::string& spec) { return enveloped("v1", "Pod", with_spec(spec)); };
  EXPECT_THAT(error_of(""), HasSubstr("magic"));
  EXPECT_THAT(error_of("{}"), HasSubstr("magic"));
  EXPECT_THAT(error_of(kProtobufMagic), HasSubstr("no built-in kind"));
  EXPECT_EQ(error_of(enveloped("example.com/v1", "Tab", "")),
            R"(no built-in kind "Tab" is known in version "example.com/v1")");
  EXPECT_THAT(error_of(std::string(kProtobufMagic) + bytes_field(4, "application/json")),
              AllOf(HasSubstr("Unknown.contentType"), HasSubstr("application/json")));
  EXPECT_THAT(error_of(std::string(kProtobufMagic) + bytes_field(3, "gzip")),
              HasSubstr("Unknown.contentEncoding"));
  EXPECT_THAT(error_of(std::string(kProtobufMagic) + "\x12\x7F"), HasSubstr("Unknown: field 2"));
  EXPECT_EQ(error_of(pod(number_field(2, 1))), "PodSpec.containers: wrong wire type");
  EXPECT_EQ(error_of(pod(bytes_field(2, "") + "\x12\x05")),
            "PodSpec: field 2: the value goes beyond the end of its message");
  EXPECT_THAT(error_of(pod(bytes_field(2, "\x0B"))), HasSubstr("Container: field 1"));
  EXPECT_THAT(error_of(pod(std::string("\x00", 1))), HasSubstr("0 is not a field number"));
  EXPECT_THAT(error_of(pod(std::string(11, '\xFF'))), HasSubstr("PodSpec: a field's tag"));
  EXPECT_EQ(error_of(enveloped("v1", "Pod", bytes_field(2, "") + bytes_field(2, ""))),
            "Pod.spec: the message is given twice");
  EXPECT_THAT(error_of(enveloped("v1", "PersistentVolume",
                                 with_spec(bytes_field(2, "") + bytes_field(2, "")))),
              HasSubstr("PersistentVolumeSpec: field 2 is given twice"));
  EXPECT_THAT(error_of(enveloped("v1", "Event", bytes_field(6, time_message(1ull << 60, 0)))),
              HasSubstr("Event.firstTimestamp"));
  EXPECT_THAT(error_of(enveloped("apps/v1", "ControllerRevision",
                                 bytes_field(2, bytes_field(1, "{\"a\":")))),
              HasSubstr("ControllerRevision.data"));
  ProtobufDecoder decoder;
  EXPECT_FALSE(decoder.decode_event(bytes_field(1, "ADDED")));
  EXPECT_THAT(decoder.error(), HasSubstr("no object"));
  EXPECT_FALSE(decoder.decode_event(bytes_field(1, "SOMETHING") +
                                    bytes_field(2, bytes_field(1, enveloped("v1", "Pod", "")))));
  EXPECT_THAT(decoder.error(), HasSubstr("unknown event type \"SOMETHING\""));
  // The decoder then accepts the next object.
  EXPECT_TRUE(decoder.decode(enveloped("v1", "Pod", "")));
  EXPECT_EQ(decoder.error(), "");
}

TEST(ProtobufDecoderTest, NestingIsLimited) {
  const auto nested = [](int levels) {
    std::string schema;
    for (int i = 0; i < levels; ++i) schema = bytes_field(28, schema);  // not
    return definition(schema);
  };
  const Object object = decode(nested(900));
  EXPECT_EQ(Object::parse(object.to_json()), object);
  EXPECT_THAT(error_of(nested(1100)), HasSubstr("JSONSchemaProps: nested too deeply"));
  // The array is below the object.
  const auto raw = [](std::size_t levels) {
    return enveloped(
        "apps/v1", "ControllerRevision",
        bytes_field(2, bytes_field(1, std::string(levels, '[') + std::string(levels, ']'))));
  };
  EXPECT_TRUE(decode(raw(9'999)));
  EXPECT_THAT(error_of(raw(10'000)), HasSubstr("nested too deeply"));
}

TEST(ProtobufDecoderTest, ProjectsChangesAndKeepsOtherEvents) {
  ProtobufDecoder decoder(Projection::keep({"metadata.labels"}));
  const std::string config_map =
      enveloped("v1", "ConfigMap",
                bytes_field(1, bytes_field(1, "a")) +
                    bytes_field(2, bytes_field(1, "k") + bytes_field(2, "v")));
  const auto event = [&](std::string_view type) {
    return decoder.decode_event(bytes_field(1, type) + bytes_field(2, bytes_field(1, config_map)));
  };
  EXPECT_EQ(event("ADDED")->object,
            Object::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})"));
  EXPECT_EQ(event("BOOKMARK")->object["data"]["k"].as_string(), "v");
}

}  // namespace
}  // namespace lookout::api
