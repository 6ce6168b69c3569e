// Objects of an older server or schema: an update is rejected only for changed fields. Compared with the
// responses of a kube-apiserver 1.36.2.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/protobuf.h"
#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

class Ratcheting : public ClientTest {
 protected:
  HttpAnswer send(const std::string& method, const std::string& path, const std::string& body) {
    return http(server_.port(), method, path, body,
                {{"Content-Type",
                  method == "PATCH" ? "application/merge-patch+json" : "application/json"}});
  }
};

/// Each cause of a rejection. (Kubernetes validates the fields of a custom resource in any order.)
std::vector<std::string> sorted_causes(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements()) out.push_back(cause.to_json());
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(Ratcheting, OfCustomResourcesEqualsARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/custom_ratcheting.json")));
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const api::Value definition = recorded["definition"];
  EXPECT_EQ(send("POST", definitions, definition.to_json()).code, 201);
  std::size_t compared = 0;
  const auto replay = [&](api::Value requests) {
    for (const api::Value one : requests.elements()) {
      SCOPED_TRACE(one.to_json());
      const api::Value body = one["body"];
      const HttpAnswer answer =
          send(std::string(one["method"].as_string()), std::string(one["path"].as_string()),
               body.exists() ? body.to_json() : "");
      EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
      const Object object = Object::parse(answer.body);
      if (one["causes"].exists()) {
        EXPECT_EQ(sorted_causes(object["details"]["causes"]), sorted_causes(one["causes"]));
      }
      for (const auto& [name, value] : one["left"].members()) {
        EXPECT_TRUE(Object::parse(object[name].to_json()).to_document() ==
                    Object::parse(value.to_json()).to_document())
            << object[name].to_json();
      }
      ++compared;
    }
  };
  replay(recorded["before"]);
  const std::string strict =
      R"([{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":)" +
      recorded["schema"].to_json() + "}]";
  EXPECT_EQ(http(server_.port(), "PATCH",
                 definitions + "/" + std::string(definition["metadata"]["name"].as_string()),
                 strict, {{"Content-Type", "application/json-patch+json"}})
                .code,
            200);
  replay(recorded["after"]);
  EXPECT_GT(compared, 300u);
}

/// The object after a round trip through a protobuf storage.
Object as_stored(api::Value object) {
  const Object text = Object::parse(object.to_json());
  std::string bytes;
  api::ProtobufEncoder encoder;
  return encoder.encode(text, bytes) ? api::ProtobufDecoder().decode(bytes) : text;
}

void store(storage::Interface& place, std::string key, Object object) {
  boost::asio::io_context io;
  std::exception_ptr failure;
  boost::asio::co_spawn(io, place.create(std::move(key), std::move(object)),
                        [&](const std::exception_ptr& e, const Object&) { failure = e; });
  io.run();
  if (failure) std::rethrow_exception(failure);
}

/// Each object is written directly to the storage, like by an older, less strict server.
TEST(OldObjects, CanBeChangedLikeOnARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/old_objects.json")));
  const auto backend = std::make_shared<storage::MemoryBackend>();
  for (const api::Value one : recorded["stored"].elements()) {
    store(backend->resource(one["place"].as_string()), std::string(one["key"].as_string()),
          as_stored(one["object"]));
  }
  ServerOptions options;
  options.storage = backend;
  const Server server(std::move(options));
  std::size_t compared = 0;
  for (const api::Value one : recorded["stored"].elements()) {
    for (const api::Value change : one["changes"].elements()) {
      SCOPED_TRACE(std::string(one["path"].as_string()) + " " + change.to_json());
      const HttpAnswer answer =
          http(server.port(), "PATCH",
               std::string(one["path"].as_string()) + std::string(change["on"].as_string()),
               change["body"].to_json(), {{"Content-Type", "application/merge-patch+json"}});
      const api::Value causes = change["causes"];
      EXPECT_EQ(answer.code, causes.exists() ? 422 : 200) << answer.body;
      const Object told = Object::parse(answer.body);
      if (causes.exists()) {
        EXPECT_EQ(sorted_causes(told["details"]["causes"]), sorted_causes(causes));
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 300u);
}

TEST(OldObjects, KeepTheirSourceRangesInAnAnnotation) {
  const auto backend = std::make_shared<storage::MemoryBackend>();
  store(backend->resource("services/specs"), "default/web", Object::parse(R"({
      "apiVersion": "v1", "kind": "Service",
      "metadata": {"name": "web", "namespace": "default", "uid": "1", "annotations":
          {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.1"}},
      "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"],
               "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
               "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
               "allocateLoadBalancerNodePorts": false,
               "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}})"));
  ServerOptions options;
  options.storage = backend;
  const Server server(std::move(options));
  const auto annotate = [&](const std::string& name, const std::string& value) {
    return http(server.port(), "PATCH", "/api/v1/namespaces/default/services/web",
                R"({"metadata":{"annotations":{")" + name + R"(":")" + value + R"("}}})",
                {{"Content-Type", "application/merge-patch+json"}});
  };
  const HttpAnswer unrelated = annotate("note", "x");
  EXPECT_EQ(unrelated.code, 200) << unrelated.body;
  const HttpAnswer changed =
      annotate("service.beta.kubernetes.io/load-balancer-source-ranges", "10.0.0.2");
  EXPECT_EQ(changed.code, 422) << changed.body;
}

}  // namespace
}  // namespace lookout::apiserver
