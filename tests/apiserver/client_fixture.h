// A server and its client, for tests of the server's handling of objects.
#pragma once

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <functional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"

namespace lookout::apiserver {

struct HttpAnswer;

// Names that most of the tests use.
using api::Object;
using lookout::test::eventually;
using lookout::test::held;

inline const api::Resource kPods{"", "v1", "Pod", "pods", true};
inline const api::Resource kConfigMaps{"", "v1", "ConfigMap", "configmaps", true};
inline const api::Resource kNamespaces{"", "v1", "Namespace", "namespaces", false};
inline const api::Resource kNodes{"", "v1", "Node", "nodes", false};
inline const api::Resource kSecrets{"", "v1", "Secret", "secrets", true};
inline const api::Resource kServices{"", "v1", "Service", "services", true};
inline const api::Resource kLimitRanges{"", "v1", "LimitRange", "limitranges", true};
inline const api::Resource kLeases{"coordination.k8s.io", "v1", "Lease", "leases", true};
inline const api::Resource kDeployments{"apps", "v1", "Deployment", "deployments", true};
inline const api::Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "ClusterRole",
                                         "clusterroles", false};
inline const api::Resource kDefinitions{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                        "customresourcedefinitions", false};
inline const api::Resource kThings{"example.com", "v1", "Thing", "things", true};

/// The definition of the kind Thing of example.com, up to the members of its version v1, which is served
/// and stored.
inline constexpr const char* kThingDefinition = R"({"metadata":{"name":"things.example.com"},
  "spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
    "versions":[{"name":"v1","served":true,"storage":true,)";

class ClientTest : public testing::Test {
 protected:
  explicit ClientTest(ServerOptions options = {})
      : server_(std::move(options)), client_(server_.client_config()) {}

  rest::ResourceClient in(const api::Resource& resource, std::string ns = "default") const {
    return client_.resource(resource, std::move(ns));
  }
  rest::ResourceClient pods(std::string ns = "default") const { return in(kPods, std::move(ns)); }
  rest::ResourceClient all(const api::Resource& resource) const {
    return client_.resource(resource);
  }

  Server server_;
  rest::Client client_;
};

inline api::Object from_json(const std::string& text) { return api::Object::parse(text); }

inline api::Object config_map(const std::string& name, const std::string& value = "x") {
  return from_json(R"({"metadata":{"name":")" + name + R"("},"data":{"key":")" + value + R"("}})");
}

inline api::Object pod(const std::string& name, const std::string& spec = "") {
  return from_json(R"({"metadata":{"name":")" + name +
                   R"("},"spec":{"containers":[{"name":"main","image":"nginx:1"}])" + spec + "}}");
}

/// The object with a merge patch, applied in the client.
api::Object changed(const api::Object& object, const std::string& patch);

/// "field: message" of each cause of a rejection.
std::vector<std::string> causes_of(const HttpAnswer& answer);

/// The object after operations of a JSON Patch, which are separated by commas.
api::Object json_patched(const std::string& object, const std::string& operations);
/// The operation that adds a value at a path below the spec.
std::string add_to_spec(const std::string& path, const std::string& value);

/// The failure that an operation ends with; one without a code if it succeeds.
api::Status status_of(const std::function<void()>& operation);

}  // namespace lookout::apiserver
