// The description of the API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using api::Value;

constexpr const char* kDefinition = R"({
  "metadata":{"name":"crontabs.stable.example.com"},
  "spec":{"group":"stable.example.com","scope":"Namespaced",
    "names":{"plural":"crontabs","singular":"crontab","kind":"CronTab","listKind":"CronTabList"},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","required":["when"],"properties":{
          "when":{"type":"string","pattern":"^x"},
          "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
          "note":{"type":"string","nullable":true}}}}}}}]}})";

class OpenApi : public ClientTest {
 protected:
  Object get(const std::string& path) const {
    const auto answer = http(server_.port(), "GET", path);
    EXPECT_EQ(answer.code, 200) << path;
    return from_json(answer.body);
  }

  /// Calls `visit` with every reference in a document.
  static void for_each_reference(Value value, const std::function<void(std::string_view)>& visit) {
    for (const auto& [name, member] : value.members()) {
      if (name == "$ref" && member.is_string()) visit(member.as_string());
      for_each_reference(member, visit);
    }
    for (const Value element : value.elements()) for_each_reference(element, visit);
  }
};

TEST_F(OpenApi, HasADocumentForEveryGroupAndVersion) {
  const Object index = get("/openapi/v3");
  std::set<std::string> expected;
  for (const auto& info : api::builtin_resources())
    expected.insert(api::Resource(info.type()).root_path().substr(1));
  std::set<std::string> found;
  for (const auto& [name, entry] : index["paths"].members()) {
    found.emplace(name);
    const std::string url(entry["serverRelativeURL"].as_string());
    EXPECT_EQ(url.find("/openapi/v3/" + std::string(name) + "?hash="), 0u) << url;
    EXPECT_EQ(lookout::test::held(get(url))["openapi"].as_string(), "3.0.0");
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(http(server_.port(), "GET", "/openapi/v3/apis/nobody/v1").code, 404);
}

TEST_F(OpenApi, AllReferencesExist) {
  all(kDefinitions).create(from_json(kDefinition));
  const auto check = [](const Object& document, Value schemas, const std::string& prefix) {
    std::size_t references = 0;
    for_each_reference(document.body(), [&](std::string_view reference) {
      ++references;
      ASSERT_EQ(reference.substr(0, prefix.size()), prefix);
      EXPECT_TRUE(schemas.contains(reference.substr(prefix.size()))) << reference;
    });
    EXPECT_GT(references, 0u);
  };
  const Object v2 = get("/openapi/v2");
  check(v2, v2["definitions"], "#/definitions/");
  const Object index = get("/openapi/v3");
  for (const auto& [name, entry] : index["paths"].members()) {
    SCOPED_TRACE(name);
    const Object document = get(std::string(entry["serverRelativeURL"].as_string()));
    check(document, document["components"]["schemas"], "#/components/schemas/");
  }
}

TEST_F(OpenApi, DescribesTypesForClients) {
  const Object document = get("/openapi/v3/apis/apps/v1");
  const Value schemas = document["components"]["schemas"];
  EXPECT_EQ(schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"].to_json(),
            R"([{"kind":"Deployment","group":"apps","version":"v1"}])");
  const Value pod_spec = schemas["io.k8s.api.core.v1.PodSpec"];
  EXPECT_EQ(pod_spec["required"].to_json(), R"(["containers"])");
  const Value containers = pod_spec["properties"]["containers"];
  EXPECT_EQ(containers["type"].as_string(), "array");
  EXPECT_EQ(containers["items"]["$ref"].as_string(),
            "#/components/schemas/io.k8s.api.core.v1.Container");
  EXPECT_EQ(containers["x-kubernetes-patch-strategy"].as_string(), "merge");
  EXPECT_EQ(containers["x-kubernetes-patch-merge-key"].as_string(), "name");
  EXPECT_EQ(containers["x-kubernetes-list-type"].as_string(), "map");
  EXPECT_EQ(containers["x-kubernetes-list-map-keys"].to_json(), R"(["name"])");
  EXPECT_EQ(pod_spec["properties"]["volumes"]["x-kubernetes-patch-strategy"].as_string(),
            "merge,retainKeys");
  // References have no siblings.
  const Value strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
  EXPECT_EQ(strategy["allOf"][0]["$ref"].as_string(),
            "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy");
  EXPECT_EQ(strategy["x-kubernetes-patch-strategy"].as_string(), "retainKeys");
  EXPECT_EQ(schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"].as_string(),
            "int-or-string");
  EXPECT_EQ(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.Time"]["format"].as_string(),
            "date-time");
}

TEST_F(OpenApi, DescribesParametersOfRequests) {
  const Object document = get("/openapi/v3/apis/apps/v1");
  const Value path = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
  ASSERT_TRUE(path.exists());
  // The place where kubectl searches for them.
  std::set<std::string> parameters;
  for (const Value parameter : path["patch"]["parameters"].elements()) {
    if (parameter["in"].as_string() == "query") parameters.emplace(parameter["name"].as_string());
  }
  EXPECT_THAT(parameters, testing::IsSupersetOf({"dryRun", "fieldValidation", "fieldManager"}));
  EXPECT_EQ(path["patch"]["x-kubernetes-group-version-kind"].to_json(),
            R"({"kind":"Deployment","group":"apps","version":"v1"})");
  EXPECT_EQ(path["patch"]["x-kubernetes-action"].as_string(), "patch");
  for (const char* method : {"get", "put", "delete"}) EXPECT_TRUE(path[method].is_object());
  EXPECT_TRUE(
      document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status"]["get"]
          .is_object());
  EXPECT_TRUE(document["paths"]["/apis/apps/v1/deployments"]["get"].is_object());
}

TEST_F(OpenApi, NamesAndDescribesOperations) {
  const Object document = get("/openapi/v2");
  std::map<std::string, std::string> descriptions;
  for (const auto& [path, item] : document["paths"].members()) {
    for (const char* method : {"get", "put", "post", "delete", "patch"}) {
      const Value operation = item[method];
      if (!operation.exists()) continue;
      const bool is_new =
          descriptions
              .emplace(operation["operationId"].as_string(), operation["description"].as_string())
              .second;
      EXPECT_TRUE(is_new) << path << " " << method;
    }
  }
  // The names are those of a real kube-apiserver, and of generated clients.
  EXPECT_EQ(descriptions["listCoreV1NamespacedService"], "list or watch objects of kind Service");
  EXPECT_EQ(descriptions["listCoreV1ServiceForAllNamespaces"],
            "list or watch objects of kind Service");
  EXPECT_EQ(descriptions["createNetworkingV1NamespacedIngress"], "create an Ingress");
  EXPECT_EQ(descriptions["readAppsV1NamespacedDeploymentStatus"],
            "read status of the specified Deployment");
  EXPECT_EQ(descriptions["deleteRbacAuthorizationV1CollectionClusterRole"],
            "delete collection of ClusterRole");
  EXPECT_EQ(descriptions["patchCoreV1Node"], "partially update the specified Node");
  EXPECT_EQ(descriptions["createCoreV1NamespacedPodEviction"], "create eviction of a Pod");
  // Kubernetes' tests check for it.
  EXPECT_EQ(document["definitions"]["io.k8s.api.core.v1.ServiceList"]["properties"]["items"]
                    ["description"]
                        .as_string(),
            "List of services");
  const std::string text = document.to_json();
  EXPECT_THAT(text, testing::HasSubstr("list of returned"));
  EXPECT_THAT(text, testing::HasSubstr("Watch for changes to the described resources"));
}

TEST_F(OpenApi, DescribesCustomResources) {
  all(kDefinitions).create(from_json(kDefinition));
  const Object v3 = get("/openapi/v3/apis/stable.example.com/v1");
  const Value schema = v3["components"]["schemas"]["com.example.stable.v1.CronTab"];
  EXPECT_EQ(schema["properties"]["spec"]["properties"]["when"]["pattern"].as_string(), "^x");
  EXPECT_TRUE(schema["properties"]["metadata"].contains("$ref"));
  EXPECT_EQ(schema["x-kubernetes-group-version-kind"].to_json(),
            R"([{"kind":"CronTab","group":"stable.example.com","version":"v1"}])");
  const Value patch =
      v3["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]["patch"];
  EXPECT_TRUE(patch["requestBody"]["content"].contains("application/merge-patch+json"));
  // Clients send a media type that is listed here.
  EXPECT_FALSE(patch["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
  const Object v2 = get("/openapi/v2");
  const Value spec = v2["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"];
  EXPECT_EQ(spec["required"].to_json(), R"(["when"])");
  EXPECT_EQ(spec["properties"]["when"]["type"].as_string(), "string");
  // Schemas that v2 cannot express are left open.
  EXPECT_FALSE(spec["properties"]["port"].contains("anyOf"));
  EXPECT_FALSE(spec["properties"]["note"].contains("type"));
  // So is an object that may have unknown fields: kubectl would reject such fields.
  const Object open = changed(
      from_json(kDefinition),
      R"({"metadata":{"name":"opens.open.example.com"},"spec":{"group":"open.example.com","names":{
          "plural":"opens","singular":"open","kind":"Open"},"versions":[{"name":"v1","served":true,
          "storage":true,"schema":{"openAPIV3Schema":{"type":"object",
          "x-kubernetes-preserve-unknown-fields":true}}}]}})");
  all(kDefinitions).create(open);
  const Object open_v2 = get("/openapi/v2");
  EXPECT_FALSE(open_v2["definitions"]["com.example.open.v1.Open"].contains("properties"));
  const Object open_v3 = get("/openapi/v3/apis/open.example.com/v1");
  EXPECT_TRUE(open_v3["components"]["schemas"]["com.example.open.v1.Open"]["properties"]["metadata"]
                  .exists());
  // The schema is removed with its definition.
  all(kDefinitions).remove("crontabs.stable.example.com");
  EXPECT_TRUE(eventually([&] {
    return http(server_.port(), "GET", "/openapi/v3/apis/stable.example.com/v1").code == 404;
  }));
}

/// The fields of a protobuf message, by number.
std::multimap<unsigned, std::string> fields_of(const std::string& message) {
  std::multimap<unsigned, std::string> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint();
    if ((tag & 7) == 0) {
      out.emplace(static_cast<unsigned>(tag >> 3), std::to_string(varint()));
    } else {
      const std::uint64_t size = varint();
      out.emplace(static_cast<unsigned>(tag >> 3), message.substr(at, size));
      at += size;
    }
  }
  return out;
}

TEST_F(OpenApi, SupportsTheProtobufOfGoClients) {
  const auto answer =
      http(server_.port(), "GET", "/openapi/v2", {},
           {{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}});
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.headers.at("content-type"),
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  const auto document = fields_of(answer.body);
  EXPECT_EQ(document.find(1)->second, "2.0");
  // definitions, a NamedSchema, its value, and its required fields.
  std::map<std::string, std::string> schemas;
  for (const auto& [number, named] : fields_of(document.find(9)->second)) {
    const auto pair = fields_of(named);
    schemas[pair.find(1)->second] = pair.find(2)->second;
  }
  EXPECT_EQ(fields_of(schemas.at("io.k8s.api.core.v1.PodSpec")).find(19)->second, "containers");
  EXPECT_EQ(schemas.size(), lookout::test::held(get("/openapi/v2"))["definitions"].size());
  EXPECT_THAT(answer.body, testing::HasSubstr("listCoreV1NamespacedService"));
  const auto pod = fields_of(schemas.at("io.k8s.api.core.v1.Pod"));
  const auto extension = fields_of(pod.find(31)->second);
  EXPECT_EQ(extension.find(1)->second, "x-kubernetes-group-version-kind");
  EXPECT_EQ(fields_of(extension.find(2)->second).find(2)->second,
            R"([{"group":"","kind":"Pod","version":"v1"}])");
}

TEST_F(OpenApi, RejectsOtherEncodings) {
  for (const char* path : {"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"}) {
    EXPECT_EQ(http(server_.port(), "GET", path, {}, {{"Accept", "text/html"}}).code, 406) << path;
  }
}

}  // namespace
}  // namespace lookout::apiserver
