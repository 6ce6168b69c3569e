// The bytes that the Go libraries send and read, compared with those of this library. A Go program
// in tests/interop/go prints the same (go_interop_test.cc).
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include "lookout/k8s/core/v1.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;

// --------------------------------------------------------------------------------------- kratos

/// A registration, and the strategic merge patch that kratos' Register sends for it. Go prints maps
/// in any order; here they have the order of kratos' source.
struct Registration {
  const char* what;
  ServiceInstance instance;
  const char* patch;
  std::vector<std::string> found_at;  // the endpoints that discovery derives from it
};

class KratosWireTest : public testing::TestWithParam<Registration> {
 protected:
  KratosWireTest() {
    PodTemplate pod;
    pod.labels = {{"app", "hello"}};
    pod.ports = R"([{"containerPort":80},{"containerPort":9000,"name":"grpc-main"}])";
    pod.ip = "10.1.2.3";
    cluster_.create_pod("hello", pod);
  }

  ServiceInstance expected() const {
    ServiceInstance out = GetParam().instance;
    out.endpoints.assign(GetParam().found_at.begin(), GetParam().found_at.end());
    return out;
  }

  Cluster cluster_;
};

TEST_P(KratosWireTest, RegistrationsOfKratosAreFound) {
  const auto before = cluster_.pods().get("hello");
  cluster_.pods().patch("hello", rest::PatchType::kStrategicMerge, GetParam().patch);
  const auto after = cluster_.pods().get("hello");
  // The null that Go prints for an unset time must not remove the pod's timestamp.
  EXPECT_EQ(after["metadata"]["creationTimestamp"].as_string(),
            before["metadata"]["creationTimestamp"].as_string());
  EXPECT_EQ(after.labels()["app"].as_string(), "hello");

  kratos::Registry registry(cluster_.client());
  if (GetParam().instance.name.empty()) {
    EXPECT_THAT(registry.services(), ElementsAre());
    return;
  }
  const auto set = registry.get_service(GetParam().instance.name);
  ASSERT_EQ(set->size(), 1u);
  EXPECT_EQ((*set)[0], expected());
}

TEST_P(KratosWireTest, SendsTheSamePatch) {
  rapidjson::Document theirs;
  theirs.Parse(GetParam().patch);
  ASSERT_FALSE(theirs.HasParseError());
  // Everything except the null, which has no meaning.
  ASSERT_TRUE(theirs["metadata"].RemoveMember("creationTimestamp"));
  rapidjson::Document ours;
  ours.Parse((GetParam().instance.name.empty() ? kratos::deregistration_patch()
                                               : kratos::registration_patch(GetParam().instance))
                 .c_str());
  // The annotations are JSON in JSON: compare their values, not their spelling.
  for (auto* patch : {&theirs, &ours}) {
    for (auto& annotation : (*patch)["metadata"]["annotations"].GetObject()) {
      rapidjson::Document inner(&patch->GetAllocator());
      inner.Parse(annotation.value.GetString());
      ASSERT_FALSE(inner.HasParseError()) << annotation.value.GetString();
      annotation.value = inner.IsNull() ? rapidjson::Value(rapidjson::kObjectType)
                                        : rapidjson::Value(inner, patch->GetAllocator());
    }
  }
  EXPECT_EQ(ours, theirs);
}

INSTANTIATE_TEST_SUITE_P(
    , KratosWireTest,
    testing::Values(
        Registration{
            "Plain",
            {.id = "1", .name = "hello", .version = "v1.0.0", .endpoints = {"http://127.0.0.1:80"}},
            // kratos' metadata is a null map here.
            R"({"metadata":{"creationTimestamp":null,"labels":{"kratos-service-id":"1","kratos-service-app":"hello","kratos-service-version":"v1.0.0"},"annotations":{"kratos-service-metadata":"null","kratos-service-protocols":"{\"80\":\"http\"}"}}})",
            {"http://10.1.2.3:80", "grpc://10.1.2.3:9000"}},
        Registration{
            "TwoEndpoints",
            {.id = "56991810-c77f-4a95-8190-393efa9c1a61",
             .name = "hello",
             .version = "v1.0.0",
             .metadata = {{"zone", "sh001"}, {"region", "sh"}},
             .endpoints = {"http://127.0.0.1:80", "grpcs://[::]:9000?isSecure=true"}},
            R"({"metadata":{"creationTimestamp":null,"labels":{"kratos-service-id":"56991810-c77f-4a95-8190-393efa9c1a61","kratos-service-app":"hello","kratos-service-version":"v1.0.0"},"annotations":{"kratos-service-metadata":"{\"zone\":\"sh001\",\"region\":\"sh\"}","kratos-service-protocols":"{\"80\":\"http\",\"9000\":\"grpcs\"}"}}})",
            {"http://10.1.2.3:80", "grpcs://10.1.2.3:9000"}},
        Registration{
            "CharactersThatGoEscapes",
            {.id = "1", .name = "hello", .metadata = {{"a<b>", "x&y \"z\" \\ \u00e9\u2028"}}},
            R"({"metadata":{"creationTimestamp":null,"labels":{"kratos-service-id":"1","kratos-service-app":"hello","kratos-service-version":""},"annotations":{"kratos-service-metadata":"{\"a\\u003cb\\u003e\":\"x\\u0026y \\\"z\\\" \\\\ )"
            "\u00e9"
            R"(\\u2028\"}","kratos-service-protocols":"{}"}}})",
            {"TCP://10.1.2.3:80", "grpc://10.1.2.3:9000"}},
        Registration{
            "Deregistration",
            {},
            R"({"metadata":{"creationTimestamp":null,"labels":{"kratos-service-id":"","kratos-service-app":"","kratos-service-version":""},"annotations":{"kratos-service-metadata":"{}","kratos-service-protocols":"{}"}}})",
            {}}),
    [](const auto& test) { return test.param.what; });

TEST(KratosWire, PodsOfTheExampleDeploymentAreFound) {
  // The Deployment of kratos' package documentation, and pods as the Deployment controller creates
  // them.
  Cluster cluster;
  const auto deployment = api::Object::parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
      "metadata":{"name":"nginx","labels":{"app":"nginx"}},
      "spec":{"replicas":5,"selector":{"matchLabels":{"app":"nginx"}},
       "template":{
        "metadata":{
         "labels":{"app":"nginx","kratos-service-id":"56991810-c77f-4a95-8190-393efa9c1a61",
                   "kratos-service-app":"nginx","kratos-service-version":"v3.5.0"},
         "annotations":{"kratos-service-protocols":"{\"80\": \"http\"}\n",
                        "kratos-service-metadata":"{\"region\": \"sh\", \"zone\": \"sh001\", \"cluster\": \"pd\"}\n"}},
        "spec":{"containers":[{"name":"nginx","image":"nginx:1.7.9","ports":[{"containerPort":80}]}]}}}})");
  const auto created =
      cluster.client()
          .resource(api::Resource("apps", "v1", "Deployment", "deployments", true), "default")
          .create(deployment);
  const auto pod_template = created["spec"]["template"];
  const auto replicas = created["spec"]["replicas"].as_int();
  for (std::int64_t i = 0; i < replicas; ++i) {
    rapidjson::Document pod = api::Object::parse(pod_template.to_json()).to_document();
    const std::string name = "nginx-" + std::to_string(i);
    pod["metadata"].AddMember("name", rapidjson::Value(name.c_str(), pod.GetAllocator()),
                              pod.GetAllocator());
    cluster.pods().create(api::Object::from(pod));
    cluster.set_status(name, "10.244.0." + std::to_string(i + 1), "Running", true);
  }
  kratos::Registry registry(cluster.client());
  const auto set = registry.get_service("nginx");
  ASSERT_EQ(set->size(), 5u);
  for (const auto& instance : *set) {
    EXPECT_EQ(instance.id, "56991810-c77f-4a95-8190-393efa9c1a61");
    EXPECT_EQ(instance.version, "v3.5.0");
    EXPECT_EQ(instance.metadata.at("cluster"), "pd");
    EXPECT_EQ(instance.zone, "sh001");
    EXPECT_THAT(instance.endpoints, ElementsAre(testing::MatchesRegex("http://10.244.0.[1-5]:80")));
  }
}

// --------------------------------------------------------------------------------------- dubbo

TEST(DubboWire, PatchesOfGoAndOfThisLibraryCombine) {
  // dubbo-go's patch is the difference of two pods with only labels or annotations.
  Cluster cluster;
  cluster.create_pod("p", {});
  const auto go = [&](const char* patch) {
    cluster.pods().patch("p", rest::PatchType::kStrategicMerge, patch);
  };
  go(R"({"metadata":{"labels":{"dubbo.io/label":"dubbo.io.provider"}}})");
  // [{"k":"/dubbo/a/providers","v":""}]
  go(R"({"metadata":{"annotations":{"dubbo.io/annotation":"W3siayI6Ii9kdWJiby9hL3Byb3ZpZGVycyIsInYiOiIifV0="}}})");

  dubbo::ClientOptions options;
  options.pod = {"default", "p"};
  options.namespaces = {"default"};
  options.role = dubbo::Role::kProvider;
  dubbo::Client client(cluster.client(), options);
  client.create("/dubbo/b/providers", "tri://10.0.0.1:20000?x=<&>");
  EXPECT_THAT(client.get_children("/dubbo"),
              ElementsAre(dubbo::Record{"/dubbo/a/providers", ""},
                          dubbo::Record{"/dubbo/b/providers", "tri://10.0.0.1:20000?x=<&>"}));
  const auto pod = cluster.pods().get("p");
  EXPECT_EQ(pod.labels()["dubbo.io/label"].as_string(), "dubbo.io.provider");
  // Go's encoder escapes the last three characters as \u003c \u0026 \u003e, and reads both
  // spellings.
  EXPECT_EQ(pod.annotations()["dubbo.io/annotation"].as_string(),
            "W3siayI6Ii9kdWJiby9hL3Byb3ZpZGVycyIsInYiOiIifSx7ImsiOiIvZHViYm8vYi9wcm92aWRlcnMiLCJ2Ij"
            "oidHJpOi8vMTAuMC4wLjE6MjAwMDA_eD08Jj4ifV0=");
  EXPECT_THAT(dubbo::decode_records("W3siayI6ImEiLCJ2IjoiXHUwMDNjXHUwMDI2XHUwMDNlIn1d").records,
              ElementsAre(dubbo::Record{"a", "<&>"}));
}

}  // namespace
}  // namespace lookout::registry
