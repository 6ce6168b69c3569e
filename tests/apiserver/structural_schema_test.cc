// The effects of a definition's schema on objects: numbers, nulls, unknown fields, formats, and embedded
// resources.
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

constexpr const char* kPath = "/apis/example.com/v1/namespaces/default/things";

/// The definition of Thing with these properties of its spec, and more of its root.
Object definition_of(const std::string& properties, const std::string& root = "") {
  return from_json(std::string(kThingDefinition) +
                   R"("schema":{"openAPIV3Schema":{"type":"object","properties":{)" + root +
                   R"("spec":{"type":"object","properties":{)" + properties + "}}}}}}]}}");
}

std::string thing(const std::string& spec, const std::string& name = "t") {
  return R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":")" + name +
         R"("},"spec":)" + spec + "}";
}

std::string message_of(const HttpAnswer& answer) {
  const Object body = from_json(answer.body);
  return std::string(body["message"].as_string());
}

class StructuralSchema : public ClientTest {
 protected:
  void define(const std::string& properties, const std::string& root = "") const {
    all(kDefinitions).create(definition_of(properties, root));
  }
  HttpAnswer post(const std::string& spec, const std::string& query = "") const {
    return post_object(thing(spec), query);
  }
  HttpAnswer post_object(const std::string& object, const std::string& query = "") const {
    return http(server_.port(), "POST", kPath + ("?dryRun=All" + query), object,
                {{"Content-Type", "application/json"}});
  }
  /// The stored spec, or the error message without the common prefix.
  std::string stored(const std::string& spec) const {
    const HttpAnswer answer = post(spec);
    const Object body = from_json(answer.body);
    if (answer.code == 201) return body["spec"].to_json();
    const std::string message(body["message"].as_string());
    const std::string prefix = "Thing.example.com \"t\" is invalid: ";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }
};

TEST_F(StructuralSchema, MayConstrainMetadata) {
  define("", R"("kind":{"type":"string","enum":["Thing"]},"metadata":{"type":"object",
    "properties":{"name":{"type":"string","maxLength":5,"pattern":"^w"}}},)");
  EXPECT_EQ(post_object(thing("{}", "wide")).code, 201);
  const HttpAnswer answer = post_object(thing("{}", "toolong"));
  EXPECT_EQ(answer.code, 422);
  EXPECT_THAT(answer.body, HasSubstr("metadata.name: Too long: may not be more than 5 bytes"));
  EXPECT_THAT(answer.body, HasSubstr("metadata.name in body should match '^w'"));
}

TEST_F(StructuralSchema, ValidatesFormats) {
  define(R"("uri":{"type":"string","format":"uri"},"int":{"type":"integer","format":"uri"},
    "float":{"type":"number","format":"float"},"short":{"type":"string","format":"k8s-short-name"},
    "other":{"type":"string","format":"other"})");
  EXPECT_EQ(stored(R"({"float":3e38,"int":1,"other":"x","short":"a-b","uri":"http://a/"})"),
            R"({"int":1,"float":3e+38,"other":"x","short":"a-b","uri":"http://a/"})");
  EXPECT_EQ(
      stored(R"({"uri":"not a uri"})"),
      R"(spec.uri: Invalid value: "not a uri": spec.uri in body must be of type uri: "not a uri")");
  EXPECT_EQ(stored(R"({"short":"A_B"})"),
            R"(spec.short: Invalid value: "A_B": spec.short in body must be of type )"
            R"(k8s-short-name: "A_B")");
  EXPECT_EQ(stored(R"({"float":1e300})"),
            R"(spec.float: Invalid value: "": Checked value must be of type number with format )"
            R"(float in spec.float)");
}

TEST_F(StructuralSchema, ValidatesTheFormatsOfDefaults) {
  const auto status = status_of(
      [&] { define(R"("wait":{"type":"string","format":"duration","default":"soon"})"); });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr(R"(must be of type duration: "soon")"));
}

TEST_F(StructuralSchema, NumbersEqualGo) {
  define(R"("i":{"type":"integer"},"l":{"type":"integer","format":"int64"},"n":{"type":"number"},
    "d":{"type":"integer","default":4.0},"e":{"type":"integer","enum":[1.0]},
    "m":{"type":"integer","maximum":9007199254740993},"x":{"x-kubernetes-int-or-string":true},
    "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true})");
  EXPECT_EQ(stored(R"({"i":3.0,"n":1e2,"e":1,"x":8e1,"any":{"list":[2.0,-0,-0.0,1.5]}})"),
            R"({"any":{"list":[2,0,0,1.5]},"d":4,"e":1,"i":3,"n":100,"x":80})");
  EXPECT_EQ(stored(R"({"l":9223372036854775807,"d":1})"), R"({"d":1,"l":9223372036854775807})");
  for (const char* number : {"12345678901234567890", "9223372036854775808", "-9223372036854775809",
                             "1e300", "9007199254740992.0"}) {
    for (const char* field : {"i", "l"}) {
      EXPECT_THAT(stored(std::string(R"({")") + field + "\":" + number + "}"),
                  HasSubstr(R"(in body must be of type integer: "number")"))
          << field << ' ' << number;
    }
  }
  // The bound is a double.
  EXPECT_THAT(stored(R"({"m":9007199254740993})"), HasSubstr("should be less than or equal to"));
}

TEST_F(StructuralSchema, RemovesNullsFromMaps) {
  define(R"("m":{"type":"object","additionalProperties":{"type":"string"}},
    "o":{"type":"object","additionalProperties":{"type":"object"}},
    "n":{"type":"object","additionalProperties":{"type":"string","nullable":true}},
    "l":{"type":"array","items":{"type":"string"}},
    "ld":{"type":"array","items":{"type":"string","default":"x"}})");
  EXPECT_EQ(stored(R"({"m":{"a":null,"b":"c"},"n":{"a":null},"o":{"a":null},"ld":[null,"a"]})"),
            R"({"ld":["x","a"],"m":{"b":"c"},"n":{"a":null},"o":{}})");
  EXPECT_THAT(stored(R"({"l":[null]})"), HasSubstr("must be of type string: \"null\""));
}

// ---------------------------------------------------------------------------------- Unknown fields

class UnknownFields : public StructuralSchema {
 protected:
  UnknownFields() {
    define(R"("any":{"type":"object","additionalProperties":true},
      "none":{"type":"object","additionalProperties":false},
      "list":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object",
        "properties":{"known":{"type":"object","properties":{"a":{"type":"string"}}}}}},
      "lists":{"type":"array","items":{"type":"array","items":{"type":"object",
        "properties":{"a":{"type":"string"}}}}})");
  }
};

TEST_F(UnknownFields, AreRemovedFromAdditionalProperties) {
  const std::string spec = R"({"any":{"n":1,"x":{"y":1},"z":[{"a":1}]}})";
  EXPECT_EQ(stored(spec), R"({"any":{"n":1,"x":{},"z":[{}]}})");
  const HttpAnswer strict = post(spec, "&fieldValidation=Strict");
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(message_of(strict),
            R"(Thing in version "v1" cannot be handled as a Thing: strict decoding error: )"
            R"(unknown field "spec.any.x.y", unknown field "spec.any.z[0].a")");
}

TEST_F(UnknownFields, AreRejectedIfForbidden) {
  EXPECT_EQ(stored(R"({"none":{}})"), R"({"none":{}})");
  EXPECT_EQ(stored(R"({"none":{"x":1}})"),
            R"(spec.none: Invalid value: "x": spec.none.x in body is a forbidden property)");
}

TEST_F(UnknownFields, StayInListsThatKeepThem) {
  const std::string spec = R"({"list":[{"other":{"b":1},"known":{"a":"x","b":1}}]})";
  EXPECT_EQ(stored(spec), R"({"list":[{"known":{"a":"x"},"other":{"b":1}}]})");
  const HttpAnswer warned = post(spec);
  EXPECT_EQ(warned.headers.at("warning"), R"(299 - "unknown field \"spec.list[0].known.b\"")");
  EXPECT_EQ(stored(R"({"lists":[[{"a":"x","b":1}]]})"), R"({"lists":[[{"a":"x"}]]})");
}

// ------------------------------------------------------------------------------ Embedded resources

class EmbeddedResources : public StructuralSchema {
 protected:
  EmbeddedResources() {
    define(R"("e":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true},
      "l":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true}})");
  }
  std::string embedded(const std::string& metadata) const {
    return stored(R"({"e":{"apiVersion":"v1","kind":"Pod","metadata":)" + metadata + "}}");
  }
};

TEST_F(EmbeddedResources, HaveMetadataOfEveryObject) {
  EXPECT_EQ(embedded(R"({"name":"a","namespace":"b","labels":{"c":"d"},"generateName":"e-"})"),
            R"({"e":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","generateName":"e-",)"
            R"("namespace":"b","labels":{"c":"d"}}}})");
  EXPECT_EQ(embedded(R"({"creationTimestamp":null,"labels":{},"foo":{"a":1}})"),
            R"({"e":{"kind":"Pod","apiVersion":"v1","metadata":{}}})");
  EXPECT_EQ(embedded("null"), R"({"e":{"kind":"Pod","apiVersion":"v1","metadata":{}}})");
  EXPECT_THAT(embedded(R"({"labels":{"a b":"c"}})"),
              StartsWith(R"(spec.e.metadata.labels: Invalid value: "a b": name part must)"));
  EXPECT_EQ(embedded(R"({"name":"a/b"})"),
            R"(spec.e.metadata.name: Invalid value: "a/b": may not contain '/')");
}

TEST_F(EmbeddedResources, HaveTheirOwnType) {
  EXPECT_EQ(
      stored(R"({"l":[{"apiVersion":"a/b/c","kind":"Pod"}]})"),
      R"(spec.l[0].apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c)");
  EXPECT_THAT(stored(R"({"l":[{"apiVersion":"a/b","kind":"Not OK"}]})"),
              StartsWith(R"(spec.l[0].kind: Invalid value: "Not OK": may have mixed case, but )"
                         "should otherwise match: a DNS-1035 label must"));
  EXPECT_EQ(stored(R"({"e":{"apiVersion":5,"kind":"Pod"}})"),
            R"(Thing in version "v1" cannot be handled as a Thing: spec.e.apiVersion: )"
            "Invalid value: 5: must be a string");
}

TEST_F(EmbeddedResources, AreDecodedLikeOthers) {
  const std::string prefix = R"(Thing in version "v1" cannot be handled as a Thing: )";
  EXPECT_EQ(embedded(R"("x")"),
            prefix + R"(spec.e.metadata: Invalid value: "x": json: cannot unmarshal string into )"
                     "Go value of type v1.ObjectMeta");
  EXPECT_EQ(embedded(R"({"labels":{"a":5}})"),
            prefix + R"(spec.e.metadata: Invalid value: {"labels":{"a":5}}: json: cannot )"
                     "unmarshal number into Go struct field ObjectMeta.labels of type string");
  EXPECT_EQ(stored(R"({"l":[{"metadata":{"labels":{}}},{"metadata":{"name":[]}}]})"),
            prefix + R"(spec.l[1].metadata: Invalid value: {"name":[]}: json: cannot unmarshal )"
                     "array into Go struct field ObjectMeta.name of type string");
  const HttpAnswer strict =
      post(R"({"e":{"apiVersion":"v1","kind":"A","metadata":{"foo":1},"bar":1}})",
           "&fieldValidation=Strict");
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(message_of(strict),
            prefix + R"(strict decoding error: unknown field "spec.e.metadata.foo")");
}

TEST_F(StructuralSchema, ValidatesEmbeddedDefaults) {
  const auto refused = [&](const std::string& otherwise) {
    return status_of([&] {
             define(R"("e":{"type":"object","x-kubernetes-embedded-resource":true,
               "x-kubernetes-preserve-unknown-fields":true,"default":)" +
                    otherwise + "}");
           })
        .message;
  };
  EXPECT_THAT(refused(R"({"apiVersion":"v1","kind":"A","metadata":{"labels":{"a":5}}})"),
              HasSubstr(R"(default.metadata: Invalid value: {"labels":{"a":5}}: json: cannot )"
                        "unmarshal number into Go struct field ObjectMeta.labels of type string"));
  EXPECT_THAT(refused(R"({"apiVersion":"v1","kind":"A","metadata":{"labels":{"a b":"5"}}})"),
              HasSubstr(R"(default.metadata.labels: Invalid value: "a b")"));
  EXPECT_EQ(refused(R"({"apiVersion":"v1","kind":"A","metadata":{"labels":{"a":"5"}}})"), "");
}

}  // namespace
}  // namespace lookout::apiserver
