// Bodies that do not fit the types of the API.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "apiserver/endpoints/well_typed.h"
#include "lookout/api/object.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

/// A deployment with additional fields in its spec.
std::string deployment(const std::string& spec, const std::string& container = "") {
  return R"({"metadata":{"name":"web"},"spec":{)" + spec +
         R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
         R"("spec":{"containers":[{"name":"main","image":"nginx")" +
         container + "}]}}}}";
}

class FieldValidation : public ClientTest {
 protected:
  HttpAnswer post(const std::string& body, const std::string& validation) const {
    const std::string parameter = validation.empty() ? "" : "?fieldValidation=" + validation;
    return http(server_.port(), "POST", kDeploymentsPath + parameter, body);
  }
  static std::string message(const HttpAnswer& answer) {
    return std::string(lookout::test::held(from_json(answer.body))["message"].as_string());
  }
};

bool is_well_typed(const std::string& json) {
  return endpoints::is_well_typed(Object::parse(json), json,
                                  *api::detail::Type::of_kind("", "v1", "Pod"));
}

/// A pod with these fields in its spec.
std::string pod_with(const std::string& spec) {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[)"
         R"({"fieldsType":"FieldsV1","fieldsV1":{"f:a":{"k:{\"b\":\"c\"}":{".":{}}}}}]},"spec":{)" +
         spec + "}}";
}

TEST(WellTypedObjects, AreRecognisedWithoutParsingTheirText) {
  for (const char* spec :
       {"", R"("priority":1,"hostNetwork":true,"nodeName":null)", R"("nodeSelector":{"x":"y"})",
        R"("containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80}]}])",
        R"("containers":[{"livenessProbe":{"httpGet":{"port":80}}},{"command":["a\":b"]}])",
        R"("overhead":{"cpu":"1","memory":1.5},"tolerations":[])"})
    EXPECT_TRUE(is_well_typed(pod_with(spec))) << spec;
  EXPECT_TRUE(is_well_typed(R"({"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}})"));
}

TEST(WellTypedObjects, HaveNoUnknownDuplicateOrMistypedFields) {
  for (const char* spec :
       {R"("what":1)", R"("priority":"1")", R"("priority":1.0)", R"("priority":3000000000)",
        R"("hostNetwork":"true")", R"("nodeName":1)", R"("nodeName":{})", R"("nodeName":[])",
        R"("containers":{})", R"("containers":[1])", R"("containers":[{"x":1}])",
        R"("nodeSelector":{"x":1})", R"("overhead":{"cpu":"much"})", R"("overhead":{"cpu":true})",
        R"("priority":1,"priority":1)", R"("nodeSelector":{"x":"y","x":"z"})",
        R"("nodeSelector":{"x":"y"},"nodeSelector":{"x":"y"})", R"("nodeSelector":{"f:x":{}})"})
    EXPECT_FALSE(is_well_typed(pod_with(spec))) << spec;
  EXPECT_FALSE(is_well_typed(R"({"metadata":{"creationTimestamp":"today"}})"));
}

TEST(WellTypedObjects, AreNotRecognisedInUnusualText) {
  // The number of keys may equal the number of members although one key is repeated.
  for (const char* spec :
       {R"("nodeSelector":{"x":"y","x":":z"})", R"("nodeSelector":{"x":"y","x" :"z"})",
        R"("nodeSelector":{"x":"y","x":"z","a\\":"b"})"})
    EXPECT_FALSE(is_well_typed(pod_with(spec))) << spec;
}

TEST_F(FieldValidation, StrictRejectsUnknownAndDuplicateFields) {
  const auto answer = post(deployment(R"("replicas":1,"replicass":{"x":{"y":[1]}},"replicas":2,)",
                                      R"(,"portz":[],"env":[{"name":"a","valu":"b"}])"),
                           "Strict");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(
      message(answer),
      R"(Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: )"
      R"(unknown field "spec.replicass", duplicate field "spec.replicas", )"
      R"(unknown field "spec.template.spec.containers[0].portz", )"
      R"(unknown field "spec.template.spec.containers[0].env[0].valu")");
}

TEST_F(FieldValidation, WarnsOtherwise) {
  const auto answer = post(deployment(R"("replicass":1,)"), "");
  EXPECT_EQ(answer.code, 201);
  EXPECT_EQ(answer.headers.at("warning"), R"(299 - "unknown field \"spec.replicass\"")");
  const auto ignored =
      http(server_.port(), "PUT", std::string(kDeploymentsPath) + "/web?fieldValidation=Ignore",
           deployment(R"("replicass":1,)"));
  EXPECT_EQ(ignored.code, 200);
  EXPECT_FALSE(ignored.headers.contains("warning"));
}

TEST_F(FieldValidation, KeepsNoUnknownFields) {
  const std::string config_maps = "/api/v1/namespaces/default/configmaps";
  const auto created =
      http(server_.port(), "POST", config_maps,
           R"({"metadata":{"name":"c","more":1},"data":{"a":"1"},"more":{"x":1}})");
  EXPECT_EQ(created.code, 201) << created.body;
  const auto has_more = [](const HttpAnswer& answer) {
    const Object object = from_json(answer.body);
    return object["more"].exists() || object["metadata"]["more"].exists();
  };
  EXPECT_FALSE(has_more(created)) << created.body;
  const auto patched = http(server_.port(), "PATCH", config_maps + "/c", R"({"more":{"x":1}})",
                            {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(patched.headers.at("warning"), R"(299 - "unknown field \"more\"")");
  EXPECT_FALSE(has_more(patched)) << patched.body;
  EXPECT_FALSE(has_more(http(server_.port(), "GET", config_maps + "/c")));
}

TEST_F(FieldValidation, WarnsWithRejectionsForOtherReasons) {
  const auto answer = http(server_.port(), "POST", "/api/v1/namespaces/default/pods",
                           R"({"metadata":{"name":"p"},"more":1})");
  EXPECT_EQ(answer.code, 422) << answer.body;
  EXPECT_EQ(answer.headers.at("warning"), R"(299 - "unknown field \"more\"")");
}

TEST_F(FieldValidation, AllowsAnyKeysInMaps) {
  const auto answer =
      http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
           R"({"metadata":{"name":"c","labels":{"any":"x"}},"data":{"whatever":"1"}})");
  EXPECT_EQ(answer.code, 201) << answer.body;
  const auto twice =
      http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
           R"({"metadata":{"name":"d"},"data":{"a":"1","a":"2"}})");
  EXPECT_EQ(message(twice),
            R"(ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: )"
            R"(duplicate field "data.a")");
}

TEST_F(FieldValidation, IgnoresValuesWithCustomParsers) {
  constexpr const char* kManaged =
      R"([{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",)"
      R"("fieldsV1":{"f:data":{"f:x":{},"f:x":{}},"f:data":{"a":["b\"}]","c"]}}}])";
  const auto answer =
      http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
           fmt::format(R"({{"metadata":{{"name":"c","managedFields":{}}},"data":{{"x":"1"}}}})",
                       kManaged));
  EXPECT_EQ(answer.code, 201) << answer.body;
  const auto behind =
      http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
           fmt::format(R"({{"metadata":{{"managedFields":{},"name":"d","nam":"x"}},"data":{{}}}})",
                       kManaged));
  EXPECT_EQ(message(behind),
            R"(ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: )"
            R"(unknown field "metadata.nam")");
}

TEST_F(FieldValidation, ChecksAllFieldsOfACustomResource) {
  const auto defined =
      http(server_.port(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           R"({"metadata":{"name":"foos.ex.io"},"spec":{"group":"ex.io","scope":"Namespaced",)"
           R"("names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,)"
           R"("storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":)"
           R"({"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})");
  EXPECT_EQ(defined.code, 201) << defined.body;
  const auto answer =
      http(server_.port(), "POST", "/apis/ex.io/v1/namespaces/default/foos?fieldValidation=Strict",
           R"({"apiVersion":"ex.io/v1","kind":"Foo","metadata":{"name":"a","managedFields":[)"
           R"({"manager":"m","operation":"Update","apiVersion":"ex.io/v1","fieldsType":"FieldsV1",)"
           R"("fieldsV1":{"f:a":{"f:x":{},"f:x":{}},"f:a":{}}}]},"spec":{"q":{"x":"1","x":"2"}}})");
  EXPECT_EQ(message(answer),
            R"(Foo in version "v1" cannot be handled as a Foo: strict decoding error: )"
            R"(duplicate field "metadata.managedFields[0].fieldsV1.f:a.f:x", )"
            R"(duplicate field "metadata.managedFields[0].fieldsV1.f:a", )"
            R"(duplicate field "spec.q.x")");
}

TEST_F(FieldValidation, GivesTheSameResultForUnusualJson) {
  for (const char* number : {"1", "1.0e0"}) {
    const auto answer = post(
        deployment(fmt::format(R"("replicass":{{"x":{}}},"paused":true,"paused":false,)", number)),
        "Strict");
    EXPECT_EQ(
        message(answer),
        R"(Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: )"
        R"(unknown field "spec.replicass", duplicate field "spec.paused")")
        << number;
  }
}

TEST_F(FieldValidation, AppliesToPatches) {
  post(deployment(""), "");
  const auto patch = [&](const std::string& type, const std::string& body) {
    return http(server_.port(), "PATCH",
                std::string(kDeploymentsPath) + "/web?fieldValidation=Strict", body,
                {{"Content-Type", type}});
  };
  const std::string body = R"({"spec":{"replicass":3}})";
  const auto strategic = patch("application/strategic-merge-patch+json", body);
  EXPECT_EQ(strategic.code, 422);
  EXPECT_EQ(message(strategic),
            R"( "" is invalid: patch: Invalid value: "map[spec:map[replicass:3]]": )"
            R"(strict decoding error: unknown field "spec.replicass")");
  EXPECT_EQ(patch("application/merge-patch+json", body).code, 422);
  EXPECT_EQ(
      patch("application/json-patch+json", R"([{"op":"add","path":"/spec/replicass","value":3}])")
          .code,
      422);
  const auto warned = http(server_.port(), "PATCH", std::string(kDeploymentsPath) + "/web", body,
                           {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(warned.code, 200);
  EXPECT_EQ(warned.headers.at("warning"), R"(299 - "unknown field \"spec.replicass\"")");
  // Errors that the object already had do not count.
  EXPECT_EQ(patch("application/merge-patch+json", R"({"spec":{"replicas":3}})").code, 200);
}

struct Misfit {
  const char* spec;
  const char* container;
  const char* message;
};

TEST_F(FieldValidation, ChecksThePatchItself) {
  const std::string config_map = "/api/v1/namespaces/default/configmaps/c";
  http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps",
       R"({"metadata":{"name":"c"},"data":{"a":"0"}})");
  const auto patch = [&](const std::string& type, const std::string& body, const std::string& how) {
    return http(server_.port(), "PATCH", config_map + how, body, {{"Content-Type", type}});
  };
  const std::string twice = R"({"data":{"a":"1","a":"2"},"more":[{"x":{"y":1,"y":2}}]})";
  const std::string repeated = R"(duplicate field "data.a", duplicate field "more[0].x.y")";
  for (const char* type :
       {"application/merge-patch+json", "application/strategic-merge-patch+json"}) {
    const auto strict = patch(type, twice, "?fieldValidation=Strict");
    EXPECT_EQ(strict.code, 422) << type;
    EXPECT_TRUE(message(strict).ends_with("strict decoding error: " + repeated +
                                          R"(, unknown field "more")"))
        << strict.body;
    EXPECT_EQ(patch(type, twice, "?fieldValidation=Ignore").headers.count("warning"), 0U) << type;
    const auto warned = patch(type, R"({"data":{"a":"1","a":"2"}})", "");
    EXPECT_EQ(warned.code, 200) << type;
    EXPECT_NE(warned.headers.at("warning").find(R"(duplicate field \"data.a\")"),
              std::string::npos);
  }
  const std::string operations =
      R"([{"op":"add","path":"/data/b","value":"1","foo":"bar"},)"
      R"({"op":"add","path":"/data/c","path":"/data/d","value":{"k":1,"k":2}}])";
  const auto strict = patch("application/json-patch+json", operations, "?fieldValidation=Strict");
  EXPECT_NE(strict.code, 200);
  const std::string good =
      R"([{"op":"add","path":"/data/b","value":"1","foo":"bar"},{"op":"add","path":"/data/c",)"
      R"("path":"/data/d","value":"1"}])";
  const auto refused = patch("application/json-patch+json", good, "?fieldValidation=Strict");
  EXPECT_EQ(refused.code, 422) << refused.body;
  EXPECT_TRUE(
      message(refused).ends_with(R"(strict decoding error: json patch unknown field "[0].foo", )"
                                 R"(json patch duplicate field "[1].path")"))
      << refused.body;
}

TEST_F(FieldValidation, FindsRepeatedKeysInYaml) {
  const std::string body = "metadata:\n  name: c\ndata:\n  a: b\n  a: c\n";
  const std::string config_maps = "/api/v1/namespaces/default/configmaps";
  const auto post = [&](const std::string& text, const std::string& how) {
    return http(server_.port(), "POST", config_maps + how, text,
                {{"Content-Type", "application/yaml"}});
  };
  const auto strict = post(body + "more: 1\n", "?fieldValidation=Strict");
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(
      message(strict),
      "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: "
      "yaml: unmarshal errors:\n  line 5: key \"a\" already set in map, unknown field \"more\"");
  const auto warned = post(body, "");
  EXPECT_EQ(warned.code, 201) << warned.body;
  EXPECT_NE(warned.headers.at("warning").find(R"(line 5: key \"a\" already set in map)"),
            std::string::npos);
}

TEST_F(FieldValidation, FindsRepeatedKeysInApplies) {
  const auto apply = [&](const std::string& body, const std::string& how) {
    return http(server_.port(), "PATCH",
                "/api/v1/namespaces/default/configmaps/c?fieldManager=m" + how, body,
                {{"Content-Type", "application/apply-patch+yaml"}});
  };
  const std::string yaml =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: b\n  a: c\n";
  const std::string json =
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\n"
      "\"managedFields\":null},\"data\":{\n\"a\":\"b\",\n\"a\":\"c\"}}";
  for (const auto& [body, line] : {std::pair(yaml, "7"), std::pair(json, "4")}) {
    const auto strict = apply(body, "&fieldValidation=Strict");
    EXPECT_EQ(strict.code, 400) << strict.body;
    EXPECT_EQ(message(strict),
              std::string("error strict decoding YAML: error converting YAML to JSON: "
                          "yaml: unmarshal errors:\n  line ") +
                  line + ": key \"a\" already set in map");
    const auto warned = apply(body, "");
    EXPECT_LT(warned.code, 300) << warned.body;
    EXPECT_NE(warned.headers.at("warning").find(R"(key \"a\" already set in map)"),
              std::string::npos);
    EXPECT_FALSE(apply(body, "&fieldValidation=Ignore").headers.contains("warning"));
  }
}

TEST_F(FieldValidation, MicroTimesHaveSixDigits) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const auto lease = [&](const std::string& time) {
    return http(server_.port(), "POST", leases,
                R"({"metadata":{"generateName":"l-"},"spec":{"renewTime":")" + time + R"("}})");
  };
  EXPECT_EQ(lease("2026-01-02T03:04:05.000006Z").code, 201);
  EXPECT_EQ(lease("2026-01-02T03:04:05.000006+02:00").code, 201);
  const std::string prefix = R"(Lease in version "v1" cannot be handled as a Lease: parsing time )";
  EXPECT_EQ(message(lease("2026-01-02T03:04:05Z")),
            prefix + R"("2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": )" +
                R"(cannot parse "Z" as ".000000")");
  EXPECT_EQ(message(lease("2026-01-02T03:04:05.123Z")),
            prefix + R"("2026-01-02T03:04:05.123Z" as "2006-01-02T15:04:05.000000Z07:00": )" +
                R"(cannot parse ".123Z" as ".000000")");
  EXPECT_EQ(message(lease("2026-01-02T03:04:05.123456789Z")),
            prefix + R"("2026-01-02T03:04:05.123456789Z" as "2006-01-02T15:04:05.000000Z07:00": )" +
                R"(cannot parse "789Z" as "Z07:00")");
}

class Misfits : public FieldValidation, public testing::WithParamInterface<Misfit> {};

TEST_P(Misfits, AreRejectedWithGosMessages) {
  const auto answer = post(deployment(GetParam().spec, GetParam().container), "Ignore");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(lookout::test::held(from_json(answer.body))["reason"].as_string(), "BadRequest");
  EXPECT_EQ(message(answer),
            std::string(R"(Deployment in version "v1" cannot be handled as a Deployment: )") +
                GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Server, Misfits,
    testing::Values(
        Misfit{R"("replicas":"3",)", "",
               "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of "
               "type int32"},
        Misfit{R"("replicas":1.5,)", "",
               "json: cannot unmarshal number 1.5 into Go struct field "
               "DeploymentSpec.spec.replicas of type int32"},
        Misfit{R"("replicas":3000000000,)", "",
               "json: cannot unmarshal number 3000000000 into Go struct field "
               "DeploymentSpec.spec.replicas of type int32"},
        Misfit{R"("paused":1,)", "",
               "json: cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of "
               "type bool"},
        Misfit{"", R"(,"args":"x")",
               "json: cannot unmarshal string into Go struct field "
               "Container.spec.template.spec.containers.args of type []string"},
        Misfit{"", R"(,"ports":{})",
               "json: cannot unmarshal object into Go struct field "
               "Container.spec.template.spec.containers.ports of type []v1.ContainerPort"},
        Misfit{"", R"(,"resources":[])",
               "json: cannot unmarshal array into Go struct field "
               "Container.spec.template.spec.containers.resources of type v1.ResourceRequirements"},
        Misfit{"", R"(,"resources":{"limits":{"cpu":"lots"}})",
               "quantities must match the regular expression "
               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}));

TEST_F(FieldValidation, UsesTheSchemasOfCustomResources) {
  all(kDefinitions).create(from_json(std::string(kThingDefinition) + R"(
        "schema":{"openAPIV3Schema":{"type":"object","properties":{
          "spec":{"type":"object","properties":{
            "map":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}},
            "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
            "list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}}}}}]}})"));
  const auto answer =
      http(server_.port(), "POST",
           "/apis/example.com/v1/namespaces/default/things?fieldValidation=Strict",
           R"({"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"t","nam":"x"},
          "spec":{"map":{"k":{"a":"1","b":"2"}},"any":{"x":1},"list":[{"a":"1"},{"b":"2"}],"more":1}})");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(message(answer),
            R"(Thing in version "v1" cannot be handled as a Thing: strict decoding error: )"
            R"(unknown field "metadata.nam", unknown field "spec.map.k.b", )"
            R"(unknown field "spec.list[1].b", unknown field "spec.more")");
}

}  // namespace
}  // namespace lookout::apiserver
