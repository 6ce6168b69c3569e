// Patches, scales, bindings and reviews.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

class Subresources : public ClientTest {
 protected:
  Object deployment() {
    return in(kDeployments)
        .create(from_json(
            R"({"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"},
            "matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]},
            "template":{"metadata":{"labels":{"app":"web","tier":"a"}},
            "spec":{"containers":[{"name":"c","image":"x"}]}}}})"));
  }
  HttpAnswer call(const std::string& method, const std::string& path, const std::string& body,
                  const std::string& type = "application/json") {
    return http(server_.port(), method, path, body, {{"Content-Type", type}});
  }
};

TEST_F(Subresources, PatchesChangeNamedFields) {
  in(kConfigMaps).create(from_json(R"({"metadata":{"name":"c"},"data":{"a":"1","b":"2"}})"));
  const Object merged =
      in(kConfigMaps).patch("c", rest::PatchType::kMerge, R"({"data":{"a":null,"c":"3"}})");
  EXPECT_EQ(merged["data"].to_json(), R"({"b":"2","c":"3"})");
  const Object moved = in(kConfigMaps)
                           .patch("c", rest::PatchType::kJson,
                                  R"([{"op":"test","path":"/data/b","value":"2"},
                           {"op":"move","from":"/data/b","path":"/data/d"}])");
  EXPECT_EQ(moved["data"].to_json(), R"({"c":"3","d":"2"})");
  EXPECT_EQ(status_of([&] {
              in(kConfigMaps)
                  .patch("c", rest::PatchType::kMerge, R"({"metadata":{"resourceVersion":"1"}})");
            }).code,
            409);
  EXPECT_EQ(status_of([&] {
              in(kConfigMaps).patch("c", rest::PatchType::kMerge, R"({"metadata":{"name":"d"}})");
            }).message,
            "the name of the object (d) does not match the name on the URL (c)");
  EXPECT_EQ(status_of([&] { in(kConfigMaps).patch("no", rest::PatchType::kMerge, "{}"); }).code,
            404);
}

TEST_F(Subresources, APatchWithoutAChangeWritesNothing) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  EXPECT_EQ(in(kConfigMaps).patch("c", rest::PatchType::kMerge, R"({"data":{"key":"x"}})"),
            created);
}

TEST_F(Subresources, InvalidPatchesAreRejected) {
  in(kConfigMaps).create(config_map("c"));
  const std::string path = "/api/v1/namespaces/default/configmaps/c";
  const auto message = [&](const std::string& body, const std::string& type) {
    const auto answer = call("PATCH", path, body, type);
    EXPECT_EQ(answer.code, 400);
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  };
  EXPECT_EQ(message("{", "application/merge-patch+json"),
            "error decoding patch: unexpected end of JSON input");
  EXPECT_EQ(message("[1,]", "application/json-patch+json"),
            "error decoding patch: invalid character ']' looking for beginning of value");
  EXPECT_EQ(call("PATCH", path, "{}", "application/apply-patch+yaml").code, 422);
  EXPECT_EQ(
      call("PATCH", path, R"({"metadata":{"labels":{"a":1}}})", "application/merge-patch+json")
          .code,
      422);
}

TEST_F(Subresources, ScaleShowsAndSetsTheReplicas) {
  const Object created = deployment();
  const Object scale = Object::parse(
      http(server_.port(), "GET", "/apis/apps/v1/namespaces/default/deployments/d/scale").body);
  EXPECT_EQ(scale.kind(), "Scale");
  EXPECT_EQ(scale.api_version(), "autoscaling/v1");
  EXPECT_EQ(scale.resource_version(), created.resource_version());
  EXPECT_EQ(scale["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(scale["status"]["selector"].as_string(), "app=web,tier in (a,b)");

  const std::string path = "/apis/apps/v1/namespaces/default/deployments/d/scale";
  const auto patched =
      call("PATCH", path, R"({"spec":{"replicas":5}})", "application/merge-patch+json");
  EXPECT_EQ(patched.code, 200) << patched.body;
  EXPECT_EQ(lookout::test::held(Object::parse(patched.body))["spec"]["replicas"].as_int(), 5);
  EXPECT_EQ(lookout::test::held(in(kDeployments).get("d"))["spec"]["replicas"].as_int(), 5);
  EXPECT_EQ(lookout::test::held(in(kDeployments).get("d"))["metadata"]["generation"].as_int(), 2);

  // A write based on an older state is rejected.
  EXPECT_EQ(call("PUT", path, changed(scale, R"({"spec":{"replicas":7}})").to_json()).code, 409);
  const Object fresh = Object::parse(http(server_.port(), "GET", path).body);
  EXPECT_EQ(call("PUT", path, changed(fresh, R"({"spec":{"replicas":7}})").to_json()).code, 200);
  EXPECT_EQ(lookout::test::held(in(kDeployments).get("d"))["spec"]["replicas"].as_int(), 7);
  EXPECT_EQ(call("PATCH", path, R"({"spec":{"replicas":-1}})", "application/merge-patch+json").code,
            422);
}

TEST_F(Subresources, EphemeralContainersAreAddedToAPod) {
  pods().create(pod("p"));
  const std::string path = "/api/v1/namespaces/default/pods/p/ephemeralcontainers";
  const std::string merge = "application/merge-patch+json";
  const auto added = call("PATCH", path,
                          R"({"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"},)"
                          R"("spec":{"activeDeadlineSeconds":5,)"
                          R"("ephemeralContainers":[{"name":"debug","image":"busybox"}]}})",
                          merge);
  EXPECT_EQ(added.code, 200) << added.body;
  const Object changed = pods().get("p");
  EXPECT_EQ(changed["spec"]["ephemeralContainers"][0]["name"].as_string(), "debug");
  EXPECT_EQ(changed["metadata"]["generation"].as_int(), 2);
  // No other fields change.
  EXPECT_FALSE(changed["metadata"]["labels"].exists());
  EXPECT_FALSE(changed["spec"]["activeDeadlineSeconds"].exists());
  EXPECT_EQ(changed["status"]["phase"].as_string(), "Pending");
  const auto message = [&](const char* containers) {
    const auto answer = call("PATCH", path, containers, merge);
    EXPECT_EQ(answer.code, 422);
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  };
  const std::string begin =
      "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "
      "\"debug\" may not be ";
  EXPECT_EQ(message(R"({"spec":{"ephemeralContainers":null}})"), begin + "removed\n");
  EXPECT_EQ(message(R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"other"}]}})"),
            begin + "changed\n");
}

TEST_F(Subresources, AResizeChangesProcessorsAndMemory) {
  pods().create(from_json(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","image":"nginx:1",)"
      R"("resources":{"requests":{"cpu":"1"}}}]}})"));
  const auto resized = call("PATCH", "/api/v1/namespaces/default/pods/p/resize",
                            R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[)"
                            R"({"name":"main","image":"other","resources":{"requests":)"
                            R"({"cpu":"2"}}}]}})",
                            "application/strategic-merge-patch+json");
  EXPECT_EQ(resized.code, 200) << resized.body;
  const Object changed = pods().get("p");
  const api::Value container = changed["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["requests"].to_json(), R"({"cpu":"2"})");
  EXPECT_EQ(container["image"].as_string(), "nginx:1");
  EXPECT_FALSE(changed["metadata"]["labels"].exists());
  EXPECT_EQ(changed["metadata"]["generation"].as_int(), 2);
}

TEST_F(Subresources, FinalizersOfANamespaceChangeWithoutItsStatus) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"n"}})"));
  const auto answer = call("PUT", "/api/v1/namespaces/n/finalize",
                           R"({"metadata":{"name":"n"},"spec":{"finalizers":["example.com/a"]}})");
  EXPECT_EQ(answer.code, 200) << answer.body;
  const Object changed = all(kNamespaces).get("n");
  EXPECT_EQ(changed["spec"]["finalizers"].to_json(), R"(["example.com/a"])");
  EXPECT_EQ(changed["status"]["phase"].as_string(), "Active");
}

TEST_F(Subresources, ABindingPutsAPodOnANode) {
  pods().create(pod("p"));
  const std::string path = "/api/v1/namespaces/default/pods/p/binding";
  const std::string binding =
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","annotations":{"by":"me"}},)"
      R"("target":{"kind":"Node","name":"n1"}})";
  // (kube-apiserver has no specific Status for it.)
  const auto nowhere = call("POST", path, R"({"metadata":{"name":"p"}})");
  EXPECT_EQ(nowhere.code, 500);
  EXPECT_EQ(lookout::test::held(Object::parse(nowhere.body))["message"].as_string(),
            "target.name: Required value");
  EXPECT_EQ(call("POST", path, binding).code, 201);
  const Object bound = pods().get("p");
  EXPECT_EQ(bound["spec"]["nodeName"].as_string(), "n1");
  EXPECT_EQ(bound.annotations()["by"].as_string(), "me");
  // The generation does not change.
  EXPECT_EQ(bound["metadata"]["generation"].as_int(), 1);
  EXPECT_EQ(bound["status"]["conditions"][0]["type"].as_string(), "PodScheduled");
  const auto again = call("POST", path, binding);
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(
      lookout::test::held(Object::parse(again.body))["message"].as_string(),
      "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node "
      "\"n1\"");
}

TEST_F(Subresources, ABindingChecksGatesAndPreconditions) {
  const api::Object gated = pods().create(pod("p", R"(,"schedulingGates":[{"name":"a.b/wait"}])"));
  const auto bind = [&](const std::string& more) {
    const auto answer = call("POST", "/api/v1/namespaces/default/pods/p/binding",
                             fmt::format(R"({{"metadata":{{"name":"p"{}}},)"
                                         R"("target":{{"kind":"Node","name":"n1"}}}})",
                                         more));
    const Object status = Object::parse(answer.body);
    return fmt::format("{} {}", answer.code, status["message"].as_string());
  };
  EXPECT_EQ(bind(""),
            "409 Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty "
            ".spec.schedulingGates");
  pods().patch("p", rest::PatchType::kMerge, R"({"spec":{"schedulingGates":null}})");
  pods().update_status(changed(pods().get("p"), R"({"status":{"nominatedNodeName":"n2"}})"));
  EXPECT_THAT(
      bind(fmt::format(R"(,"resourceVersion":"{}")", gated.resource_version())),
      testing::HasSubstr("409 Operation cannot be fulfilled on pods/binding \"p\": Precondition "
                         "failed: ResourceVersion in precondition: "));
  EXPECT_EQ(bind(""), "201 ");
  EXPECT_FALSE(lookout::test::held(pods().get("p"))["status"]["nominatedNodeName"].exists());
}

TEST_F(Subresources, ABoundPodGetsTheZoneOfItsNode) {
  const api::Resource nodes{"", "v1", "Node", "nodes", false};
  all(nodes).create(from_json(R"({"metadata":{"name":"n1","labels":{
    "topology.kubernetes.io/zone":"z1","topology.kubernetes.io/region":"r1","disk":"ssd"}}})"));
  pods().create(changed(pod("p"), R"({"metadata":{"labels":{"app":"web"}}})"));
  const auto answer =
      call("POST", "/api/v1/namespaces/default/pods/p/binding",
           R"({"metadata":{"name":"p","labels":{"topology.kubernetes.io/zone":"z2"}},
                               "target":{"kind":"Node","name":"n1"}})");
  EXPECT_EQ(answer.code, 201) << answer.body;
  const auto labels = [&](const char* name) {
    return lookout::test::held(pods().get(name))["metadata"]["labels"].to_json();
  };
  // A scheduler's labels take precedence.
  EXPECT_EQ(labels("p"), R"({"app":"web","topology.kubernetes.io/region":"r1",)"
                         R"("topology.kubernetes.io/zone":"z2"})");
  pods().create(pod("q", R"(,"nodeName":"n1")"));
  EXPECT_EQ(labels("q"), R"({"topology.kubernetes.io/region":"r1",)"
                         R"("topology.kubernetes.io/zone":"z1"})");
  pods().create(pod("lost", R"(,"nodeName":"n2")"));
  EXPECT_EQ(labels("lost"), "null");
}

TEST_F(Subresources, ABindingMayBeCreatedAsAnObject) {
  pods().create(pod("p"));
  const auto answer = call("POST", "/api/v1/namespaces/default/bindings",
                           R"({"metadata":{"name":"p"},"target":{"name":"n1"}})");
  EXPECT_EQ(answer.code, 201);
  EXPECT_EQ(lookout::test::held(Object::parse(answer.body)).to_json(),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})");
}

TEST_F(Subresources, NodeSubresourcesAreErrors) {
  const std::string pods_path = "/api/v1/namespaces/default/pods/";
  const auto message = [&](const std::string& method, const std::string& path, int code) {
    const auto answer = http(server_.port(), method, pods_path + path);
    EXPECT_EQ(answer.code, code) << answer.body;
    return answer.body.empty()
               ? ""
               : std::string(
                     lookout::test::held(Object::parse(answer.body))["message"].as_string());
  };
  pods().create(pod("p"));
  EXPECT_EQ(message("GET", "p/log", 204), "");
  EXPECT_EQ(message("GET", "p/log?container=x", 400), "container x is not valid for pod p");
  EXPECT_EQ(message("GET", "p/log?tailLines=-1", 422),
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or "
            "equal to 0");
  EXPECT_EQ(message("POST", "p/exec?command=ls", 400), "pod p does not have a host assigned");
  message("GET", "q/log", 404);
  pods().create(pod("r", R"(,"nodeName":"n")"));
  EXPECT_EQ(message("GET", "r/log", 400),
            "pods/log needs a node that runs containers, and this server has none");
  const std::string no_node =
      "pods/proxy needs a node that runs containers, and this server has none";
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(message(method, "r/proxy", 400), no_node) << method;
    EXPECT_EQ(message(method, "r/proxy/a/b", 400), no_node) << method;
  }
  EXPECT_EQ(message("POST", "r/exec?command=ls", 400),
            "pods/exec needs a node that runs containers, and this server has none");
}

TEST_F(Subresources, DeprecatedResourcesCauseWarnings) {
  const auto warning = [&](const std::string& path) {
    const auto answer = http(server_.port(), "GET", path);
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  };
  EXPECT_EQ(
      warning("/api/v1/endpoints"),
      "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"");
  EXPECT_EQ(
      warning("/api/v1/namespaces/default/endpoints/none"),
      "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"");
  EXPECT_EQ(warning("/api/v1/pods"), "");
}

TEST_F(Subresources, AccessReviewsAllowEverything) {
  const auto review = [&](const std::string& group, const std::string& resource,
                          const std::string& spec) {
    const auto answer =
        call("POST", "/apis/" + group + "/" + resource, R"({"spec":{)" + spec + "}}");
    EXPECT_EQ(answer.code, 201) << answer.body;
    return Object::parse(answer.body);
  };
  const std::string attributes =
      R"("user":"ann","resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"})";
  for (const char* resource : {"v1/selfsubjectaccessreviews", "v1/subjectaccessreviews",
                               "v1/namespaces/default/localsubjectaccessreviews"}) {
    EXPECT_TRUE(lookout::test::held(
                    review("authorization.k8s.io", resource, attributes))["status"]["allowed"]
                    .as_bool());
  }
  const Object allowed =
      review("authorization.k8s.io", "v1/selfsubjectrulesreviews", R"("namespace":"default")");
  EXPECT_EQ(allowed["status"]["resourceRules"][0]["verbs"][0].as_string(), "*");
  EXPECT_EQ(lookout::test::held(review("authentication.k8s.io", "v1/selfsubjectreviews",
                                       ""))["status"]["userInfo"]["username"]
                .as_string(),
            "system:unsecured");
  const Object token = review("authentication.k8s.io", "v1/tokenreviews", R"("token":"x")");
  EXPECT_FALSE(token["status"]["authenticated"].as_bool());
}

TEST_F(Subresources, ComponentsAreAnEmptyList) {
  const Object list = Object::parse(http(server_.port(), "GET", "/api/v1/componentstatuses").body);
  EXPECT_EQ(list.kind(), "ComponentStatusList");
  EXPECT_EQ(list["items"].size(), 0u);
}

}  // namespace
}  // namespace lookout::apiserver
