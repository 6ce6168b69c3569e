// Server-side apply and managedFields over HTTP, through this library's clients.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "lookout/api/status.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using api::Value;
using testing::ElementsAre;
using testing::HasSubstr;

Object data(const std::string& name, const std::string& members) {
  return from_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
                   R"("},"data":)" + members + "}");
}

Object deployment(const std::string& name, const std::string& spec) {
  return from_json(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" + name +
                   R"("},"spec":{)" + spec + "}}");
}

constexpr const char* kTemplate =
    R"("selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
       "spec":{"containers":[{"name":"main","image":"web:1"}]}})";

/// "manager operation subresource" of each entry.
std::vector<std::string> owners(const Object& object) {
  std::vector<std::string> out;
  for (const Value entry : object["metadata"]["managedFields"].elements()) {
    const std::string_view subresource = entry["subresource"].as_string();
    out.push_back(fmt::format("{} {}{}{}", entry["manager"].as_string(),
                              entry["operation"].as_string(), subresource.empty() ? "" : " ",
                              subresource));
  }
  return out;
}

class Apply : public ClientTest {
 protected:
  Object apply(const Object& object, const std::string& manager, bool force = false) const {
    const auto& kind = object.kind() == "ConfigMap" ? kConfigMaps : kDeployments;
    return in(kind).apply(object, {.field_manager = manager, .force = force});
  }

  HttpAnswer patch(const std::string& path, const std::string& body,
                   const std::string& type = "application/apply-patch+yaml",
                   const std::string& agent = "agent/1") const {
    return http(server_.port(), "PATCH", path, body,
                {{"Content-Type", type}, {"User-Agent", agent}});
  }
};

constexpr const char* kWeb = "/apis/apps/v1/namespaces/default/deployments/web";

TEST_F(Apply, CreatesChangesAndRemoves) {
  EXPECT_EQ(held(apply(data("m", R"({"a":"1","b":"1"})"), "x"))["data"]["a"].as_string(), "1");
  EXPECT_EQ(held(apply(data("m", R"({"a":"2"})"), "x"))["data"].to_json(), R"({"a":"2"})");
}

TEST_F(Apply, KeepsTheFieldsOfOtherManagers) {
  apply(data("m", R"({"a":"1"})"), "x");
  const Object both = apply(data("m", R"({"b":"1"})"), "y");
  EXPECT_EQ(both["data"].to_json(), R"({"a":"1","b":"1"})");
  EXPECT_THAT(owners(both), ElementsAre("x Apply", "y Apply"));
  const api::Status status = status_of([&] { apply(data("m", R"({"a":"2"})"), "y"); });
  EXPECT_EQ(status.code, 409);
  EXPECT_EQ(status.message, R"(Apply failed with 1 conflict: conflict with "x": .data.a)");
  EXPECT_EQ(held(apply(data("m", R"({"a":"2"})"), "y", true))["data"].to_json(), R"({"a":"2"})");
}

TEST_F(Apply, WithoutAChangeWritesNothing) {
  const Object first = apply(data("m", R"({"a":"1"})"), "x");
  const Object second = apply(data("m", R"({"a":"1"})"), "x");
  EXPECT_EQ(second.resource_version(), first.resource_version());
}

TEST_F(Apply, WithAValueInAnotherSpellingWritesNothing) {
  const auto with_cpu = [](const char* cpu) {
    return deployment("web", fmt::format(R"("selector":{{"matchLabels":{{"app":"web"}}}},
        "template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{{"containers":[{{"name":"main",
        "image":"web:1","resources":{{"limits":{{"cpu":"{}"}}}}}}]}}}})",
                                         cpu));
  };
  const Object first = apply(with_cpu("1000m"), "x");
  EXPECT_EQ(apply(with_cpu("1000m"), "x").resource_version(), first.resource_version());
}

TEST_F(Apply, AcceptsYaml) {
  const HttpAnswer answer = patch("/api/v1/namespaces/default/configmaps/m?fieldManager=x",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n"
                                  "  a: |\n    one\n    two\n");
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(held(from_json(answer.body))["data"]["a"].as_string(), "one\ntwo\n");
  EXPECT_EQ(patch("/api/v1/namespaces/default/configmaps/m?fieldManager=x", "- a\n").code, 400);
  EXPECT_EQ(patch("/api/v1/namespaces/default/configmaps/m?fieldManager=x", "a: [").code, 400);
}

TEST_F(Apply, RejectsInvalidObjects) {
  const auto message = [&](const std::string& body) {
    const HttpAnswer answer = patch(std::string(kWeb) + "?fieldManager=x", body);
    EXPECT_EQ(answer.code, 400);
    return std::string(held(Object::parse(answer.body))["message"].as_string());
  };
  EXPECT_EQ(message(""), "invalid object type: /, Kind=");
  EXPECT_EQ(message("{}"), "invalid object type: /, Kind=");
  const std::string begin =
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ";
  const std::string end = " into Go value of type map[string]interface {}";
  EXPECT_EQ(message("[1]"), begin + "array" + end);
  EXPECT_EQ(message("spec"), begin + "string" + end);
  EXPECT_EQ(message("3"), begin + "number" + end);
  EXPECT_EQ(message("true"), begin + "bool" + end);
}

TEST_F(Apply, ConflictsOnAnotherUid) {
  const HttpAnswer answer =
      patch("/api/v1/namespaces/default/configmaps/m?fieldManager=x",
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","uid":"7"}})");
  EXPECT_EQ(answer.code, 409) << answer.body;
}

TEST_F(Apply, NeedsExistingObjectForStatus) {
  EXPECT_EQ(patch(std::string(kWeb) + "/status?fieldManager=x",
                  R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}})")
                .code,
            404);
}

TEST_F(Apply, OfAScaleOwnsTheReplicas) {
  apply(deployment("web", std::string(R"("replicas":2,)") + kTemplate), "x");
  const std::string scale =
      R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":7}})";
  const HttpAnswer refused = patch(std::string(kWeb) + "/scale?fieldManager=hpa", scale);
  EXPECT_EQ(refused.code, 409);
  EXPECT_THAT(refused.body, HasSubstr(R"(conflict with \"x\": .spec.replicas)"));
  const HttpAnswer forced = patch(std::string(kWeb) + "/scale?fieldManager=hpa&force=true", scale);
  EXPECT_EQ(forced.code, 200) << forced.body;
  EXPECT_EQ(held(from_json(forced.body))["spec"]["replicas"].as_int(), 7);
  const Object web = in(kDeployments).get("web");
  EXPECT_EQ(web["spec"]["replicas"].as_int(), 7);
  EXPECT_THAT(owners(web), testing::UnorderedElementsAre("hpa Apply scale", "x Apply"));
  // The owner removes it from its configuration.
  const Object without = apply(deployment("web", kTemplate), "x");
  EXPECT_EQ(without["spec"]["replicas"].as_int(), 7);
}

TEST_F(Apply, RejectsUnknownFields) {
  const api::Status status = status_of([&] {
    apply(from_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"date":{}})"),
          "x");
  });
  EXPECT_EQ(status.code, 500);
  EXPECT_THAT(status.message, HasSubstr(".date: field not declared in schema"));
}

TEST_F(Apply, RejectsNumbersOutOfRange) {
  const api::Status status = status_of(
      [&] { apply(deployment("web", std::string(R"("replicas":3000000000,)") + kTemplate), "x"); });
  EXPECT_EQ(status.code, 500) << status.message;
}

class ManagedFields : public Apply {};

TEST_F(ManagedFields, NameTheClient) {
  const HttpAnswer answer =
      http(server_.port(), "POST", "/api/v1/namespaces/default/configmaps",
           R"({"metadata":{"name":"m"},"data":{"a":"1"}})", {{"User-Agent", "tool/7 (linux)"}});
  ASSERT_EQ(answer.code, 201);
  EXPECT_THAT(owners(from_json(answer.body)), ElementsAre("tool Update"));
  const HttpAnswer patched = patch("/api/v1/namespaces/default/configmaps/m?fieldManager=other",
                                   R"({"data":{"b":"1"}})", "application/merge-patch+json");
  EXPECT_THAT(owners(from_json(patched.body)),
              testing::UnorderedElementsAre("tool Update", "other Update"));
}

TEST_F(ManagedFields, OfANewObjectContainDefaultsButNotAllocatedFields) {
  const Object service = in(kServices).create(
      from_json(R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})"));
  const Value fields = service["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
  EXPECT_TRUE(fields.contains("f:sessionAffinity")) << fields.to_json();
  EXPECT_TRUE(fields.contains("f:type"));
  EXPECT_FALSE(fields.contains("f:clusterIP"));
  EXPECT_TRUE(fields["f:ports"].contains("."));
  // Structures that Go always writes have no owner.
  const Object made = in(kDeployments).create(deployment("web", kTemplate));
  const Value spec = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
  EXPECT_FALSE(spec["f:template"].contains(".")) << spec.to_json();
  EXPECT_FALSE(spec["f:strategy"].contains("."));
  EXPECT_TRUE(spec["f:strategy"]["f:rollingUpdate"].contains("."));
  EXPECT_FALSE(made["metadata"]["managedFields"][0]["fieldsV1"].contains("f:status"));
}

/// In Go an empty list is not written, except in fields without "omitempty".
TEST_F(ManagedFields, OmitUnsetFields) {
  const auto fields_of = [&](const std::string& path, const char* body) {
    const HttpAnswer made = http(server_.port(), "POST", path, body);
    EXPECT_EQ(made.code, 201) << made.body;
    return lookout::test::held(from_json(made.body))["metadata"]["managedFields"][0]["fieldsV1"]
        .to_json();
  };
  EXPECT_EQ(fields_of("/api/v1/namespaces/default/serviceaccounts",
                      R"({"metadata":{"name":"a","labels":{"l":"1"},"finalizers":[]},)"
                      R"("secrets":[],"automountServiceAccountToken":false})"),
            R"({"f:automountServiceAccountToken":{},)"
            R"("f:metadata":{"f:labels":{".":{},"f:l":{}}}})");
  EXPECT_EQ(fields_of("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
                      R"({"metadata":{"name":"r"},"rules":[]})"),
            R"({"f:rules":{}})");
}

TEST_F(ManagedFields, OfAStatusNameTheSubresource) {
  in(kDeployments).create(deployment("web", kTemplate));
  const HttpAnswer answer = patch(std::string(kWeb) + "/status?fieldManager=kubelet",
                                  R"({"metadata":{"labels":{"l":"1"}},"spec":{"paused":true},
                                      "status":{"replicas":1}})",
                                  "application/merge-patch+json");
  ASSERT_EQ(answer.code, 200) << answer.body;
  std::string fields;
  const Object object = from_json(answer.body);
  for (const Value entry : object["metadata"]["managedFields"].elements()) {
    if (entry["manager"].as_string() == "kubelet") fields = entry["fieldsV1"].to_json();
  }
  EXPECT_EQ(fields, R"({"f:status":{"f:replicas":{}}})");
}

TEST_F(ManagedFields, CannotBeChangedThroughASubresource) {
  in(kDeployments).create(deployment("web", kTemplate));
  const HttpAnswer answer =
      patch(std::string(kWeb) + "/status", R"({"metadata":{"managedFields":[{}]}})",
            "application/merge-patch+json");
  ASSERT_EQ(answer.code, 200);
  EXPECT_EQ(owners(from_json(answer.body)).size(), 1u);
}

TEST_F(ManagedFields, LimitTheNumberOfUpdaters) {
  in(kConfigMaps).create(data("m", R"({"a":"1"})"));
  for (int i = 0; i < 15; ++i) {
    const HttpAnswer answer =
        patch(fmt::format("/api/v1/namespaces/default/configmaps/m?fieldManager=m{}", i),
              fmt::format(R"({{"data":{{"k{}":"1"}}}})", i), "application/merge-patch+json");
    ASSERT_EQ(answer.code, 200) << answer.body;
  }
  const auto names = owners(in(kConfigMaps).get("m"));
  EXPECT_EQ(names.size(), 10u);
  EXPECT_THAT(names, testing::Contains("ancient-changes Update"));
}

TEST_F(ManagedFields, OfACustomResourceExcludeItsStatus) {
  all(kDefinitions)
      .create(from_json(
          std::string(kThingDefinition) +
          R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
                      "properties":{"size":{"type":"integer"}}},"status":{"type":"object","properties":{
                      "ready":{"type":"integer"}}}}}},"subresources":{"status":{}}}]}})"));
  const api::Resource things{"example.com", "v1", "Thing", "things", true};
  ASSERT_TRUE(eventually(
      [&] { return http(server_.port(), "GET", "/apis/example.com/v1/things").code == 200; }));
  const Object made = in(things).create(from_json(
      R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"size":1}})"));
  EXPECT_EQ(made["metadata"]["managedFields"][0]["fieldsV1"].to_json(),
            R"({"f:spec":{".":{},"f:size":{}}})");
  const HttpAnswer status =
      patch("/apis/example.com/v1/namespaces/default/things/t/status?fieldManager=s",
            R"({"apiVersion":"example.com/v1","kind":"Thing",
                                      "metadata":{"name":"t"},"status":{"ready":1}})");
  ASSERT_EQ(status.code, 200) << status.body;
  EXPECT_EQ(held(from_json(status.body))["status"]["ready"].as_int(), 1);
  EXPECT_THAT(owners(from_json(status.body)), testing::Contains("s Apply status"));
  // Writes of the object do not affect its status, also for new objects.
  const HttpAnswer other = patch("/apis/example.com/v1/namespaces/default/things/u?fieldManager=s",
                                 R"({"apiVersion":"example.com/v1","kind":"Thing",
                                     "metadata":{"name":"u"},"spec":{},"status":{"ready":1}})");
  ASSERT_EQ(other.code, 201) << other.body;
  EXPECT_FALSE(held(from_json(other.body)).body().contains("status"));
}

// Scale subresources of all versions know the owners of the replicas.
TEST_F(Apply, OfAScaleConflictsWithAnOwnerInAnotherVersion) {
  const std::string version = R"("served":true,"schema":{"openAPIV3Schema":{"type":"object",
      "x-kubernetes-preserve-unknown-fields":true}},"subresources":{"scale":{
      "specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}})";
  all(kDefinitions)
      .create(from_json(R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
          "scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[
          {"name":"v1","storage":true,)" +
                        version + R"(},{"name":"v2","storage":false,)" + version + "}]}}"));
  const std::string path = "/namespaces/default/things/t";
  const auto spec = [](const char* api_version, const char* content) {
    return fmt::format(
        R"({{"apiVersion":"example.com/{}","kind":"Thing","metadata":{{"name":"t"}},"spec":{}}})",
        api_version, content);
  };
  ASSERT_EQ(patch("/apis/example.com/v1" + path + "?fieldManager=x",
                  spec("v1", R"({"replicas":2,"size":1})"))
                .code,
            201);
  const std::string scale = R"({"apiVersion":"autoscaling/v1","kind":"Scale",
      "metadata":{"name":"t"},"spec":{"replicas":7}})";
  const std::string scale_path = "/apis/example.com/v2" + path + "/scale?fieldManager=hpa";
  const HttpAnswer refused = patch(scale_path, scale);
  EXPECT_EQ(refused.code, 409) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr(R"(conflict with \"x\": .spec.replicas)"));
  const HttpAnswer forced = patch(scale_path + "&force=true", scale);
  EXPECT_EQ(forced.code, 200) << forced.body;
  const api::Object thing =
      from_json(http(server_.port(), "GET", "/apis/example.com/v1" + path).body);
  std::vector<std::string> fields;
  for (const Value entry : thing["metadata"]["managedFields"].elements()) {
    fields.push_back(fmt::format("{} {} {}", entry["manager"].as_string(),
                                 entry["apiVersion"].as_string(), entry["fieldsV1"].to_json()));
  }
  EXPECT_THAT(fields,
              testing::UnorderedElementsAre(R"(hpa example.com/v2 {"f:spec":{"f:replicas":{}}})",
                                            R"(x example.com/v1 {"f:spec":{".":{},"f:size":{}}})"));
}

// structured-merge-diff has no paths for such elements.
TEST_F(ManagedFields, AreLostByAnObjectWithASetOfObjects) {
  all(kDefinitions)
      .create(from_json(
          std::string(kThingDefinition) +
          R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"integer"},
             "pairs":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object",
               "x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}}}}}}}]}})"));
  const std::string path = "/apis/example.com/v1/namespaces/default/things/t";
  const auto thing = [](const char* members) {
    return fmt::format(
        R"({{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"t"}}{}}})", members);
  };
  const auto merge = [&](const char* body) {
    const HttpAnswer answer = patch(path, body, "application/merge-patch+json");
    EXPECT_EQ(answer.code, 200) << answer.body;
    return owners(from_json(answer.body));
  };
  const auto apply_message = [&](const char* members) {
    const HttpAnswer answer = patch(path + "?fieldManager=x&force=true", thing(members));
    EXPECT_EQ(answer.code, 500) << answer.body;
    return std::string(held(from_json(answer.body))["message"].as_string());
  };
  const std::string about = "(default/t; example.com/v1, Kind=Thing)";
  const std::string why =
      ".pairs: element 0: associative list without keys has an element that's a map type";
  ASSERT_EQ(patch(path + "?fieldManager=x", thing(R"(,"size":1)")).code, 201);
  EXPECT_EQ(apply_message(R"(,"pairs":[{"a":"b"}])"),
            "failed to create typed patch object (/t; example.com/v1, Kind=Thing): " + why);
  EXPECT_THAT(merge(R"({"size":2})"), ElementsAre("agent Update"));
  EXPECT_THAT(merge(R"({"pairs":[{"a":"b"}]})"), testing::IsEmpty());
  EXPECT_THAT(merge(R"({"size":3})"), testing::IsEmpty());
  EXPECT_EQ(apply_message(R"(,"size":4)"),
            "failed to create manager for existing fields: failed to convert new object " + about +
                " to smd typed: " + why);
  EXPECT_THAT(merge(R"({"pairs":null})"), testing::IsEmpty());
  EXPECT_EQ(patch(path + "?fieldManager=x&force=true", thing(R"(,"size":5)")).code, 200);
}

// The schema may have changed since an object was stored.
TEST_F(ManagedFields, AreLostByAnObjectWithAValueOfAnotherType) {
  all(kDefinitions)
      .create(from_json(std::string(kThingDefinition) +
                        R"("schema":{"openAPIV3Schema":{"type":"object","properties":{
             "color":{"type":"string"},"size":{"type":"integer"}}}}}]}})"));
  const std::string path = "/apis/example.com/v1/namespaces/default/things/t";
  const auto apply = [&](const char* members) {
    return patch(path + "?fieldManager=x&force=true",
                 fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Thing",)"
                             R"("metadata":{{"name":"t"}}{}}})",
                             members));
  };
  const auto message = [](const HttpAnswer& answer) {
    EXPECT_EQ(answer.code, 500) << answer.body;
    return std::string(held(from_json(answer.body))["message"].as_string());
  };
  ASSERT_EQ(apply(R"(,"color":"red","size":1)").code, 201);
  ASSERT_EQ(patch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com",
                  R"([{"op":"replace","value":"string",)"
                  R"("path":"/spec/versions/0/schema/openAPIV3Schema/properties/size/type"}])",
                  "application/json-patch+json")
                .code,
            200);
  // It is shown as it is.
  EXPECT_EQ(held(in(kThings).get("t"))["size"].to_json(), "1");
  const std::string about = "(default/t; example.com/v1, Kind=Thing)";
  const std::string why = ".size: expected string, got &value.valueUnstructured{Value:1}";
  EXPECT_EQ(message(apply(R"(,"color":"blue")")),
            "failed to create typed live object " + about + ": " + why);
  const HttpAnswer labelled =
      patch(path, R"({"metadata":{"labels":{"a":"b"}}})", "application/merge-patch+json");
  EXPECT_EQ(labelled.code, 200) << labelled.body;
  EXPECT_THAT(owners(from_json(labelled.body)), testing::IsEmpty());
  EXPECT_EQ(message(apply(R"(,"color":"blue")")),
            "failed to create manager for existing fields: failed to convert new object " + about +
                " to smd typed: " + why);
  EXPECT_EQ(patch(path, R"({"size":"1"})", "application/merge-patch+json").code, 200);
  EXPECT_EQ(apply(R"(,"color":"blue")").code, 200);
}

class WithoutManagedFields : public ClientTest {
 protected:
  static ServerOptions options() {
    ServerOptions out;
    out.managed_fields = false;
    return out;
  }
  WithoutManagedFields() : ClientTest(options()) {}
};

TEST_F(WithoutManagedFields, AppliesAreRejected) {
  const Object made = in(kConfigMaps).create(data("m", R"({"a":"1"})"));
  EXPECT_FALSE(made["metadata"].contains("managedFields"));
  const api::Status status =
      status_of([&] { in(kConfigMaps).apply(data("m", R"({"a":"2"})"), {.field_manager = "x"}); });
  EXPECT_EQ(status.code, 415);
}

TEST_F(Apply, ToAnotherNamespaceIsRejected) {
  const std::string path = "/api/v1/namespaces/default/configmaps/m?fieldManager=x";
  // (The namespace is compared before the name.)
  for (const char* name : {"m", "other"}) {
    const HttpAnswer answer =
        patch(path, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" +
                        std::string(name) + R"(","namespace":"elsewhere"}})");
    EXPECT_EQ(answer.code, 400);
    EXPECT_EQ(held(from_json(answer.body))["message"].as_string(),
              "the namespace of the provided object does not match the namespace sent on the "
              "request");
  }
}

TEST_F(Apply, AnEmptyListEndsTheTrackingOfOwners) {
  const std::string path = "/api/v1/namespaces/default/configmaps/m";
  const auto fields = [&](const HttpAnswer& answer) {
    EXPECT_LE(answer.code, 201) << answer.body;
    return owners(from_json(answer.body));
  };
  const std::vector<std::pair<std::string, std::string>> resets = {
      {"application/json-patch+json",
       R"([{"op":"replace","path":"/metadata/managedFields","value":[]}])"},
      {"application/merge-patch+json", R"({"metadata":{"managedFields":[]}})"},
      {"application/strategic-merge-patch+json", R"({"metadata":{"managedFields":[]}})"}};
  for (const auto& [type, body] : resets) {
    in(kConfigMaps).create(config_map("m"));
    EXPECT_THAT(fields(patch(path, body, type)), testing::IsEmpty()) << type;
    EXPECT_THAT(fields(patch(path, R"({"data":{"a":"b"}})", "application/merge-patch+json")),
                testing::IsEmpty());
    in(kConfigMaps).remove("m");
  }
  in(kConfigMaps).create(config_map("m"));
  const HttpAnswer replaced =
      http(server_.port(), "PUT", path, R"({"metadata":{"name":"m","managedFields":[]}})",
           {{"Content-Type", "application/json"}});
  EXPECT_THAT(fields(replaced), testing::IsEmpty());
}

}  // namespace
}  // namespace lookout::apiserver
