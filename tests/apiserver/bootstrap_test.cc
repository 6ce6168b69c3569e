// The initial objects of a new server, compared with those of a kube-apiserver 1.36.
#include "apiserver/bootstrap/bootstrap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apiserver/json.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/memory.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/test_webhook.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using testing::ElementsAre;

constexpr const char* kFlowControl = "flowcontrol.apiserver.k8s.io";
const api::Resource kFlowSchemas{kFlowControl, "v1", "FlowSchema", "flowschemas", false};
const api::Resource kLevels{kFlowControl, "v1", "PriorityLevelConfiguration",
                            "prioritylevelconfigurations", false};
const api::Resource kApiServices{"apiregistration.k8s.io", "v1", "APIService", "apiservices",
                                 false};

/// Without server-specific values: times, uids, versions.
json::Document comparable(const Object& object) {
  json::Document document = object.to_document();
  for (const char* field : {"apiVersion", "kind"}) json::erase(document, field);
  json::Value& metadata = *json::find(document, "metadata");
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp"})
    json::erase(metadata, field);
  json::for_each(metadata, "managedFields", [](json::Value& entry) { json::erase(entry, "time"); });
  if (json::Value* status = json::find(document, "status")) {
    json::for_each(*status, "conditions",
                   [](json::Value& one) { json::erase(one, "lastTransitionTime"); });
  }
  if (json::Value* data = json::find(document, "data"); data && json::find(*data, "client-ca-file"))
    json::set(*data, "client-ca-file", "", document.GetAllocator());
  return document;
}

/// Fields that external controllers set in Kubernetes, and this server itself.
void take_aggregated_rules(json::Document& role) {
  if (json::find(role, "aggregationRule") == nullptr) return;
  ASSERT_NE(json::find(role, "rules"), nullptr);
  json::erase(role, "rules");
  json::Value& entries = *json::find(*json::find(role, "metadata"), "managedFields");
  const Object first = Object::from(entries[0]);
  EXPECT_EQ(first["manager"].as_string(), "clusterrole-aggregation-controller");
  EXPECT_EQ(first["operation"].as_string(), "Apply");
  EXPECT_EQ(first["fieldsV1"].to_json(), R"({"f:rules":{}})");
  entries.Erase(entries.Begin());
}

std::string path_of(const Object& recorded) {
  const std::string resource(recorded["resource"].as_string());
  const std::size_t slash = resource.rfind('/');
  const Object object = Object::parse(recorded["object"].to_json());
  const std::string version = resource.substr(0, slash);
  std::string out = version.find('/') == std::string::npos ? "/api/" : "/apis/";
  out += version + "/";
  if (!object.ns().empty()) out += fmt::format("namespaces/{}/", object.ns());
  return out + fmt::format("{}/{}", resource.substr(slash + 1), object.name());
}

/// Replaces values of the recorded server.
std::string adapted(std::string text, std::uint16_t port) {
  const std::map<std::string, std::string> other = {{"10.9.8.7", "127.0.0.1"},
                                                    {":16443", fmt::format(":{}", port)}};
  for (const auto& [from, to] : other) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

struct Recording {
  std::string path;
  Object object;
};

std::vector<Recording> recordings(std::uint16_t port) {
  std::vector<Recording> out;
  const std::string text = test::read_file(test::testdata("kube-1.36/bootstrap.jsonl"));
  for (const std::string& line : test::lines(text)) {
    const Object recorded = Object::parse(adapted(line, port));
    out.push_back({path_of(recorded), Object::parse(recorded["object"].to_json())});
  }
  return out;
}

constexpr const char* kEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes";

TEST(Bootstrap, ANewServerHasTheObjectsOfKubernetes) {
  const test::TempDir dir;
  const test::CertificateAuthority authority;
  const test::KeyPair pair = authority.issue_local();
  ServerOptions options;
  options.bootstrap = true;
  options.tls_cert_file = (dir / "server.crt").string();
  options.tls_key_file = (dir / "server.key").string();
  options.client_ca_file = (dir / "ca.crt").string();
  test::write_file(options.tls_cert_file, pair.certificate);
  test::write_file(options.tls_key_file, pair.key);
  test::write_file(options.client_ca_file, authority.certificate());
  const Server server(options);
  rest::Config config = server.client_config();
  config.ca_file.clear();
  config.ca_data = authority.certificate();
  const rest::Client client(config);
  const std::vector<Recording> all = recordings(server.port());
  EXPECT_EQ(all.size(), 185U);
  for (const Recording& recorded : all) {
    // The server's address is a loopback address, so it has no endpoints.
    if (recorded.path == kEndpoints) continue;
    SCOPED_TRACE(recorded.path);
    json::Document ours = comparable(Object::parse(client.get_raw(recorded.path)));
    take_aggregated_rules(ours);
    const json::Document theirs = comparable(recorded.object);
    EXPECT_TRUE(ours == theirs) << Object::from(ours).to_json() << "\n"
                                << recorded.object.to_json();
  }
}

TEST(Bootstrap, TheKubernetesServiceHasEndpointsUnlessTheAddressIsLoopback) {
  storage::MemoryBackend backend;
  resources::ResourceRegistry registry(backend);
  const auto find = [&](const char* plural) { return registry.table()->find("", "v1", plural); };
  const resources::Store store(find("namespaces"));
  const controllers::Spawn spawn;
  const controllers::Context context{registry, store, spawn};
  const auto run = [](Awaitable<void> task) {
    boost::asio::io_context loop;
    std::exception_ptr failure;
    boost::asio::co_spawn(loop, std::move(task), [&](std::exception_ptr e) { failure = e; });
    loop.run();
    if (failure) std::rethrow_exception(failure);
  };
  Object endpoints;
  const auto write_and_read = [&](std::string address, int port) -> Awaitable<void> {
    const resources::Target ns{find("namespaces"), "", "default"};
    const Object present = co_await ns.resource->storage->get("default");
    Object created = Object::parse(R"({"metadata":{"name":"default"}})");
    if (!present) co_await store.create(ns, created);
    co_await bootstrap::create_kubernetes_service(context, "10.0.0.1", address, port, true);
    const resources::ServedResourcePtr resource = find("endpoints");
    endpoints = co_await resource->storage->get("default/kubernetes");
  };
  run(write_and_read("127.0.0.1", 16443));
  EXPECT_FALSE(endpoints);
  run(write_and_read("10.9.8.6", 16443));
  run(write_and_read("10.9.8.7", 16443));
  ASSERT_TRUE(endpoints);
  for (const Recording& recorded : recordings(16443)) {
    if (recorded.path != kEndpoints) continue;
    const std::string theirs = Object::from(comparable(recorded.object)).to_json();
    const auto address = endpoints["subsets"][0]["addresses"][0]["ip"].as_string();
    EXPECT_EQ(address, "10.9.8.7");
    EXPECT_EQ(adapted(Object::from(comparable(endpoints)).to_json(), 16443), theirs);
  }
}

ServerOptions with_bootstrap() {
  ServerOptions options;
  options.bootstrap = true;
  options.storage = std::make_shared<storage::MemoryBackend>();
  return options;
}

class BootstrapTest : public testing::Test {
 protected:
  rest::ResourceClient all(const api::Resource& resource) const {
    return client_.resource(resource);
  }

  /// The status, reason and message of the condition Dangling.
  std::string dangling(const std::string& schema) const {
    const Object object = all(kFlowSchemas).get(schema);
    const api::Value condition = object["status"]["conditions"][0];
    return fmt::format("{} {}: {}", condition["status"].as_string(),
                       condition["reason"].as_string(), condition["message"].as_string());
  }

  const Server server_{with_bootstrap()};
  const rest::Client client_{server_.client_config()};
};

TEST_F(BootstrapTest, FlowSchemasReportMissingLevels) {
  all(kFlowSchemas).create(Object::parse(R"({"metadata":{"name":"mine"},"spec":{
      "priorityLevelConfiguration":{"name":"later"},"rules":[{"subjects":[{"kind":"User",
      "user":{"name":"bob"}}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}})"));
  const std::string object = "This FlowSchema references the PriorityLevelConfiguration object ";
  EXPECT_TRUE(eventually([&] {
    return dangling("mine") ==
           "True NotFound: " + object + "named \"later\" but there is no such object";
  })) << dangling("mine");
  all(kLevels).create(Object::parse(R"({"metadata":{"name":"later"},"spec":{"type":"Limited",
      "limited":{"nominalConcurrencyShares":1,"limitResponse":{"type":"Reject"}}}})"));
  EXPECT_TRUE(eventually([&] {
    return dangling("mine") == "False Found: " + object + "named \"later\" and it exists";
  })) << dangling("mine");
  all(kLevels).remove("later");
  EXPECT_TRUE(eventually([&] { return dangling("mine").starts_with("True"); }));
}

TEST_F(BootstrapTest, ATableHasFlowSchemasInMatchingOrder) {
  const HttpAnswer answer =
      http(server_.port(), "GET", fmt::format("/apis/{}/v1/flowschemas", kFlowControl), "",
           {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  const Object table = Object::parse(answer.body);
  std::vector<std::string> names;
  for (const api::Value row : table["rows"].elements())
    names.emplace_back(row["cells"][0].as_string());
  EXPECT_THAT(names, ElementsAre("exempt", "probes", "system-leader-election", "system-node-high",
                                 "system-nodes", "kube-controller-manager", "kube-scheduler",
                                 "kube-system-service-accounts", "service-accounts",
                                 "global-default", "catch-all"));
  EXPECT_EQ(table["rows"][10]["cells"][5].as_string(), "False");
}

TEST_F(BootstrapTest, CustomResourcesHaveApiServices) {
  all(kDefinitions).create(Object::parse(R"({"metadata":{"name":"things.example.com"},
      "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
        "versions":[{"name":"v1","served":true,"storage":true,
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  const auto exists = [&] {
    try {
      return !all(kApiServices).get("v1.example.com").uid().empty();
    } catch (const api::StatusError&) {
      return false;
    }
  };
  EXPECT_TRUE(eventually(exists));
  const Object service = all(kApiServices).get("v1.example.com");
  EXPECT_EQ(service["metadata"]["labels"].to_json(),
            R"({"kube-aggregator.kubernetes.io/automanaged":"true"})");
  EXPECT_EQ(service["spec"]["groupPriorityMinimum"].as_int(), 1000);
  EXPECT_EQ(service["spec"]["versionPriority"].as_int(), 100);
  EXPECT_EQ(service["status"]["conditions"][0]["reason"].as_string(), "Local");
  all(kApiServices).remove("v1.example.com");
  EXPECT_TRUE(eventually(exists));
  all(kDefinitions).remove("things.example.com");
  EXPECT_TRUE(eventually([&] { return !exists(); }));
}

TEST(Bootstrap, ApiServicesOfOtherServersAreCheckedAgainAndAgain) {
  TestWebhook other([](const Object& review) { return allowed(review); });
  ServerOptions options;
  options.bootstrap = true;
  options.resolve_service = [&](const std::string& /*ns*/, const std::string& /*name*/, int) {
    return std::optional(fmt::format("127.0.0.1:{}", other.port()));
  };
  const Server server(options);
  const rest::Client client(server.client_config());
  const rest::ResourceClient registrations = client.resource(kApiServices);
  const rest::ResourceClient services = client.resource(kServices, "default");
  const rest::ResourceClient slices = client.resource(
      {"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true}, "default");
  const auto condition = [&] {
    const Object service = registrations.get("v1.metrics.example.com");
    const api::Value one = service["status"]["conditions"][0];
    return fmt::format("{} {} {}: {}", one["type"].as_string(), one["status"].as_string(),
                       one["reason"].as_string(), one["message"].as_string());
  };
  const auto becomes = [&](const std::string& wanted) {
    EXPECT_TRUE(eventually([&] { return condition() == wanted; })) << condition();
  };
  const auto slice = [&](const char* ready) {
    return Object::parse(fmt::format(
        R"({{"metadata":{{"name":"metrics","labels":{{"kubernetes.io/service-name":"metrics"}}}},)"
        R"("addressType":"IPv4","ports":[{{"port":6443}}],)"
        R"("endpoints":[{{"addresses":["10.1.2.3"],"conditions":{{"ready":{}}}}}]}})",
        ready));
  };
  registrations.create(Object::parse(R"({"metadata":{"name":"v1.metrics.example.com"},
      "spec":{"group":"metrics.example.com","version":"v1","groupPriorityMinimum":100,
        "versionPriority":100,"insecureSkipTLSVerify":true,
        "service":{"namespace":"default","name":"metrics"}}})"));
  becomes("Available False ServiceNotFound: service/metrics in \"default\" is not present");
  const Object made = services.create(
      Object::parse(R"({"metadata":{"name":"metrics"},"spec":{"ports":[{"port":80}]}})"));
  becomes(
      "Available False ServicePortError: service/metrics in \"default\" is not listening on port "
      "443");
  services.update(
      json_patched(made.to_json(), R"({"op":"replace","path":"/spec/ports/0/port","value":443})"));
  becomes(
      "Available False EndpointsNotFound: cannot find endpointslices for service/metrics in "
      "\"default\"");
  slices.create(slice("false"));
  becomes(
      "Available False MissingEndpoints: endpointslices for service/metrics in \"default\" have no "
      "addresses with port name \"\"");
  other.answer_get_with(503);
  slices.update(slice("true"));
  const std::string url =
      fmt::format("https://127.0.0.1:{}/apis/metrics.example.com/v1", other.port());
  becomes(
      fmt::format("Available False FailedDiscoveryCheck: failing or missing response from {0}: "
                  "bad status from {0}: 503",
                  url));
  // Nothing changes here, so this needs another check.
  other.answer_get_with(200);
  becomes("Available True Passed: all checks passed");
  EXPECT_EQ(other.latest_target(), "/apis/metrics.example.com/v1");
  services.remove("metrics");
  becomes("Available False ServiceNotFound: service/metrics in \"default\" is not present");
  const Object remote = registrations.get("v1.metrics.example.com");
  const api::Value owner = remote["metadata"]["managedFields"][1];
  EXPECT_EQ(owner["manager"].as_string(), "kube-apiserver");
  EXPECT_EQ(owner["subresource"].as_string(), "status");
  // An APIService without a service is one of this server.
  registrations.update(json_patched(remote.to_json(),
                                    R"({"op":"remove","path":"/spec/service"},)"
                                    R"({"op":"remove","path":"/spec/insecureSkipTLSVerify"})"));
  becomes("Available True Local: Local APIServices are always available");
}

TEST(Bootstrap, TheNextServerKeepsCorrectObjects) {
  const ServerOptions options = with_bootstrap();
  const auto versions = [&] {
    std::map<std::string, std::string> out;
    const Server server(options);
    const rest::Client client(server.client_config());
    for (const Recording& recorded : recordings(server.port())) {
      if (recorded.path == kEndpoints || recorded.object["data"].exists()) continue;
      // The server has another port.
      if (recorded.path.find("default/endpointslices") != std::string::npos) continue;
      const Object object = Object::parse(client.get_raw(recorded.path));
      out.emplace(recorded.path, object.resource_version());
    }
    return out;
  };
  const auto before = versions();
  EXPECT_EQ(versions(), before);
}

TEST(Bootstrap, TheNextServerRepairsFlowControl) {
  const ServerOptions options = with_bootstrap();
  const char* annotation = "apf.kubernetes.io/autoupdate-spec";
  const auto shares = [](const Object& level) {
    return level["spec"]["limited"]["nominalConcurrencyShares"].as_int();
  };
  {
    const Server server(options);
    const rest::Client client(server.client_config());
    const auto levels = client.resource(kLevels);
    const auto change = [&](const char* name, const std::string& metadata) {
      levels.patch(name, rest::PatchType::kMerge,
                   fmt::format(R"({{"metadata":{{{}}},"spec":{{"limited":{{)"
                               R"("nominalConcurrencyShares":77}}}}}})",
                               metadata));
    };
    const std::string no = fmt::format(R"("annotations":{{"{}":"false"}})", annotation);
    const std::string nothing = fmt::format(R"("annotations":{{"{}":null}})", annotation);
    EXPECT_THROW(change("catch-all", no), api::StatusError) << "it is mandatory";
    change("system", no);
    change("node-high", "");
    change("workload-low", nothing);
    levels.remove("global-default");
    levels.create(
        Object::parse(fmt::format(R"({{"metadata":{{"name":"old","annotations":{{"{}":"true"}}}},
        "spec":{{"type":"Limited","limited":{{"limitResponse":{{"type":"Reject"}}}}}}}})",
                                  annotation)));
    levels.create(Object::parse(R"({"metadata":{"name":"mine"},"spec":{"type":"Limited",
        "limited":{"limitResponse":{"type":"Reject"}}}})"));
  }
  const Server server(options);
  const auto levels = rest::Client(server.client_config()).resource(kLevels);
  EXPECT_EQ(shares(levels.get("catch-all")), 5);
  EXPECT_EQ(shares(levels.get("system")), 77);
  EXPECT_EQ(shares(levels.get("node-high")), 40);
  EXPECT_EQ(shares(levels.get("workload-low")), 77);
  EXPECT_EQ(held(levels.get("workload-low")).annotations()[annotation].as_string(), "false");
  EXPECT_EQ(shares(levels.get("global-default")), 20);
  EXPECT_THROW(levels.get("old"), api::StatusError);
  EXPECT_EQ(held(levels.get("mine")).name(), "mine");
}

TEST(Bootstrap, WithoutManagedFieldsRecordsNoOwners) {
  ServerOptions options = with_bootstrap();
  options.managed_fields = false;
  const Server server(options);
  const rest::Client client(server.client_config());
  for (const api::Resource& resource :
       {kNamespaces, kServices, kFlowSchemas, kLevels, kApiServices, kClusterRoles}) {
    for (const Object& object : client.resource(resource).list({}).items)
      EXPECT_FALSE(object["metadata"]["managedFields"].exists()) << object.to_json();
  }
}

}  // namespace
}  // namespace lookout::apiserver
