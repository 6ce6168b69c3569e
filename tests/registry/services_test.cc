// Kubernetes Services, from their EndpointSlices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lookout/k8s/discovery/v1.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/services/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::registry::services {
namespace {

using namespace registry::test;

class ServicesTest : public testing::Test {
 protected:
  void slice(const std::string& name, const std::string& service, const std::string& endpoints,
             const std::string& ports = R"([{"name":"http","port":8080}])",
             const std::string& ns = "default", const std::string& type = "IPv4") {
    const auto object = api::Object::parse(fmt::format(
        R"({{"metadata":{{"name":"{}","labels":{{"kubernetes.io/service-name":"{}"}}}},
            "addressType":"{}","endpoints":{},"ports":{}}})",
        name, service, type, endpoints, ports));
    slices(ns).create(object);
  }
  void set_endpoints(const std::string& name, const std::string& endpoints) {
    slices("default").patch(name, rest::PatchType::kMerge,
                            fmt::format(R"({{"endpoints":{}}})", endpoints));
  }
  rest::ResourceClient slices(const std::string& ns) const {
    return cluster_.client().resource(k8s::discovery::v1::EndpointSlice::kResource, ns);
  }
  static Options in(const std::string& ns) {
    Options out;
    out.ns = ns;
    return out;
  }

  Cluster cluster_;
};

TEST_F(ServicesTest, AnEndpointIsAnInstance) {
  slice("web-1", "web",
        R"([{"addresses":["10.0.0.1"],"zone":"a","nodeName":"n1","conditions":{"ready":true},
             "targetRef":{"kind":"Pod","name":"web-x","namespace":"default"}}])",
        R"([{"name":"http-main","port":8080},{"name":"rpc","port":9000,"appProtocol":"grpc"},
            {"name":"x","port":81,"appProtocol":"kubernetes.io/h2c"},
            {"name":"y","port":82,"appProtocol":"example.com/my-rpc"}])");
  const auto set = Registry(cluster_.client(), in("default")).get_service("web");
  ASSERT_EQ(set->size(), 1u);
  EXPECT_EQ((*set)[0],
            (ServiceInstance{.id = "web-x",
                             .name = "web",
                             .metadata = {{"node", "n1"}},
                             .endpoints = {"http://10.0.0.1:8080", "grpc://10.0.0.1:9000",
                                           "h2c://10.0.0.1:81", "my-rpc://10.0.0.1:82"}}));
  EXPECT_EQ((*set)[0].zone, "a");
  EXPECT_EQ((*set)[0].origin, "default/web-x");
}

TEST_F(ServicesTest, SlicesOfOnePodAreOneInstance) {
  const char* v4 = R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-x"}}])";
  const char* v6 = R"([{"addresses":["fd00::1"],"targetRef":{"kind":"Pod","name":"web-x"}}])";
  slice("web-4", "web", v4);
  slice("web-6", "web", v6, R"([{"name":"http","port":8080}])", "default", "IPv6");
  slice("web-again", "web", v4);
  slice("web-other", "web", R"([{"addresses":["10.0.0.9"]}])", R"([{"name":"","port":80}])");
  const auto set = Registry(cluster_.client(), in("default")).get_service("web");
  EXPECT_THAT(ids(*set), ElementsAre("10.0.0.9", "web-x"));
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("TCP://10.0.0.9:80"));
  EXPECT_THAT((*set)[1].endpoints, ElementsAre("http://10.0.0.1:8080", "http://[fd00::1]:8080"));
}

TEST_F(ServicesTest, OfSlicesThatDisagreeTheNewestCounts) {
  const auto pod_is = [](const char* ready) {
    return fmt::format(R"([{{"addresses":["10.0.0.1"],"conditions":{{"ready":{}}},
        "targetRef":{{"kind":"Pod","name":"web-x"}}}}])",
                       ready);
  };
  slice("web-1", "web", pod_is("true"));
  Registry registry(cluster_.client(), in("default"));
  auto watcher = registry.watch("web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
  // The pod moves to another slice, and is not ready any more.
  slice("web-2", "web", pod_is("false"));
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.empty(); }));
  Options all = in("default");
  all.include_unready = true;
  const auto known = Registry(cluster_.client(), all).get_service("web");
  EXPECT_THAT(ids(*known), ElementsAre("web-x"));
  EXPECT_FALSE((*known)[0].ready);
  // And back.
  set_endpoints("web-1", "[]");
  set_endpoints("web-1", pod_is("true"));
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
}

TEST_F(ServicesTest, AnAddressThatIsAlsoThatOfAPodIsNoSecondInstance) {
  const char* pod = R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-x"}}])";
  const char* address = R"([{"addresses":["10.0.0.1"],"hostname":"h"}])";
  slice("web-1", "web", pod);
  slice("web-2", "web", address);
  slice("web-3", "web", address, R"([{"name":"grpc","port":9000}])");
  slice("api-1", "api", address);
  slice("api-2", "api", pod);
  Registry registry(cluster_.client(), in("default"));
  const auto web = registry.get_service("web");
  EXPECT_THAT(ids(*web), ElementsAre("web-x"));
  EXPECT_THAT((*web)[0].endpoints, ElementsAre("grpc://10.0.0.1:9000", "http://10.0.0.1:8080"));
  EXPECT_EQ((*web)[0].origin, "default/web-x");
  EXPECT_EQ((*web)[0].metadata.at("hostname"), "h");
  const auto api = registry.get_service("api");
  EXPECT_THAT(ids(*api), ElementsAre("web-x"));
  EXPECT_THAT((*api)[0].endpoints, ElementsAre("http://10.0.0.1:8080"));
}

TEST_F(ServicesTest, AnAddressBelongsToThePodOfTheNewestSlice) {
  const char* old = R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-x"}},
                        {"addresses":["10.0.0.2"],"targetRef":{"kind":"Pod","name":"web-z"}}])";
  const auto new_pod = [](const char* ready) {
    return fmt::format(R"([{{"addresses":["10.0.0.1"],"conditions":{{"ready":{}}},
        "targetRef":{{"kind":"Pod","name":"web-y"}}}}])",
                       ready);
  };
  slice("web-1", "web", old);
  slice("web-2", "web", new_pod("false"));
  Registry registry(cluster_.client(), in("default"));
  auto watcher = registry.watch("web");
  const auto first = next_that(watcher, [](const auto&) { return true; });
  ASSERT_TRUE(first);
  EXPECT_THAT(ids(*first), ElementsAre("web-z")) << "web-x has ended, web-y begins";
  Options all = in("default");
  all.include_unready = true;
  EXPECT_THAT(ids(*Registry(cluster_.client(), all).get_service("web")),
              ElementsAre("web-x", "web-y", "web-z"));
  set_endpoints("web-2", new_pod("true"));
  const auto next = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(next);
  EXPECT_THAT(ids(*next), ElementsAre("web-y", "web-z"));
}

TEST_F(ServicesTest, AnAddressOfAPodThatIsNotReadyIsNotCalled) {
  slice("web-4", "web",
        R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-x"}}])");
  slice("web-6", "web",
        R"([{"addresses":["fd00::1"],"conditions":{"ready":false},
             "targetRef":{"kind":"Pod","name":"web-x"}}])",
        R"([{"name":"http","port":8080}])", "default", "IPv6");
  const auto set = Registry(cluster_.client(), in("default")).get_service("web");
  ASSERT_EQ(set->size(), 1u);
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("http://10.0.0.1:8080"));
}

TEST_F(ServicesTest, PodsThatShareAnAddressAreInstances) {
  // In the network of their node. A slice without the pods says nothing about them.
  slice("web-1", "web",
        R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-x"}}])");
  slice("web-2", "web", R"([{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"web-y"}}])",
        R"([{"name":"http","port":8081}])");
  slice("web-3", "web", R"([{"addresses":["10.0.0.1"]}])", R"([{"name":"http","port":8082}])");
  slice("web-4", "web", R"([{"addresses":["10.0.0.1"]}])", R"([{"name":"http","port":8081}])");
  const auto set = Registry(cluster_.client(), in("default")).get_service("web");
  EXPECT_THAT(ids(*set), ElementsAre("10.0.0.1", "web-x", "web-y"));
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("http://10.0.0.1:8082"));
  EXPECT_THAT((*set)[2].endpoints, ElementsAre("http://10.0.0.1:8081"));
}

TEST_F(ServicesTest, ServesReadyEndpoints) {
  slice("web-1", "web",
        R"([{"addresses":["10.0.0.1"]},
            {"addresses":["10.0.0.2"],"conditions":{"ready":false}},
            {"addresses":["10.0.0.3"],"conditions":{"ready":true,"terminating":true}}])");
  EXPECT_THAT(ids(*Registry(cluster_.client(), in("default")).get_service("web")),
              ElementsAre("10.0.0.1"));
  Options all = in("default");
  all.include_unready = true;
  EXPECT_THAT(ids(*Registry(cluster_.client(), all).get_service("web")),
              ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
}

TEST_F(ServicesTest, TerminatingEndpointsServeIfNoneIsReady) {
  const char* leaving = R"("conditions":{"ready":false,"serving":true,"terminating":true})";
  slice("web-1", "web",
        fmt::format(R"([{{"addresses":["10.0.0.1"]}},
            {{"addresses":["10.0.0.2"],{}}}])",
                    leaving));
  Registry registry(cluster_.client(), in("default"));
  auto watcher = registry.watch("web");
  const auto ready = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(ready);
  EXPECT_EQ((*ready)[0].id, "10.0.0.1");
  set_endpoints("web-1", fmt::format(R"([{{"addresses":["10.0.0.2"],{}}},
      {{"addresses":["10.0.0.3"],"conditions":{{"ready":false,"serving":false,"terminating":true}}}},
      {{"addresses":["10.0.0.4"],"conditions":{{"ready":false,"serving":true}}}},
      {{"addresses":["10.0.0.5"],"conditions":{{"ready":true,"terminating":true}}}}])",
                                     leaving));
  const auto last = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(last);
  EXPECT_THAT(ids(*last), ElementsAre("10.0.0.2", "10.0.0.5"));
  EXPECT_TRUE((*last)[0].ready);
  set_endpoints("web-1", fmt::format(R"([{{"addresses":["10.0.0.2"],{}}},
      {{"addresses":["10.0.0.6"]}}])",
                                     leaving));
  const auto next = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(next);
  EXPECT_EQ((*next)[0].id, "10.0.0.6");
}

TEST_F(ServicesTest, ChangesAreAnnounced) {
  slice("web-1", "web", R"([{"addresses":["10.0.0.1"]},{"addresses":["10.0.0.2"]}])");
  Registry registry(cluster_.client(), in("default"));
  auto watcher = registry.watch("web");
  const Balancer balancer(registry, "web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  set_endpoints("web-1", R"([{"addresses":["10.0.0.2"]}])");
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(set);
  EXPECT_EQ((*set)[0].id, "10.0.0.2");
  EXPECT_TRUE(lookout::test::eventually([&] { return balancer.load()->size() == 1; }));
  EXPECT_EQ(balancer.pick()->id, "10.0.0.2");
  slices("default").remove("web-1");
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.empty(); }));
}

TEST_F(ServicesTest, NamesAreQualifiedWithSeveralNamespaces) {
  cluster_.create_namespace("shop");
  slice("web-1", "web", R"([{"addresses":["10.0.0.1"]}])");
  slice("web-1", "web", R"([{"addresses":["10.0.0.2"]}])", R"([])", "shop");
  Registry everywhere(cluster_.client(), in(kAllNamespaces));
  EXPECT_THAT(everywhere.services(), testing::IsSupersetOf({"default/web", "shop/web"}));
  EXPECT_THAT(ids(*everywhere.get_service("shop/web")), ElementsAre("10.0.0.2"));
  EXPECT_THAT(ids(*everywhere.get_service("web")), ElementsAre("10.0.0.1"));
  Registry shop(cluster_.client(), in("shop"));
  EXPECT_THAT(shop.services(), ElementsAre("web"));
  EXPECT_THAT(ids(*shop.get_service("web")), ElementsAre("10.0.0.2"));
  EXPECT_THAT(ids(*shop.get_service("shop/web")), ElementsAre("10.0.0.2"));
}

}  // namespace
}  // namespace lookout::registry::services
