// The kratos registry against a server: what it writes, what it finds, what it announces.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include "lookout/api/status.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
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

  /// Reports about malformed pods.
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

TEST_F(KratosTest, RegistersAsKratosDoes) {
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

TEST_F(KratosTest, WhatIsRegisteredIsFound) {
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

TEST_P(KratosRefusalTest, IsRefusedWithTheRule) {
  cluster_.create_pod("hello", {});
  Registry registry(cluster_.client(), on_pod("hello"));
  const auto before = cluster_.server().stats().requests;
  try {
    registry.register_instance(GetParam().instance);
    ADD_FAILURE() << "it was registered";
  } catch (const RegistrationError& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().rule));
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
        Refused{"NoUrl", {.name = "web", .endpoints = {"10.0.0.1"}}, "not a URL"},
        Refused{"NoPort", {.name = "web", .endpoints = {"http://10.0.0.1"}}, "no port"},
        Refused{"BadPort", {.name = "web", .endpoints = {"http://10.0.0.1:99999"}}, "not a URL"},
        Refused{"TwoProtocols",
                {.name = "web", .endpoints = {"http://h:80", "grpc://h:80"}},
                "port 80 has two protocols, http and grpc"}),
    [](const auto& test) { return test.param.what; });

TEST_F(KratosTest, APodThatIsNotThereIsTheServersAnswer) {
  Registry registry(cluster_.client(), on_pod("nobody"));
  try {
    registry.register_instance({.name = "web"});
    ADD_FAILURE();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_not_found(e)) << e.what();
  }
}

// ------------------------------------------------------------------------------------ which pod

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

TEST(PodIdentityTest, IsWhatIsGiven) {
  EXPECT_EQ(PodIdentity::find({"shop", "web-1"}, "", sources({{"POD_NAME", "other"}})),
            (PodIdentity{"shop", "web-1"}));
}

TEST(PodIdentityTest, IsInTheUsualVariables) {
  EXPECT_EQ(PodIdentity::find(
                {}, "",
                sources({{"POD_NAME", "web-1"}, {"HOSTNAME", "node"}, {"POD_NAMESPACE", "shop"}})),
            (PodIdentity{"shop", "web-1"}));
  EXPECT_EQ(PodIdentity::find({}, "fallback", sources({{"HOSTNAME", "web-2"}})),
            (PodIdentity{"fallback", "web-2"}));
}

TEST(PodIdentityTest, TakesTheNamespaceOfTheServiceAccountAndFilesOfTheDownwardApi) {
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

TEST(PodIdentityTest, SaysWhatItLookedFor) {
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

TEST_F(KratosTest, MakesEndpointsOfPorts) {
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
  // When nothing is announced, all there is may be meant.
  cluster_.annotate("web-1", "kratos-service-protocols", "{}");
  EXPECT_TRUE(eventually([&] {
    const auto now = found.get_service("web");
    return *(*now)[0].endpoint("http") == "http://10.0.0.9:15090";
  }));
}

TEST_F(KratosTest, BracketsAddressesOfVersionSix) {
  cluster_.create_pod("web-1", kratos_pod("web", "1", "fd00::1"));
  EXPECT_THAT((*registry().get_service("web"))[0].endpoints, ElementsAre("http://[fd00::1]:80"));
}

TEST_F(KratosTest, TakesWhatKratosTakesForNothing) {
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

TEST_F(KratosTest, ServesWhatRunsAndIsReady) {
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

TEST_F(KratosTest, LooksWhereItIsTold) {
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

TEST_F(KratosTest, LooksInItsOwnNamespaceUnlessItIsToldOtherwise) {
  cluster_.create_namespace("shop");
  cluster_.create_pod("web", kratos_pod("web", "shop"), "shop");
  cluster_.create_pod("web", kratos_pod("web", "default"));
  EXPECT_THAT(ids(*registry(Options()).get_service("web")), ElementsAre("default"));
  Options in_a_pod_of_shop;
  in_a_pod_of_shop.pod.ns = "shop";
  EXPECT_THAT(ids(*registry(in_a_pod_of_shop).get_service("web")), ElementsAre("shop"));
}

TEST_F(KratosTest, WatchesOnlyPodsThatAnnounceSomething) {
  cluster_.create_pod("plain", {});
  cluster_.create_pod("web", kratos_pod("web", "1"));
  cluster_.create_pod("was-web", kratos_pod("web", "2"));
  cluster_.label("was-web", "kratos-service-app", "");
  Registry registry(cluster_.client());
  registry.get_service("web");
  EXPECT_EQ(registry.stats().objects, 1u);
}

TEST_F(KratosTest, NamesTheServicesThereAre) {
  cluster_.create_pod("web", kratos_pod("web", "1"));
  cluster_.create_pod("api", kratos_pod("api", "1"));
  cluster_.create_pod("api-2", kratos_pod("api", "2"));
  EXPECT_THAT(registry().services(), ElementsAre("api", "web"));
}

TEST_F(KratosTest, AMalformedPodIsReportedAndCostsNobodyElseAnything) {
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
          HasSubstr("default/worst: annotation kratos-service-protocols: it is no JSON object")));

  // It is reported once, whatever else changes, and once it is mended it is served.
  auto watcher = registry.watch("web");
  cluster_.annotate("bad", "note", "x");
  cluster_.annotate("bad", "kratos-service-metadata", R"({"weight":"5"})");
  cluster_.annotate("worse", "kratos-service-protocols", R"({"80":"http"} x)");
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  EXPECT_TRUE(eventually([&] { return reports_.all().size() == 4; }));
  EXPECT_THAT(reports_.all().back(), HasSubstr("default/worse"));
  EXPECT_EQ(registry.stats().malformed, 4u);
}

TEST_F(KratosTest, AnEscapeThatIsHalfACharacterIsMalformed) {
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

TEST_F(KratosTest, SaysThatThereIsNoDataInTime) {
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

// ------------------------------------------------------------------------------------ watching

TEST_F(KratosTest, TheFirstSetComesAtOnceIfThereIsOne) {
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  Registry registry(cluster_.client());
  registry.get_service("web");
  auto watcher = registry.watch("web");
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first);
  EXPECT_THAT(ids(*first), ElementsAre("1"));
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "nothing has changed";
  EXPECT_EQ(watcher.latest(), first.set());
}

TEST_F(KratosTest, ThatThereIsNoInstanceIsAnnouncedOnce) {
  Registry registry(cluster_.client());
  auto early = registry.watch("web");
  registry.get_service("web");
  auto late = registry.watch("web");
  Gate told;
  const auto subscription = registry.subscribe("web", [&](const InstanceSetPtr& set) {
    EXPECT_TRUE(set->empty());
    told.open();
  });
  for (auto* watcher : {&early, &late}) {
    const auto first = watcher->next_for(kLong);
    ASSERT_TRUE(first) << to_string(first.outcome());
    EXPECT_TRUE(first->empty());
    EXPECT_EQ(watcher->next_for(1ms).outcome(), NextOutcome::kTimedOut) << "it is still empty";
  }
  EXPECT_TRUE(told.wait());
}

TEST_F(KratosTest, BeforeThereIsDataNothingIsAnnounced) {
  cluster_.stop_server();
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  EXPECT_TRUE(registry.latest("web")->empty());
  EXPECT_EQ(watcher.next_for(100ms).outcome(), NextOutcome::kTimedOut)
      << "that nothing is known does not mean that there is nothing";
}

struct Departure {
  const char* what;
  void (*leave)(Cluster& cluster);
};

class KratosDepartureTest : public KratosTest, public testing::WithParamInterface<Departure> {};

TEST_P(KratosDepartureTest, IsAnnounced) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  GetParam().leave(cluster_);
  const auto result = watcher.next_for(kLong);
  ASSERT_TRUE(result) << to_string(result.outcome());
  EXPECT_THAT(ids(*result), ElementsAre("b"));
}

INSTANTIATE_TEST_SUITE_P(
    , KratosDepartureTest,
    testing::Values(
        Departure{"Deleted", [](Cluster& c) { c.remove_pod("a"); }},
        Departure{"Terminating",
                  [](Cluster& c) {
                    c.pods().remove("a");  // with its grace period
                  }},
        Departure{"Failed", [](Cluster& c) { c.set_status("a", "10.0.0.1", "Failed", false); }},
        Departure{"NotReady", [](Cluster& c) { c.set_status("a", "10.0.0.1", "Running", false); }},
        Departure{"Relabelled", [](Cluster& c) { c.label("a", "kratos-service-app", "api"); }},
        Departure{"Deregistered", [](Cluster& c) { c.label("a", "kratos-service-app", ""); }},
        Departure{"LabelRemoved",
                  [](Cluster& c) {
                    c.patch_pod("a", R"({"metadata":{"labels":{"kratos-service-app":null}}})");
                  }},
        Departure{"Malformed",
                  [](Cluster& c) { c.annotate("a", "kratos-service-metadata", "{oops"); }}),
    [](const auto& test) { return test.param.what; });

TEST_F(KratosTest, AMoveToAnotherServiceIsAnnouncedToBoth) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto web = registry.watch("web");
  auto api = registry.watch("api");
  ASSERT_TRUE(web.next_for(kLong));
  cluster_.label("a", "kratos-service-app", "api");
  ASSERT_TRUE(next_that(web, [](const auto& s) { return s.empty(); }));
  ASSERT_TRUE(next_that(api, [](const auto& s) { return s.size() == 1; }));
}

TEST_F(KratosTest, ChangesThatDoNotConcernTheInstanceAreNotAnnounced) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first);
  for (int i = 0; i < 20; ++i) cluster_.annotate("a", "note", std::to_string(i));
  cluster_.annotate("a", "kratos-service-metadata", R"({"new":"yes"})");
  const auto second = watcher.next_for(kLong);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)[0].metadata.at("new"), "yes");
  EXPECT_EQ(registry.stats().announced, 2u);
}

TEST_F(KratosTest, WhatHappensMeanwhileIsCoalescedToTheLatest) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  auto other = registry.watch("web");
  for (int i = 0; i < 30; ++i) {
    cluster_.create_pod(fmt::format("web-{:02}", i), kratos_pod("web", std::to_string(i)));
  }
  // Others are told while this one does not read.
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.size() == 30; }));
  // (The last set may still be on its way to this one.)
  int sets = 0;
  ASSERT_TRUE(next_that(watcher, [&](const auto& s) { return ++sets > 0 && s.size() == 30; }));
  EXPECT_LE(sets, 2);
}

TEST_F(KratosTest, ASetThatIsAsItWasIsNotAnnouncedAgain) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto slow = registry.watch("web");
  auto other = registry.watch("web");
  ASSERT_TRUE(slow.next_for(kLong));
  ASSERT_TRUE(other.next_for(kLong));
  cluster_.set_status("a", "10.0.0.1", "Running", false);
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.empty(); }));
  cluster_.set_status("a", "10.0.0.1", "Running", true);
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.size() == 1; }));
  EXPECT_EQ(slow.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "it went and came back";
}

TEST_F(KratosTest, EachEndIsToldFromTheOthers) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  EXPECT_TRUE(watcher.next_for(kLong));
  EXPECT_EQ(watcher.next({}, std::chrono::steady_clock::now()).outcome(), NextOutcome::kTimedOut);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(watcher.next(stop.get_token()).outcome(), NextOutcome::kCancelled);
  auto stopped = registry.watch("web");
  stopped.stop();
  EXPECT_EQ(stopped.next().outcome(), NextOutcome::kStopped);
  registry.close();
  EXPECT_EQ(watcher.next().outcome(), NextOutcome::kClosed);
  EXPECT_EQ(stopped.next().outcome(), NextOutcome::kStopped) << "it stays what it was";
  EXPECT_THROW(registry.watch("web"), InvalidArgument);
  EXPECT_THROW(registry.get_service("web"), InvalidArgument);
  EXPECT_FALSE(registry.freshness().live);
}

TEST_F(KratosTest, EachEndWakesTheOneWhoWaits) {
  for (const auto end : {NextOutcome::kCancelled, NextOutcome::kStopped, NextOutcome::kClosed}) {
    Registry registry(cluster_.client());
    auto watcher = registry.watch("web");
    ASSERT_TRUE(watcher.next_for(kLong));
    std::stop_source stop;
    std::latch waiting(1);
    NextOutcome outcome = NextOutcome::kInstances;
    std::jthread waiter([&] {
      waiting.count_down();
      outcome = watcher.next(stop.get_token()).outcome();
    });
    lookout::test::wait_for(waiting);
    if (end == NextOutcome::kCancelled) stop.request_stop();
    if (end == NextOutcome::kStopped) watcher.stop();
    if (end == NextOutcome::kClosed) registry.close();
    waiter.join();
    EXPECT_EQ(outcome, end);
  }
}

TEST_F(KratosTest, AWatcherMayOutliveTheRegistry) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  auto first = std::make_unique<Registry>(cluster_.client());
  auto watcher = first->watch("web");
  const auto set = next_that(watcher, [](const auto&) { return true; });
  ASSERT_TRUE(set);
  first.reset();
  EXPECT_EQ(watcher.next().outcome(), NextOutcome::kClosed);
  EXPECT_THAT(ids(*set), ElementsAre("a"));
  EXPECT_FALSE(set->freshness().live);
}

TEST_F(KratosTest, CoroutinesWaitToo) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(watcher.next_for(kLong));
  auto future = boost::asio::co_spawn(
      cluster_.client().loop().context(),
      [&]() -> Awaitable<std::vector<NextOutcome>> {
        std::vector<NextOutcome> out;
        out.push_back(
            (co_await watcher.async_next({}, std::chrono::steady_clock::now())).outcome());
        std::stop_source stop;
        stop.request_stop();
        out.push_back((co_await watcher.async_next(stop.get_token())).outcome());
        out.push_back((co_await watcher.async_next()).outcome());
        out.push_back((co_await watcher.async_next()).outcome());
        co_return out;
      },
      boost::asio::use_future);
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  ASSERT_TRUE(eventually([&] { return registry.stats().announced == 1; }));
  registry.close();
  const auto outcomes = lookout::test::get(future);
  EXPECT_EQ(outcomes[0], NextOutcome::kTimedOut);
  EXPECT_EQ(outcomes[1], NextOutcome::kCancelled);
  EXPECT_EQ(outcomes.back(), NextOutcome::kClosed);
}

TEST_F(KratosTest, ACoroutineIsWokenByWhatItWaitsFor) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(watcher.next_for(kLong));
  auto future = boost::asio::co_spawn(cluster_.client().loop().context(), watcher.async_next(),
                                      boost::asio::use_future);
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  const auto result = lookout::test::get(future);
  ASSERT_TRUE(result);
  EXPECT_THAT(ids(*result), ElementsAre("1"));
}

TEST_F(KratosTest, CallbacksAreCalledWithTheLatest) {
  cluster_.create_pod("web-0", kratos_pod("web", "0"));
  Registry registry(cluster_.client());
  Gate blocked;
  Gate hold;
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  std::atomic<int> at_once{0};
  auto subscription = registry.subscribe("web", [&](const InstanceSetPtr& set) {
    EXPECT_EQ(++at_once, 1) << "one at a time";
    blocked.open();
    EXPECT_TRUE(hold.wait());
    {
      const std::lock_guard lock(mutex);
      sizes.push_back(set->size());
    }
    --at_once;
    throw std::runtime_error("a callback may throw");
  });
  ASSERT_TRUE(blocked.wait());
  // While it is held up, others are told.
  auto watcher = registry.watch("web");
  for (int i = 1; i <= 10; ++i) {
    cluster_.create_pod(fmt::format("web-{}", i), kratos_pod("web", std::to_string(i)));
  }
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 11; }));
  hold.open();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !sizes.empty() && sizes.back() == 11;
  }));
  subscription.cancel();
  // (The last set may still have been on its way when it was let go.)
  EXPECT_EQ(sizes.front(), 1u);
  EXPECT_LE(sizes.size(), 3u);
  const std::size_t calls = sizes.size();
  cluster_.remove_pod("web-0");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 10; }));
  EXPECT_EQ(sizes.size(), calls);
}

TEST_F(KratosTest, ACallbackMayEndItself) {
  cluster_.create_pod("web-0", kratos_pod("web", "0"));
  Registry registry(cluster_.client());
  Gate called;
  Gate ready;
  Subscription subscription;
  subscription = registry.subscribe("web", [&](const InstanceSetPtr&) {
    EXPECT_TRUE(ready.wait());
    subscription.cancel();
    registry.close();
    called.open();
  });
  ready.open();
  EXPECT_TRUE(called.wait());
}

TEST_F(KratosTest, ASetRemembersWhatHasNotChanged) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  const auto before = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(before);
  cluster_.annotate("a", "kratos-service-metadata", R"({"x":"y"})");
  cluster_.create_pod("c", kratos_pod("web", "c"));
  const auto middle = next_that(watcher, [](const auto& s) { return s.size() == 3; });
  ASSERT_TRUE(middle);
  EXPECT_EQ(before->instances()[1], middle->instances()[1]) << "the same object";
  cluster_.remove_pod("b");
  const auto after = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(after);
  EXPECT_LT(before->version(), middle->version());
  EXPECT_LT(middle->version(), after->version());

  const InstanceDiff change = diff(before, *after);
  ASSERT_EQ(change.added.size(), 1u);
  EXPECT_EQ(change.added[0]->id, "c");
  ASSERT_EQ(change.removed.size(), 1u);
  EXPECT_EQ(change.removed[0]->id, "b");
  ASSERT_EQ(change.changed.size(), 1u);
  EXPECT_THAT(change.changed[0].before->metadata, IsEmpty());
  EXPECT_EQ(change.changed[0].after->metadata.at("x"), "y");
  EXPECT_TRUE(diff(after, *after).empty());
  EXPECT_EQ(diff(nullptr, *after).added.size(), 2u);
}

// ------------------------------------------------------------------------------- when it breaks

TEST_F(KratosTest, WithoutTheServerTheLastSetIsServedAndMarkedStale) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Options options;
  options.backoff = {.initial = 1ms, .max = 20ms};
  Registry registry(cluster_.client(), options);
  auto watcher = registry.watch("web");
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(set);
  ASSERT_TRUE(eventually([&] { return set->freshness().live; }));
  const auto live_since = set->freshness().since;

  cluster_.stop_server();
  ASSERT_TRUE(eventually([&] { return !set->freshness().live; }));
  EXPECT_GE(set->freshness().since + 1s, live_since);
  EXPECT_EQ(registry.get_service("web")->size(), 2u);
  EXPECT_FALSE(registry.get_service("web")->freshness().live);
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "the set is the same";

  cluster_.start_server();
  ASSERT_TRUE(eventually([&] { return set->freshness().live; }));
  cluster_.create_pod("c", kratos_pod("web", "c"));
  cluster_.remove_pod("a");
  const auto after = next_that(watcher, [](const auto& s) {
    return ids(s) == std::vector<std::string>{"b", "c"};
  });
  EXPECT_TRUE(after);
}

}  // namespace
}  // namespace lookout::registry::kratos
