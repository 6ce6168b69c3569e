// The kratos registry against a server: its writes, look-ups and announcements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>

#include "lookout/api/status.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/notes.h"

namespace lookout::registry::kratos {
namespace {

using namespace registry::test;

class KratosTest : public testing::Test {
 protected:
  Registry registry(Options options = {}) {
    return Registry(cluster_.client(), std::move(options));
  }

  /// Options that record reports about malformed pods.
  Options reporting() {
    Options options;
    options.on_malformed = [this](const Malformed& malformed) {
      reports_.add(fmt::format("{}/{}: {}", malformed.ns, malformed.name, malformed.reason));
    };
    return options;
  }

  Cluster cluster_;
  lookout::test::Notes reports_;
};

// ------------------------------------------------------------------------------------ registering

Options on_pod(const std::string& name, const std::string& ns = "default") {
  Options options;
  options.pod = {ns, name};
  return options;
}

TEST_F(KratosTest, RegistersLikeKratos) {
  cluster_.create_pod("hello", {.labels = {{"app", "hello"}}, .annotations = {{"note", "stays"}}});
  Registry registry(cluster_.client(), on_pod("hello"));
  registry.register_instance(
      {.id = "1",
       .name = "hello",
       .version = "v1.0.0",
       .metadata = {{"zone", "sh001"}, {"region", "sh"}},
       .endpoints = {"http://127.0.0.1:80", "grpc://[::]:9000?isSecure=false"}});
  const auto pod = cluster_.pods().get("hello");
  EXPECT_EQ(pod.labels()["kratos-service-id"].as_string(), "1");
  EXPECT_EQ(pod.labels()["kratos-service-app"].as_string(), "hello");
  EXPECT_EQ(pod.labels()["kratos-service-version"].as_string(), "v1.0.0");
  EXPECT_EQ(pod.annotations()["kratos-service-metadata"].as_string(),
            R"({"region":"sh","zone":"sh001"})");
  EXPECT_EQ(pod.annotations()["kratos-service-protocols"].as_string(),
            R"({"80":"http","9000":"grpc"})");
  EXPECT_EQ(pod.labels()["app"].as_string(), "hello");
  EXPECT_EQ(pod.annotations()["note"].as_string(), "stays");

  registry.deregister_instance({});
  const auto after = cluster_.pods().get("hello");
  for (const char* label : {"kratos-service-id", "kratos-service-app", "kratos-service-version"}) {
    EXPECT_TRUE(after.labels()[label].exists()) << "kratos empties labels, it does not remove them";
    EXPECT_EQ(after.labels()[label].as_string(), "");
  }
  EXPECT_EQ(after.annotations()["kratos-service-metadata"].as_string(), "{}");
  EXPECT_EQ(after.annotations()["kratos-service-protocols"].as_string(), "{}");
  EXPECT_EQ(after.labels()["app"].as_string(), "hello");
}

TEST_F(KratosTest, RegistersWithOneRequest) {
  cluster_.create_pod("hello", {});
  Registry registry(cluster_.client(), on_pod("hello"));
  const auto before = cluster_.server().stats().requests;
  registry.register_instance({.name = "hello"});
  EXPECT_EQ(cluster_.server().stats().requests, before + 1) << "and it watches nothing";
}

TEST_F(KratosTest, ARegisteredServiceIsFound) {
  cluster_.create_pod("web-1", {.ip = "10.1.2.3"});
  Registry registry(cluster_.client(), on_pod("web-1"));
  auto watcher = registry.watch("web");
  const ServiceInstance instance{.id = "56991810-c77f-4a95-8190-393efa9c1a61",
                                 .name = "web",
                                 .version = "v3.5.0",
                                 .metadata = {{"zone", "sh001"}},
                                 .endpoints = {"http://0.0.0.0:80"}};
  registry.register_instance(instance);
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(set);
  ServiceInstance expected = instance;
  expected.endpoints = {"http://10.1.2.3:80"};
  EXPECT_EQ((*set)[0], expected);
  EXPECT_EQ((*set)[0].origin, "default/web-1");
  EXPECT_EQ((*set)[0].zone, "sh001");
  registry.deregister_instance(instance);
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.empty(); }));
}

TEST_F(KratosTest, CoroutinesRegisterWithoutOptions) {
  cluster_.create_pod("hello", {});
  Registry registry(cluster_.client(), on_pod("hello"));
  auto labels = boost::asio::co_spawn(
      cluster_.client().loop().context(),
      [&]() -> Awaitable<std::vector<std::string>> {
        const auto pods = cluster_.pods();
        const rest::GetOptions get;
        const rest::CallOptions call;
        std::vector<std::string> out;
        ServiceInstance instance;
        instance.name = "hello";
        co_await registry.async_register_instance(std::move(instance));
        const auto registered = co_await pods.async_get("hello", get, call);
        out.emplace_back(registered.labels()["kratos-service-app"].as_string());
        co_await registry.async_deregister_instance();
        const auto gone = co_await pods.async_get("hello", get, call);
        out.emplace_back(gone.labels()["kratos-service-app"].as_string());
        co_return out;
      },
      boost::asio::use_future);
  EXPECT_THAT(lookout::test::get(labels), ElementsAre("hello", ""));
}

struct Refused {
  const char* what;
  ServiceInstance instance;
  const char* rule;
};

class KratosRefusalTest : public KratosTest, public testing::WithParamInterface<Refused> {};

TEST_P(KratosRefusalTest, IsRejectedWithTheRule) {
  cluster_.create_pod("hello", {});
  Registry registry(cluster_.client(), on_pod("hello"));
  const auto before = cluster_.server().stats().requests;
  try {
    registry.register_instance(GetParam().instance);
    ADD_FAILURE() << "it was registered";
  } catch (const RegistrationError& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().rule));
    EXPECT_THAT(e.what(), Not(HasSubstr("secret")));
  }
  EXPECT_EQ(cluster_.server().stats().requests, before) << "nothing was sent";
}

INSTANTIATE_TEST_SUITE_P(
    , KratosRefusalTest,
    testing::Values(
        Refused{"NoName", {.id = "1"}, "the name is empty"},
        Refused{"OddName", {.name = "shop/web service"}, "alphanumeric"},
        Refused{"NameWithDash", {.name = "-web"}, "start and end with an alphanumeric"},
        Refused{"LongId", {.id = std::string(64, 'x'), .name = "web"}, "63"},
        Refused{"OddVersion", {.name = "web", .version = "1.0+build"}, "version"},
        Refused{"OddMetadata",
                {.name = "web", .metadata = {{"key", "\xff"}}},
                "metadata \"key\" is not UTF-8"},
        Refused{"NoUrl", {.name = "web", .endpoints = {"10.0.0.1"}}, "not a URL"},
        Refused{"NoPort", {.name = "web", .endpoints = {"http://10.0.0.1"}}, "no port"},
        Refused{"BadPort", {.name = "web", .endpoints = {"http://10.0.0.1:99999"}}, "not a URL"},
        Refused{"User",
                {.name = "web", .endpoints = {"http://user:secret@h:80"}},
                "\"http://...@h:80\" is not a URL: it names a user"},
        Refused{"TwoProtocols",
                {.name = "web", .endpoints = {"http://h:80", "grpc://h:80"}},
                "port 80 has two protocols, http and grpc"}),
    [](const auto& test) { return test.param.what; });

TEST_F(KratosTest, AMissingPodIsNotFound) {
  Registry registry(cluster_.client(), on_pod("nobody"));
  try {
    registry.register_instance({.name = "web"});
    ADD_FAILURE();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_not_found(e)) << e.what();
  }
}

// --------------------------------------------------------------------------------- pod identity

PodIdentitySources sources(std::map<std::string, std::string> environment,
                           const std::string& files = "/nonexistent") {
  return {.environment = [environment = std::move(environment)](
                             const std::string& name) -> std::optional<std::string> {
            const auto it = environment.find(name);
            return it == environment.end() ? std::nullopt : std::optional(it->second);
          },
          .downward_api_dir = "/nonexistent",
          .service_account_dir = files};
}

TEST(PodIdentityTest, UsesTheGivenIdentity) {
  EXPECT_EQ(PodIdentity::find({"shop", "web-1"}, "", sources({{"POD_NAME", "other"}})),
            (PodIdentity{"shop", "web-1"}));
}

TEST(PodIdentityTest, ReadsTheUsualVariables) {
  EXPECT_EQ(PodIdentity::find(
                {}, "",
                sources({{"POD_NAME", "web-1"}, {"HOSTNAME", "node"}, {"POD_NAMESPACE", "shop"}})),
            (PodIdentity{"shop", "web-1"}));
  EXPECT_EQ(PodIdentity::find({}, "fallback", sources({{"HOSTNAME", "web-2"}})),
            (PodIdentity{"fallback", "web-2"}));
}

TEST(PodIdentityTest, ReadsTheServiceAccountsNamespaceAndDownwardApiFiles) {
  const auto dir =
      std::filesystem::temp_directory_path() / fmt::format("lookout-pod-identity-{}", getpid());
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "namespace") << "shop\n";
  EXPECT_EQ(PodIdentity::find({}, "fallback", sources({{"HOSTNAME", "web-2"}}, dir)),
            (PodIdentity{"shop", "web-2"}));
  std::ofstream(dir / "name") << "web-3";
  PodIdentitySources files = sources({{"HOSTNAME", "node"}});
  files.downward_api_dir = dir;
  EXPECT_EQ(PodIdentity::find({}, "", files), (PodIdentity{"shop", "web-3"}));
  std::filesystem::remove_all(dir);
}

TEST(PodIdentityTest, NamesTheSearchedSources) {
  EXPECT_THAT([] { PodIdentity::find({}, "", sources({})); },
              testing::ThrowsMessage<Error>(
                  AllOf(HasSubstr("$POD_NAME"), HasSubstr("set one of them, or name the pod"))));
  EXPECT_THAT(
      [] {
        PodIdentity::find({"", "web"}, "", sources({}));
      },
      testing::ThrowsMessage<Error>(
          AllOf(HasSubstr("$POD_NAMESPACE"), HasSubstr("or give the namespace"))));
}

// ------------------------------------------------------------------------------------ finding

TEST_F(KratosTest, ReadsTheExampleOfKratosDocumentation) {
  // The template of the Deployment in the documentation of kratos' package, three times.
  for (int i = 1; i <= 3; ++i) {
    cluster_.create_pod(
        fmt::format("nginx-{}", i),
        {.labels = {{"app", "nginx"},
                    {"kratos-service-id", "56991810-c77f-4a95-8190-393efa9c1a61"},
                    {"kratos-service-app", "nginx"},
                    {"kratos-service-version", "v3.5.0"}},
         .annotations = {{"kratos-service-protocols", "{\"80\": \"http\"}\n"},
                         {"kratos-service-metadata",
                          "{\"region\": \"sh\", \"zone\": \"sh001\", \"cluster\": \"pd\"}\n"}},
         .ip = fmt::format("10.244.0.{}", i)});
  }
  auto found = registry().get_service("nginx");
  ASSERT_EQ(found->size(), 3u) << "pods of one template share the id";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*found)[i],
              (ServiceInstance{.id = "56991810-c77f-4a95-8190-393efa9c1a61",
                               .name = "nginx",
                               .version = "v3.5.0",
                               .metadata = {{"region", "sh"}, {"zone", "sh001"}, {"cluster", "pd"}},
                               .endpoints = {fmt::format("http://10.244.0.{}:80", i + 1)}}));
  }
}

TEST_F(KratosTest, DerivesEndpointsFromPorts) {
  PodTemplate pod = kratos_pod("web", "1", "10.0.0.9");
  pod.annotations = {{"kratos-service-protocols", R"({"80":"http","81":""})"}};
  pod.ports = R"([{"containerPort":80,"name":"grpc"},{"containerPort":81,"name":"grpc-main-2"},
                  {"containerPort":82},{"containerPort":83,"protocol":"UDP"},
                  {"containerPort":84,"name":"ws"}])";
  cluster_.create_pod("web-1", pod);
  EXPECT_THAT((*registry().get_service("web"))[0].endpoints,
              ElementsAre("http://10.0.0.9:80", "grpc://10.0.0.9:81", "TCP://10.0.0.9:82",
                          "UDP://10.0.0.9:83", "ws://10.0.0.9:84"));
}

TEST_F(KratosTest, PortsOfSidecarsAreNotAnnounced) {
  PodTemplate pod = kratos_pod("web", "1", "10.0.0.9");
  pod.annotations = {{"kratos-service-protocols", R"({"80":"http"})"}};
  pod.ports = R"([{"containerPort":15090,"name":"http-envoy-prom"},{"containerPort":80}])";
  cluster_.create_pod("web-1", pod);
  auto found = registry();
  const auto set = found.get_service("web");
  ASSERT_EQ(set->size(), 1u);
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("http://10.0.0.9:15090", "http://10.0.0.9:80"));
  ASSERT_NE((*set)[0].endpoint("http"), nullptr);
  EXPECT_EQ(*(*set)[0].endpoint("http"), "http://10.0.0.9:80") << "the annotation names it";
  // Without announced protocols, all ports are candidates.
  cluster_.annotate("web-1", "kratos-service-protocols", "{}");
  EXPECT_TRUE(eventually([&] {
    const auto now = found.get_service("web");
    return *(*now)[0].endpoint("http") == "http://10.0.0.9:15090";
  }));
}

TEST_F(KratosTest, BracketsIpv6Addresses) {
  cluster_.create_pod("web-1", kratos_pod("web", "1", "fd00::1"));
  EXPECT_THAT((*registry().get_service("web"))[0].endpoints, ElementsAre("http://[fd00::1]:80"));
}

TEST_F(KratosTest, IgnoresWhatKratosIgnores) {
  int i = 0;
  for (const char* nothing : {"", "{}", "null", "nil", "[]"}) {
    PodTemplate pod = kratos_pod("web", std::to_string(++i));
    pod.annotations = {{"kratos-service-protocols", nothing}, {"kratos-service-metadata", nothing}};
    cluster_.create_pod(fmt::format("web-{}", i), pod);
  }
  auto found = registry(reporting()).get_service("web");
  ASSERT_EQ(found->size(), 5u);
  for (const auto& instance : *found) {
    EXPECT_THAT(instance.metadata, IsEmpty());
    EXPECT_THAT(instance.endpoints, ElementsAre("TCP://10.0.0.1:80"));
  }
  EXPECT_THAT(reports_.all(), IsEmpty());
}

TEST_F(KratosTest, ServesRunningAndReadyPods) {
  cluster_.create_pod("a-ready", kratos_pod("web", "a"));
  PodTemplate pod = kratos_pod("web", "b");
  pod.ready = false;
  cluster_.create_pod("b-not-ready", pod);
  for (const char* phase : {"Pending", "Succeeded", "Failed", "Unknown"}) {
    pod = kratos_pod("web", phase);
    pod.phase = phase;
    cluster_.create_pod(fmt::format("c-{}", static_cast<int>(phase[0])), pod);
  }
  pod = kratos_pod("web", "d");
  pod.ip = "";
  cluster_.create_pod("d-not-scheduled", pod);
  cluster_.create_pod("e-going", kratos_pod("web", "e"));
  cluster_.patch_pod("e-going", R"({"metadata":{"finalizers":["example.com/wait"]}})");
  cluster_.remove_pod("e-going");

  EXPECT_THAT(ids(*registry().get_service("web")), ElementsAre("a"));

  Options all;
  all.include_unready = true;
  const auto set = registry(all).get_service("web");
  ASSERT_THAT(ids(*set), ElementsAre("a", "b", "e")) << "they still have to run";
  EXPECT_TRUE((*set)[0].ready);
  EXPECT_FALSE((*set)[1].ready);
  EXPECT_FALSE((*set)[2].ready);
}

TEST_F(KratosTest, SearchesTheConfiguredNamespaces) {
  for (const char* ns : {"shop", "bank", "town"}) {
    cluster_.create_namespace(ns);
    PodTemplate pod = kratos_pod("web", ns);
    pod.labels["tier"] = ns == std::string("bank") ? "gold" : "iron";
    cluster_.create_pod("web", pod, ns);
  }
  Options one;
  one.ns = "shop";
  EXPECT_THAT(ids(*registry(one).get_service("web")), ElementsAre("shop"));
  Options two;
  two.namespaces = {"shop", "bank"};
  EXPECT_THAT(ids(*registry(two).get_service("web")), ElementsAre("bank", "shop"));
  Options everywhere;
  everywhere.ns = kAllNamespaces;
  EXPECT_THAT(ids(*registry(everywhere).get_service("web")), ElementsAre("bank", "shop", "town"));
  Options selected = everywhere;
  selected.label_selector = "tier=iron";
  EXPECT_THAT(ids(*registry(selected).get_service("web")), ElementsAre("shop", "town"));
}

TEST_F(KratosTest, SearchesItsOwnNamespaceByDefault) {
  cluster_.create_namespace("shop");
  cluster_.create_pod("web", kratos_pod("web", "shop"), "shop");
  cluster_.create_pod("web", kratos_pod("web", "default"));
  EXPECT_THAT(ids(*registry(Options()).get_service("web")), ElementsAre("default"));
  Options in_a_pod_of_shop;
  in_a_pod_of_shop.pod.ns = "shop";
  EXPECT_THAT(ids(*registry(in_a_pod_of_shop).get_service("web")), ElementsAre("shop"));
}

TEST_F(KratosTest, WatchesOnlyPodsWithAnnouncements) {
  cluster_.create_pod("plain", {});
  cluster_.create_pod("web", kratos_pod("web", "1"));
  cluster_.create_pod("was-web", kratos_pod("web", "2"));
  cluster_.label("was-web", "kratos-service-app", "");
  Registry registry(cluster_.client());
  registry.get_service("web");
  EXPECT_EQ(registry.stats().objects, 1u);
}

TEST_F(KratosTest, ListsTheServices) {
  cluster_.create_pod("web", kratos_pod("web", "1"));
  cluster_.create_pod("api", kratos_pod("api", "1"));
  cluster_.create_pod("api-2", kratos_pod("api", "2"));
  EXPECT_THAT(registry().services(), ElementsAre("api", "web"));
}

TEST_F(KratosTest, AMalformedPodIsReportedAndDoesNotAffectOthers) {
  cluster_.create_pod("good", kratos_pod("web", "good"));
  PodTemplate bad = kratos_pod("web", "bad");
  bad.annotations = {{"kratos-service-metadata", R"({"weight":5})"}};
  cluster_.create_pod("bad", bad);
  bad.annotations = {{"kratos-service-protocols", "{oops"}};
  cluster_.create_pod("worse", bad);
  bad.annotations = {{"kratos-service-protocols", std::string(10000, '[')}};
  cluster_.create_pod("worst", bad);

  Registry registry(cluster_.client(), reporting());
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("good"));
  EXPECT_TRUE(eventually([&] { return reports_.all().size() == 3; }));
  EXPECT_THAT(
      reports_.all(),
      UnorderedElementsAre(
          HasSubstr(
              "default/bad: annotation kratos-service-metadata: the value of \"weight\" is no"),
          HasSubstr("default/worse: annotation kratos-service-protocols: "),
          HasSubstr(
              "default/worst: annotation kratos-service-protocols: it is not a JSON object")));

  // The pod is reported once, regardless of other changes, and served once it is corrected.
  auto watcher = registry.watch("web");
  cluster_.annotate("bad", "note", "x");
  cluster_.annotate("bad", "kratos-service-metadata", R"({"weight":"5"})");
  cluster_.annotate("worse", "kratos-service-protocols", R"({"80":"http"} x)");
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  EXPECT_TRUE(eventually([&] { return reports_.all().size() == 4; }));
  EXPECT_THAT(reports_.all().back(), HasSubstr("default/worse"));
  EXPECT_EQ(registry.stats().malformed, 4u);
}

TEST_F(KratosTest, AnInstanceWhoseAnnotationBreaksStaysAsItWas) {
  PodTemplate pod = kratos_pod("web", "1");
  pod.annotations["kratos-service-metadata"] = R"({"weight":"5"})";
  cluster_.create_pod("web-1", pod);
  Registry registry(cluster_.client(), reporting());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
  cluster_.annotate("web-1", "kratos-service-metadata", "{oops");
  EXPECT_TRUE(eventually([&] { return reports_.all().size() == 1; }));
  cluster_.create_pod("web-2", kratos_pod("web", "2", "10.0.0.2"));
  const auto both = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0].metadata.at("weight"), "5");
  EXPECT_THAT((*both)[0].endpoints, ElementsAre("http://10.0.0.1:80"));

  // It still follows the pod.
  const auto only_2 = [](const auto& s) { return s.size() == 1 && s[0].id == "2"; };
  cluster_.set_status("web-1", "10.0.0.1", "Running", false);
  EXPECT_TRUE(next_that(watcher, only_2));
  cluster_.annotate("web-1", "kratos-service-metadata", "{again");
  cluster_.set_status("web-1", "10.0.0.1", "Running", true);
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  cluster_.set_status("web-1", "10.0.0.9", "Running", true);
  EXPECT_TRUE(next_that(watcher, only_2)) << "its old address may be another pod's";
  cluster_.annotate("web-1", "kratos-service-metadata", "{}");
  const auto repaired = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(repaired);
  EXPECT_THAT((*repaired)[0].endpoints, ElementsAre("http://10.0.0.9:80"));
  EXPECT_THAT((*repaired)[0].metadata, IsEmpty());
  cluster_.annotate("web-1", "kratos-service-metadata", "{oops");
  cluster_.remove_pod("web-1");
  EXPECT_TRUE(next_that(watcher, only_2));
}

TEST_F(KratosTest, ListsThePodsThatAreMalformed) {
  PodTemplate bad = kratos_pod("web", "bad", "");  // it has no address, so it is no instance
  bad.annotations = {{"kratos-service-metadata", "{oops"}};
  cluster_.create_pod("bad", bad);
  cluster_.create_pod("good", kratos_pod("web", "good"));
  Registry registry(cluster_.client(), reporting());
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& malformed : registry.malformed()) out.push_back(malformed.name);
    return out;
  };
  registry.services();
  EXPECT_THAT(names(), ElementsAre("bad"));
  const Malformed first = registry.malformed().front();
  EXPECT_EQ(first.ns, "default");
  EXPECT_THAT(first.reason, HasSubstr("annotation kratos-service-metadata: "));
  EXPECT_GT(first.since.time_since_epoch().count(), 0);
  cluster_.annotate("bad", "kratos-service-metadata", "{}");
  EXPECT_TRUE(eventually([&] { return names().empty(); }));
  cluster_.annotate("bad", "kratos-service-metadata", "{oops");
  cluster_.annotate("good", "kratos-service-protocols", "{oops");
  EXPECT_TRUE(eventually([&] { return names().size() == 2; }));
  cluster_.remove_pod("bad");
  EXPECT_TRUE(eventually([&] { return names().size() == 1; }));
  EXPECT_THAT(names(), ElementsAre("good"));
}

TEST_F(KratosTest, HalfASurrogatePairIsMalformed) {
  cluster_.create_pod("good", kratos_pod("web", "good"));
  PodTemplate bad = kratos_pod("web", "bad");
  bad.annotations = {{"kratos-service-metadata", R"({"zone":"a\udc00"})"}};
  cluster_.create_pod("bad", bad);
  bad.annotations = {{"kratos-service-metadata", R"({"a\udc00":"\u001b","\u001b":5})"}};
  cluster_.create_pod("worse", bad);
  bad.annotations = {{"kratos-service-metadata", R"({"\u001b":5})"}};
  cluster_.create_pod("worst", bad);
  Registry registry(cluster_.client(), reporting());
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("good"));
  EXPECT_TRUE(eventually([&] { return reports_.all().size() == 3; }));
  EXPECT_THAT(reports_.all(),
              UnorderedElementsAre(AllOf(StartsWith("default/bad: "), HasSubstr("surrogate")),
                                   AllOf(StartsWith("default/worse: "), HasSubstr("surrogate")),
                                   HasSubstr(R"(the value of "\x1b" is not a string)")));
}

TEST_F(KratosTest, ReportsThatThereIsNoDataInTime) {
  cluster_.stop_server();
  Options options;
  options.sync_timeout = 50ms;
  Registry registry(cluster_.client(), options);
  EXPECT_THAT([&] { registry.get_service("web"); },
              testing::ThrowsMessage<NotSynced>(HasSubstr("within 50 ms")));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(registry.get_service("web", {.stop = stop.get_token()}), NotSynced);
  EXPECT_FALSE(registry.freshness().live);
}

}  // namespace
}  // namespace lookout::registry::kratos
