// Creating and changing objects.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

class CreateAndUpdate : public ClientTest {
 protected:
  Object patch_status(const std::string& path, const std::string& patch) const {
    return from_json(http(server_.port(), "PATCH", path, patch,
                          {{"Content-Type", "application/merge-patch+json"}})
                         .body);
  }
};

TEST_F(CreateAndUpdate, ANewObjectGetsItsMetadata) {
  const Object created = pods().create(from_json(
      R"({"metadata":{"name":"web","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",
          "generation":7,"deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"},
          "spec":{"containers":[{"name":"c","image":"nginx"}]},"status":{"phase":"Running"}})"));
  EXPECT_EQ(created.api_version(), "v1");
  EXPECT_EQ(created.kind(), "Pod");
  EXPECT_EQ(created.ns(), "default");
  EXPECT_TRUE(std::regex_match(std::string(created.uid()),
                               std::regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                                          "[0-9a-f]{12}")))
      << created.uid();
  EXPECT_TRUE(api::parse_time(created["metadata"]["creationTimestamp"].as_string()));
  EXPECT_NE(created["metadata"]["creationTimestamp"].as_string(), "2001-01-01T00:00:00Z");
  EXPECT_EQ(created["metadata"]["generation"].as_int(), 1);
  EXPECT_FALSE(created["metadata"].contains("deletionTimestamp"));
  EXPECT_FALSE(created["metadata"].contains("selfLink"));
  EXPECT_GT(std::stoull(std::string(created.resource_version())), 0u);
  // The client cannot set its status.
  EXPECT_EQ(created["status"]["phase"].as_string(), "Pending");
  EXPECT_EQ(created["spec"]["restartPolicy"].as_string(), "Always");
  EXPECT_EQ(pods().get("web"), created);
}

TEST_F(CreateAndUpdate, ANodeMaySetItsStatusAtCreation) {
  const Object node = all(kNodes).create(
      from_json(R"({"metadata":{"name":"n1"},"status":{"nodeInfo":{"kubeletVersion":"v1"}}})"));
  EXPECT_EQ(node["status"]["nodeInfo"]["kubeletVersion"].as_string(), "v1");
  EXPECT_EQ(node.ns(), "");
}

TEST_F(CreateAndUpdate, NamesAreGenerated) {
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) {
    const Object created =
        in(kConfigMaps).create(from_json(R"({"metadata":{"generateName":"job-"}})"));
    EXPECT_TRUE(std::regex_match(std::string(created.name()),
                                 std::regex("job-[bcdfghjklmnpqrstvwxz2456789]{5}")))
        << created.name();
    names.emplace(created.name());
  }
  EXPECT_EQ(names.size(), 50u);
}

// Like a kube-apiserver 1.36: in Go, these fields have no "omitempty".
TEST_F(CreateAndUpdate, SomeUnsetFieldsAreWritten) {
  const api::Resource roles{"rbac.authorization.k8s.io", "v1", "Role", "roles", true};
  const Object role = in(roles).create(from_json(R"({"metadata":{"name":"r"}})"));
  EXPECT_TRUE(role["rules"].is_null());
  const Object node = all(kNodes).create(from_json(R"({"metadata":{"name":"n"}})"));
  EXPECT_EQ(lookout::test::held(node)["status"]["daemonEndpoints"].to_json(),
            R"({"kubeletEndpoint":{"Port":0}})");
  pods().create(pod("p"));
  const Object ready =
      patch_status("/api/v1/namespaces/default/pods/p/status",
                   R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  const api::Value condition = ready["status"]["conditions"][0];
  EXPECT_TRUE(condition["lastProbeTime"].is_null());
  EXPECT_TRUE(condition["lastTransitionTime"].is_null());
  // Their owner is the writer of the object.
  const std::string managers = lookout::test::held(ready)["metadata"]["managedFields"].to_json();
  EXPECT_NE(managers.find("f:lastTransitionTime"), std::string::npos) << managers;
  // Autoscalers are stored in another version.
  const api::Resource v1{"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
                         true};
  const Object autoscaler = in(v1).create(
      from_json(R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,)"
                R"("scaleTargetRef":{"kind":"Deployment","name":"x","apiVersion":"apps/v1"}}})"));
  EXPECT_EQ(autoscaler["status"]["currentReplicas"].to_json(), "0");
}

TEST_F(CreateAndUpdate, TheStatusOfADeploymentDoesNotChangeItsLabels) {
  in(kDeployments)
      .create(from_json(
          R"({"metadata":{"name":"d","labels":{"a":"1"}},"spec":{"selector":{"matchLabels":{"a":"b"}},)"
          R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  const Object changed =
      patch_status("/apis/apps/v1/namespaces/default/deployments/d/status",
                   R"({"metadata":{"labels":{"a":"2"},"annotations":{"b":"2"}}})");
  EXPECT_EQ(changed["metadata"]["labels"]["a"].as_string(), "1");
  EXPECT_EQ(changed["metadata"]["annotations"]["b"].as_string(), "2");
}

TEST_F(CreateAndUpdate, ANewObjectMustNotHaveAVersion) {
  const auto status = status_of([&] {
    in(kConfigMaps).create(from_json(R"({"metadata":{"name":"c","resourceVersion":"5"}})"));
  });
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.message, "resourceVersion should not be set on objects to be created");
}

TEST_F(CreateAndUpdate, RequiresANamespace) {
  const auto status = status_of([&] { in(kConfigMaps, "nowhere").create(config_map("c")); });
  EXPECT_EQ(status.code, 404);
  EXPECT_EQ(status.message, "namespaces \"nowhere\" not found");
  EXPECT_EQ(status.kind, "namespaces");
}

TEST_F(CreateAndUpdate, ADryRunChangesNothing) {
  rest::CreateOptions dry_run;
  dry_run.dry_run = true;
  const Object wished = in(kConfigMaps).create(config_map("c"), dry_run);
  EXPECT_FALSE(wished.uid().empty());
  EXPECT_EQ(status_of([&] { in(kConfigMaps).get("c"); }).code, 404);
  const Object created = in(kConfigMaps).create(config_map("c"));
  EXPECT_EQ(status_of([&] { in(kConfigMaps).create(config_map("c"), dry_run); }).code, 409);
  rest::UpdateOptions dry_update;
  dry_update.dry_run = true;
  const Object updated =
      in(kConfigMaps).update(changed(created, R"({"data":{"key":"y"}})"), dry_update);
  EXPECT_EQ(updated["data"]["key"].as_string(), "y");
  EXPECT_EQ(in(kConfigMaps).get("c"), created);
}

// Like `kubectl replace -f` with the file from which the pod was created.
TEST_F(CreateAndUpdate, APodMayBeReplacedByItsManifest) {
  const Object pod = from_json(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
          "spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  const Object created = in(kPods).create(pod);
  ASSERT_TRUE(created["spec"].contains("tolerations")) << "which admission adds";
  const Object replaced = in(kPods).update(pod);
  EXPECT_EQ(replaced["spec"], created["spec"]);
}

TEST_F(CreateAndUpdate, AnUpdateReplacesTheObject) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  const Object updated =
      in(kConfigMaps).update(changed(created, R"({"data":null,"binaryData":{"b":"eA=="}})"));
  EXPECT_FALSE(updated.body().contains("data"));
  EXPECT_EQ(updated["binaryData"]["b"].as_string(), "eA==");
  EXPECT_NE(updated.resource_version(), created.resource_version());
  EXPECT_EQ(updated.uid(), created.uid());
}

TEST_F(CreateAndUpdate, AnUpdateOfAnOldVersionIsAConflict) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  in(kConfigMaps).update(changed(created, R"({"data":{"key":"theirs"}})"));
  const auto status =
      status_of([&] { in(kConfigMaps).update(changed(created, R"({"data":{"key":"ours"}})")); });
  EXPECT_EQ(status.code, 409);
  EXPECT_EQ(status.reason, "Conflict");
  EXPECT_EQ(lookout::test::held(in(kConfigMaps).get("c"))["data"]["key"].as_string(), "theirs");
}

TEST_F(CreateAndUpdate, AnUpdateWithoutVersionIsUnconditional) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  in(kConfigMaps).update(changed(created, R"({"data":{"key":"theirs"}})"));
  in(kConfigMaps).update(config_map("c", "ours"));
  EXPECT_EQ(lookout::test::held(in(kConfigMaps).get("c"))["data"]["key"].as_string(), "ours");
}

TEST_F(CreateAndUpdate, SomeKindsRequireAVersion) {
  in(kLeases).create(from_json(R"({"metadata":{"name":"l"}})"));
  const auto status =
      status_of([&] { in(kLeases).update(from_json(R"({"metadata":{"name":"l"}})")); });
  EXPECT_EQ(status.code, 422);
  EXPECT_EQ(status.message,
            "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: "
            "0: must be specified for an update");
}

TEST_F(CreateAndUpdate, SomeKindsAreCreatedByAnUpdate) {
  HttpClient http(server_.port());
  const auto answer =
      http.request("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
                   R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"me"}})");
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(lookout::test::held(in(kLeases).get("l"))["spec"]["holderIdentity"].as_string(), "me");
  EXPECT_EQ(status_of([&] { in(kConfigMaps).update(config_map("c")); }).code, 404);
}

TEST_F(CreateAndUpdate, AnotherObjectOfTheSameNameIsAConflict) {
  const Object first = in(kConfigMaps).create(config_map("c"));
  in(kConfigMaps).remove("c");
  in(kConfigMaps).create(config_map("c"));
  const auto status = status_of(
      [&] { in(kConfigMaps).update(changed(first, R"({"metadata":{"resourceVersion":null}})")); });
  EXPECT_EQ(status.code, 409);
  EXPECT_NE(
      status.message.find("Precondition failed: UID in precondition: " + std::string(first.uid())),
      std::string::npos)
      << status.message;
}

TEST_F(CreateAndUpdate, AnUpdateDoesNotRecreateADeletedObject) {
  const Object first = in(kLeases).create(from_json(R"({"metadata":{"name":"l"},"spec":{}})"));
  in(kLeases).remove("l");
  const auto status = status_of([&] { in(kLeases).update(first); });
  EXPECT_EQ(status.code, 409);
  EXPECT_EQ(status.message,
            "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": StorageError: "
            "invalid object, Code: 4, Key: /registry/leases/default/l, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: UID in precondition: " +
                std::string(first.uid()) + ", UID in object meta: ");
}

TEST_F(CreateAndUpdate, IdentityAndCreationTimeCannotChange) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  const Object updated =
      in(kConfigMaps)
          .update(changed(created,
                          R"({"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z","uid":null,
                   "generation":9}})"));
  // No field has changed, so the version has not changed either.
  EXPECT_EQ(updated, created);
  // Deletion fields cannot be set.
  const api::Status status = status_of([&] {
    in(kConfigMaps)
        .update(changed(created, R"({"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}})"));
  });
  EXPECT_EQ(status.message,
            "ConfigMap \"c\" is invalid: metadata.deletionTimestamp: Invalid value: "
            "\"2001-01-01T00:00:00Z\": field is immutable");
  // The API server repeats the error each time it validates metadata.
  EXPECT_EQ(status.causes.size(), 2u);
}

TEST_F(CreateAndUpdate, QuantitiesAreCanonical) {
  const Object created = pods().create(from_json(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x","resources":)"
      R"({"limits":{"cpu":"0.5","memory":"1024Mi","example.com/x":2},"requests":{"cpu":"100m"}}}]}})"));
  EXPECT_EQ(created["spec"]["containers"][0]["resources"]["limits"].to_json(),
            R"({"cpu":"500m","example.com/x":"2","memory":"1Gi"})");
  EXPECT_EQ(created["spec"]["containers"][0]["resources"]["requests"]["memory"].as_string(), "1Gi");
}

TEST_F(CreateAndUpdate, APodMayHavePodLevelResources) {
  const auto create = [&](const char* whole, const char* container) {
    return http(server_.port(), "POST", "/api/v1/namespaces/default/pods?dryRun=All",
                fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"resources":{},)"
                            R"("containers":[{{"name":"c","image":"i","resources":{}}}]}}}})",
                            whole, container));
  };
  // Missing requests are those of the containers, or else the limits.
  const Object pod = Object::parse(
      create(R"({"limits":{"cpu":"2","memory":"1Gi"}})", R"({"limits":{"cpu":"1"}})").body);
  EXPECT_EQ(pod["spec"]["resources"]["requests"].to_json(), R"({"cpu":"1","memory":"1Gi"})");
  const auto message = [&](const char* whole, const char* container) {
    const HttpAnswer answer = create(whole, container);
    EXPECT_EQ(answer.code, 422) << answer.body;
    return std::string(lookout::test::held(Object::parse(answer.body))["message"].as_string());
  };
  const std::string begin = "Pod \"p\" is invalid: spec.resources.";
  EXPECT_EQ(message(R"({"requests":{"cpu":"1"}})", R"({"requests":{"cpu":"2"}})"),
            begin +
                "requests[cpu]: Invalid value: \"1\": must be greater than or equal to "
                "aggregate container requests of 2");
  EXPECT_EQ(
      message(R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"3"},"requests":{"cpu":"1"}})"),
      begin +
          "containers[0][cpu].limits: Invalid value: \"3\": must be less than or equal to "
          "pod limits of 1");
}

TEST_F(CreateAndUpdate, APodKeepsItsContainers) {
  pods().create(pod("p"));
  EXPECT_EQ(status_of([&] {
              pods().patch("p", rest::PatchType::kStrategicMerge,
                           R"({"spec":{"containers":[{"name":"more","image":"x"}]}})");
            }).message,
            "Pod \"p\" is invalid: spec.containers: Forbidden: pod updates may not add or remove "
            "containers");
}

TEST_F(CreateAndUpdate, TheNameOfTheObjectMustMatchThePath) {
  in(kConfigMaps).create(config_map("c"));
  HttpClient http(server_.port());
  const std::string path = "/api/v1/namespaces/default/configmaps/c";
  const auto put = [&](const std::string& metadata) {
    return Object::parse(http.request("PUT", path, R"({"metadata":{)" + metadata + "}}").body);
  };
  EXPECT_EQ(lookout::test::held(put(R"("name":"d")"))["message"].as_string(),
            "the name of the object (d) does not match the name on the URL (c)");
  EXPECT_EQ(lookout::test::held(put(""))["message"].as_string(),
            "the name of the object (c based on URL) was undeterminable: name must be provided");
  EXPECT_EQ(
      lookout::test::held(put(R"("name":"c","namespace":"other")"))["message"].as_string(),
      "the namespace of the provided object does not match the namespace sent on the request");
  // Even if there is no object of that name.
  const auto answer = http.request("PUT", "/api/v1/namespaces/default/configmaps/none",
                                   R"({"metadata":{"name":"d"}})");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(lookout::test::held(Object::parse(answer.body))["message"].as_string(),
            "the name of the object (d) does not match the name on the URL (none)");
}

TEST_F(CreateAndUpdate, GenerationCountsChangesOfTheSpec) {
  const Object created = pods().create(pod("p"));
  const Object labeled = pods().update(changed(created, R"({"metadata":{"labels":{"a":"b"}}})"));
  EXPECT_EQ(labeled["metadata"]["generation"].as_int(), 1);
  const Object other_image =
      pods().patch("p", rest::PatchType::kJson,
                   R"([{"op":"replace","path":"/spec/containers/0/image","value":"nginx:2"}])");
  EXPECT_EQ(other_image["metadata"]["generation"].as_int(), 2);
  const Object running =
      pods().update_status(changed(other_image, R"({"status":{"phase":"Running"}})"));
  EXPECT_EQ(running["metadata"]["generation"].as_int(), 2);
  // Config maps have no generation at all.
  const Object map = in(kConfigMaps).create(config_map("c"));
  EXPECT_FALSE(map["metadata"].contains("generation"));
}

TEST_F(CreateAndUpdate, StatusAndSpecAreChangedSeparately) {
  const Object created = pods().create(pod("p"));
  // The main resource leaves the status alone ...
  const Object main = pods().update(
      changed(created, R"({"metadata":{"labels":{"a":"b"}},"status":{"phase":"Failed"}})"));
  EXPECT_EQ(main.labels()["a"].as_string(), "b");
  EXPECT_EQ(main["status"]["phase"].as_string(), "Pending");
  // ... and the subresource the spec.
  const Object status = pods().update_status(changed(
      main, R"({"spec":{"nodeName":"n"},"status":{"phase":"Running","podIP":"10.0.0.1"}})"));
  EXPECT_EQ(status["status"]["podIP"].as_string(), "10.0.0.1");
  EXPECT_FALSE(status["spec"].contains("nodeName"));
  const Object succeeded = pods().patch("p", rest::PatchType::kMerge,
                                        R"({"status":{"phase":"Succeeded"}})", {}, "status");
  EXPECT_EQ(succeeded["status"]["phase"].as_string(), "Succeeded");
  EXPECT_EQ(lookout::test::held(pods().get("p"))["status"]["podIP"].as_string(), "10.0.0.1");
}

TEST_F(CreateAndUpdate, ConcurrentWritersWithRetriesAllSucceed) {
  in(kConfigMaps).create(from_json(R"({"metadata":{"name":"c"},"data":{"n":"0"}})"));
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&] {
      for (int done = 0; done < 25;) {
        const Object present = in(kConfigMaps).get("c");
        const int n = std::stoi(std::string(present["data"]["n"].as_string()));
        try {
          in(kConfigMaps)
              .update(changed(present, R"({"data":{"n":")" + std::to_string(n + 1) + R"("}})"));
          ++done;
        } catch (const api::StatusError& e) {
          ASSERT_TRUE(api::is_conflict(e)) << e.what();
        }
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(lookout::test::held(in(kConfigMaps).get("c"))["data"]["n"].as_string(), "100");
}

TEST_F(CreateAndUpdate, ConcurrentPatchesAreAllApplied) {
  in(kConfigMaps).create(config_map("c"));
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 25; ++i) {
        in(kConfigMaps)
            .patch("c", rest::PatchType::kMerge,
                   R"({"data":{"k)" + std::to_string(w * 25 + i) + R"(":"x"}})");
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(lookout::test::held(in(kConfigMaps).get("c"))["data"].size(), 101u);
}

struct InvalidCase {
  const char* name;
  const api::Resource* resource;
  const char* object;
  const char* message;
};

class InvalidObjects : public testing::TestWithParam<InvalidCase> {
 protected:
  static void SetUpTestSuite() { server_ = new Server; }
  static void TearDownTestSuite() { delete server_; }
  static inline Server* server_ = nullptr;
};

TEST_P(InvalidObjects, AreRejectedWithTheApiServersMessages) {
  const InvalidCase& c = GetParam();
  const rest::Client client(server_->client_config());
  const auto status = status_of([&] {
    client.resource(*c.resource, c.resource->namespaced ? "default" : "")
        .create(from_json(c.object));
  });
  EXPECT_EQ(status.message, c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, InvalidObjects,
    testing::Values(
        InvalidCase{
            "no_name", &kConfigMaps, R"({"data":{}})",
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName "
            "is required"},
        InvalidCase{"namespace_with_dots", &kNamespaces, R"({"metadata":{"name":"a.b"}})",
                    "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not "
                    "contain dots"},
        InvalidCase{
            "service_name", &kServices,
            R"({"metadata":{"name":"-web"},"spec":{"ports":[{"port":80}]}})",
            "Service \"-web\" is invalid: metadata.name: Invalid value: \"-web\": a lowercase RFC "
            "1123 label must consist of lower case alphanumeric characters or '-', and must start "
            "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
            "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
        InvalidCase{
            "label", &kConfigMaps, R"({"metadata":{"name":"c","labels":{"a":"-"}}})",
            "ConfigMap \"c\" is invalid: metadata.labels: Invalid value: \"-\": a valid label "
            "must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
        InvalidCase{
            "owner", &kConfigMaps,
            R"({"metadata":{"name":"c","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"}]}})",
            "ConfigMap \"c\" is invalid: metadata.ownerReferences.uid: Invalid value: \"\": "
            "must not be empty"},
        InvalidCase{"two_controllers", &kConfigMaps,
                    R"({"metadata":{"name":"c","ownerReferences":[)"
                    R"({"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":true},)"
                    R"({"apiVersion":"v1","kind":"Pod","name":"q","uid":"2","controller":true}]}})",
                    "ConfigMap \"c\" is invalid: metadata.ownerReferences: Invalid value: "
                    R"([{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":true},)"
                    R"({"apiVersion":"v1","kind":"Pod","name":"q","uid":"2","controller":true}]: )"
                    R"(Only one reference can have Controller set to true. Found "true" in )"
                    "references for Pod/p and Pod/q"},
        InvalidCase{"owned_by_an_event", &kConfigMaps,
                    R"({"metadata":{"name":"c","ownerReferences":[)"
                    R"({"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}]}})",
                    "ConfigMap \"c\" is invalid: metadata.ownerReferences: Invalid value: "
                    R"({"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: )"
                    "/v1, Kind=Event is disallowed from being an owner"},
        InvalidCase{
            "container", &kPods,
            R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"},{"name":"a","image":"x"}]}})",
            "Pod \"p\" is invalid: [spec.containers[0].image: Required value, "
            "spec.containers[1].name: Duplicate value: \"a\"]"},
        InvalidCase{
            "restart_policy", &kPods,
            R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Perhaps","containers":[{"name":"a","image":"x"}]}})",
            "Pod \"p\" is invalid: spec.restartPolicy: Unsupported value: \"Perhaps\": "
            "supported values: \"Always\", \"OnFailure\", \"Never\""},
        InvalidCase{
            "selector", &kDeployments,
            R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
                        "template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"a","image":"x"}]}}}})",
            "Deployment.apps \"d\" is invalid: spec.template.metadata.labels: Invalid value: "
            "{\"a\":\"c\"}: `selector` does not match template `labels`"},
        InvalidCase{
            "replicas", &kDeployments,
            R"({"metadata":{"name":"d"},"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}},
                        "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"x"}]}}}})",
            "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1: must be "
            "greater than or equal to 0"},
        InvalidCase{
            "config_map_key", &kConfigMaps, R"({"metadata":{"name":"c"},"data":{"a b":"x"}})",
            "ConfigMap \"c\" is invalid: data[a b]: Invalid value: \"a b\": a valid config key "
            "must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"},
        InvalidCase{"service_port", &kServices,
                    R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":70000,"targetPort":1}]}})",
                    "Service \"s\" is invalid: spec.ports[0].port: Invalid value: 70000: must be "
                    "between 1 and 65535, inclusive"},
        InvalidCase{"label_type", &kConfigMaps, R"({"metadata":{"name":"c","labels":{"a":1}}})",
                    "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot "
                    "unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
                    "string"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(CreateAndUpdate, SecretsConvertStringDataToData) {
  const Object secret = in(kSecrets).create(
      from_json(R"({"metadata":{"name":"s"},"stringData":{"user":"me"},"data":{"a":"eA=="}})"));
  EXPECT_EQ(secret["data"]["user"].as_string(), "bWU=");
  EXPECT_EQ(secret["data"]["a"].as_string(), "eA==");
  EXPECT_FALSE(secret.body().contains("stringData"));
  EXPECT_EQ(secret["type"].as_string(), "Opaque");
}

TEST_F(CreateAndUpdate, KeepsImmutableData) {
  const Object created =
      in(kConfigMaps)
          .create(from_json(R"({"metadata":{"name":"c"},"immutable":true,"data":{"a":"b"}})"));
  EXPECT_EQ(
      status_of([&] { in(kConfigMaps).update(changed(created, R"({"data":{"a":"c"}})")); }).message,
      "ConfigMap \"c\" is invalid: data: Forbidden: field is immutable when `immutable` is set");
}

TEST_F(CreateAndUpdate, EventsAreTheSameInBothGroups) {
  const api::Resource core{"", "v1", "Event", "events", true};
  const api::Resource newer{"events.k8s.io", "v1", "Event", "events", true};
  in(newer).create(from_json(
      R"({"metadata":{"name":"e"},"regarding":{"kind":"Pod","name":"p","namespace":"default"},
          "note":"hello","reason":"Because","reportingController":"me","reportingInstance":"me-1",
          "action":"Look","type":"Normal","eventTime":"2026-01-02T03:04:05.000006Z"})"));
  const Object event = in(core).get("e");
  EXPECT_EQ(event.api_version(), "v1");
  EXPECT_EQ(event["message"].as_string(), "hello");
  EXPECT_EQ(event["involvedObject"]["name"].as_string(), "p");
  EXPECT_EQ(event["reportingComponent"].as_string(), "me");
  rest::ListOptions by_object;
  by_object.field_selector = "involvedObject.name=p";
  EXPECT_EQ(in(core).list(by_object).items.size(), 1u);
  by_object.field_selector = "regarding.name=p,reportingController=me";
  const auto found = in(newer).list(by_object);
  ASSERT_EQ(found.items.size(), 1u);
  EXPECT_EQ(found.items[0]["note"].as_string(), "hello");
  EXPECT_EQ(found.items[0].api_version(), "events.k8s.io/v1");

  // An event recorder increments the count of repeated events; other fields are kept, even with nulls.
  const Object counted = in(newer).update(
      changed(in(newer).get("e"),
              R"({"series":{"count":2,"lastObservedTime":"2026-01-02T03:05:05.000006Z"},
          "deprecatedFirstTimestamp":null,"deprecatedSource":null,"unknown":1})"));
  EXPECT_EQ(counted["series"]["count"].as_int(), 2);
  EXPECT_EQ(status_of([&] { in(newer).update(changed(counted, R"({"reason":"Other"})")); }).message,
            "Event \"e\" is invalid: reason: Invalid value: \"Other\": field is immutable");
}

TEST_F(CreateAndUpdate, TheParametersOfAnIngressClassAreClusterScopedByDefault) {
  const api::Resource classes{"networking.k8s.io", "v1", "IngressClass", "ingressclasses", false};
  const Object created = all(classes).create(from_json(
      R"({"metadata":{"name":"i"},"spec":{"controller":"example.com/c",
          "parameters":{"kind":"K","name":"k"}}})"));
  EXPECT_EQ(created["spec"]["parameters"]["scope"].as_string(), "Cluster");
}

TEST_F(CreateAndUpdate, ANullIsTheEmptyValueOfAListOrMap) {
  const auto create = [&](const std::string& path, const std::string& object) {
    const auto answer = http(server_.port(), "POST", path, object);
    EXPECT_EQ(answer.code, 201) << answer.body;
    return from_json(answer.body);
  };
  const std::string ns = "/api/v1/namespaces/default/";
  const Object policy =
      create("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
             R"({"metadata":{"name":"a","labels":{"team":null},"annotations":null},
          "spec":{"podSelector":{"matchLabels":{"app":null}}}})");
  EXPECT_EQ(policy["metadata"]["labels"].to_json(), R"({"team":""})");
  EXPECT_FALSE(policy["metadata"].contains("annotations"));
  EXPECT_EQ(policy["spec"]["podSelector"].to_json(), R"({"matchLabels":{"app":""}})");
  const Object made = create(
      ns + "pods", R"({"metadata":{"name":"a"},"spec":{"nodeSelector":{"a":null},"volumes":null,
          "containers":[{"name":"c","image":"i","command":[null],"resources":{"limits":{"cpu":null}},
          "env":null,"ports":null}]}})");
  const api::Value container = made["spec"]["containers"][0];
  EXPECT_EQ(container["command"].to_json(), R"([""])");
  EXPECT_EQ(container["resources"]["limits"].to_json(), R"({"cpu":"0"})");
  EXPECT_EQ(made["spec"]["nodeSelector"].to_json(), R"({"a":""})");
  EXPECT_FALSE(container["env"].exists());
  const Object secret = create(
      ns + "secrets", R"({"metadata":{"name":"a"},"data":{"a":null},"stringData":{"b":null}})");
  EXPECT_EQ(secret["data"].to_json(), R"({"a":"","b":""})");
  // The last field of a revision is JSON of any kind.
  const Object revision =
      create("/apis/apps/v1/namespaces/default/controllerrevisions",
             R"({"metadata":{"name":"a"},"revision":1,"data":{"a":null,"b":[null]}})");
  EXPECT_EQ(revision["data"].to_json(), R"({"a":null,"b":[null]})");
  const Object patched =
      from_json(http(server_.port(), "PATCH", ns + "pods/a",
                     R"([{"op":"add","path":"/metadata/labels","value":{"t":null}}])",
                     {{"Content-Type", "application/json-patch+json"}})
                    .body);
  EXPECT_EQ(patched["metadata"]["labels"].to_json(), R"({"t":""})");
}

TEST_F(CreateAndUpdate, AnAppliedNullIsOwnedAndStored) {
  const auto answer = http(
      server_.port(), "PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=m",
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":null,"b":"1"}})",
      {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(lookout::test::held(from_json(answer.body))["data"].to_json(), R"({"a":"","b":"1"})");
}

TEST_F(CreateAndUpdate, SomeKindsAreUpdatedOnlyWithAVersion) {
  const std::string classes = "/apis/node.k8s.io/v1/runtimeclasses";
  const std::string object = R"({"metadata":{"name":"a"},"handler":"h"})";
  // A runtime class may also be created by a PUT.
  EXPECT_EQ(http(server_.port(), "PUT", classes + "/a", object).code, 201);
  const auto put_twice = [&](const std::string& path, const std::string& body) {
    EXPECT_EQ(http(server_.port(), "POST", path, body).code, 201) << path;
    const auto answer = http(server_.port(), "PUT", path + "/a", body);
    EXPECT_EQ(answer.code, 422) << path;
    return answer.body.find("must be specified for an update") != std::string::npos;
  };
  EXPECT_EQ(http(server_.port(), "PUT", classes + "/a", object).code, 422);
  const std::string storage = "/apis/storage.k8s.io/v1/";
  EXPECT_TRUE(put_twice(storage + "csidrivers", R"({"metadata":{"name":"a"},"spec":{}})"));
  EXPECT_TRUE(
      put_twice(storage + "csinodes", R"({"metadata":{"name":"a"},"spec":{"drivers":[]}})"));
  EXPECT_TRUE(put_twice(storage + "volumeattachments",
                        R"({"metadata":{"name":"a"},"spec":{"attacher":"x","nodeName":"n",
                            "source":{"persistentVolumeName":"v"}}})"));
  EXPECT_TRUE(put_twice(storage + "namespaces/default/csistoragecapacities",
                        R"({"metadata":{"name":"a"},"storageClassName":"c"})"));
}

TEST_F(CreateAndUpdate, AdmissionPoliciesHaveDefaultSelectors) {
  // A server that reads these policies rejects every request if a selector is missing.
  const api::Resource policies("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
                               "validatingadmissionpolicies", false);
  const Object policy = all(policies).create(from_json(
      R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy",
          "metadata":{"name":"p"},"spec":{"validations":[{"expression":"true"}],
          "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],
          "operations":["UPDATE"],"resources":["pods"]}]}}})"));
  const api::Value match = policy["spec"]["matchConstraints"];
  EXPECT_EQ(policy["spec"]["failurePolicy"].as_string(), "Fail");
  EXPECT_EQ(match["matchPolicy"].as_string(), "Equivalent");
  EXPECT_EQ(match["namespaceSelector"].to_json(), "{}");
  EXPECT_EQ(match["objectSelector"].to_json(), "{}");
  EXPECT_EQ(match["resourceRules"][0]["scope"].as_string(), "*");
}

TEST_F(CreateAndUpdate, EmptyMapsAreNotWritten) {
  const api::Object made =
      in(kConfigMaps).create(from_json(R"({"metadata":{"name":"a"},"data":{}})"));
  EXPECT_FALSE(made["data"].exists());
  in(kConfigMaps).create(config_map("b"));
  const api::Object emptied =
      in(kConfigMaps).patch("b", rest::PatchType::kMerge, R"({"data":{"key":null}})");
  EXPECT_FALSE(emptied["data"].exists());
  // Absent fields have no owner.
  EXPECT_EQ(emptied["metadata"]["managedFields"].to_json().find("f:data"), std::string::npos);
}

TEST_F(CreateAndUpdate, AGeneratedNameThatExistsIsRetried) {
  const Object wanted = from_json(R"({"metadata":{"name":"c","generateName":"c-"}})");
  in(kConfigMaps).create(wanted);
  const auto answer = http(server_.port(), "POST", kConfigMapsPath, wanted.to_json(), kJsonBody);
  EXPECT_EQ(answer.code, 409);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  const auto status = api::Status::from(from_json(answer.body));
  EXPECT_EQ(status->reason, "AlreadyExists");
  EXPECT_EQ(status->retry_after_seconds, 1);
  EXPECT_EQ(
      status->message,
      "configmaps \"c\" already exists, the server was not able to generate a unique name for "
      "the object");
}

TEST_F(CreateAndUpdate, DuplicateOwnersAreRemovedWithAWarning) {
  const std::string owner = R"({"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":")" +
                            std::string(in(kConfigMaps).create(config_map("o")).uid()) + R"("})";
  const std::string controller = changed(from_json(owner), R"({"controller":true})").to_json();
  const std::string three = "[" + owner + "," + controller + "," + owner + "]";
  const auto send = [&](const char* method, const std::string& path, const std::string& body,
                        const char* type, int code) {
    const auto answer = http(server_.port(), method, path, body, {{"Content-Type", type}});
    EXPECT_EQ(answer.code, code) << answer.body;
    EXPECT_EQ(lookout::test::held(from_json(answer.body))["metadata"]["ownerReferences"].size(),
              2u);
    return answer.headers.at("warning");
  };
  const std::string path = std::string(kConfigMapsPath) + "/c";
  const std::string body = R"({"metadata":{"name":"c","ownerReferences":)" + three + "}}";
  const std::string rest =
      "; API server dedups owner references in 1.20+, and may reject such requests as early as "
      "1.24; please fix your requests; duplicate UID(s) observed: " +
      std::string(lookout::test::held(from_json(owner))["uid"].as_string()) + "\"";
  const std::string begin = "299 - \".metadata.ownerReferences contains duplicate entries";
  EXPECT_EQ(send("POST", kConfigMapsPath, body, "application/json", 201), begin + rest);
  EXPECT_EQ(send("PUT", path, body, "application/json", 200), begin + rest);
  EXPECT_EQ(send("PATCH", path, body, "application/merge-patch+json", 200),
            begin + " after mutating admission happens" + rest);
}

}  // namespace
}  // namespace lookout::apiserver
