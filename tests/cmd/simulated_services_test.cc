// The endpoints of Services in the simulated cluster, and a registry that reads them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lookout/k8s/core/v1_draft.h"
#include "lookout/registry/services/registry.h"
#include "tests/cmd/simulated_cluster.h"

namespace lookout::cmd::cluster {
namespace {

using Members = std::map<std::string, std::string>;

/// The members of an object, as JSON.
Members members(api::Value object) {
  Members out;
  for (const auto& [name, value] : object.members()) out.emplace(name, value.to_json());
  return out;
}

class SimulatedServicesTest : public SimulatedClusterTest {
 protected:
  /// The slices of a service, by name.
  std::vector<EndpointSlice> slices(const std::string& service) const {
    auto out =
        in<EndpointSlice>().list({.label_selector = "kubernetes.io/service-name=" + service}).items;
    std::ranges::sort(out, {}, [](const auto& slice) { return std::string(slice.name()); });
    return out;
  }
  /// The endpoints in all slices that are ready.
  std::size_t ready(const std::string& service) const {
    std::size_t out = 0;
    for (const EndpointSlice& slice : slices(service)) {
      for (const api::Value endpoint : slice["endpoints"].elements())
        out += endpoint["conditions"]["ready"].as_bool() ? 1U : 0U;
    }
    return out;
  }
  /// Empty if there is none.
  Endpoints endpoints_of(const std::string& service) const { return in<Endpoints>().find(service); }
  /// The Endpoints object without its metadata.
  std::string subsets(const std::string& service) const {
    const auto found = endpoints_of(service);
    return found ? found["subsets"].to_json() : std::string("none");
  }
  static std::string service(const std::string& app, const std::string& more = "") {
    return fmt::format(
        R"({{"selector":{{"app":"{}"}},"ports":[{{"port":80,"targetPort":"http"}}]{}}})", app,
        more);
  }
  /// A pod of the app with another port "http"; `more` are members of its spec.
  void create_pod_with_port(const std::string& name, int port, const std::string& more = "") const {
    in<Pod>().create(api::Object::parse(fmt::format(
        R"({{"metadata":{{"name":"{}","labels":{{"app":"web"}}}},"spec":{{"containers":[{{"name":"c",)"
        R"("image":"i","ports":[{{"name":"http","containerPort":{}}}]}}]{}}}}})",
        name, port, more)));
  }
};

TEST_F(SimulatedServicesTest, EndpointsAreThoseOfKubernetes) {
  in<Service>().create(api::Object::parse(
      R"({"metadata":{"name":"web","labels":{"team":"shop"}},)"
      R"("spec":{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"http"}]}})"));
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return ready("web") == 2; }));
  const auto all = slices("web");
  ASSERT_THAT(all, SizeIs(1)) << "the empty slice is used";
  const EndpointSlice& slice = all[0];
  EXPECT_TRUE(slice.name().starts_with("web-") && slice.name().size() == 9) << slice.name();
  EXPECT_EQ(slice["metadata"]["generateName"].as_string(), "web-");
  EXPECT_EQ(
      members(slice.labels()),
      (Members{{"endpointslice.kubernetes.io/managed-by", R"("endpointslice-controller.k8s.io")"},
               {"kubernetes.io/service-name", R"("web")"},
               {"team", R"("shop")"}}));
  const Service web = in<Service>().get("web");
  const api::Value owner = slice["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["apiVersion"].as_string(), "v1");
  EXPECT_EQ(owner["kind"].as_string(), "Service");
  EXPECT_EQ(owner["uid"].as_string(), web.uid());
  EXPECT_TRUE(owner["controller"].as_bool());
  EXPECT_EQ(slice.address_type(), "IPv4");
  EXPECT_EQ(slice["ports"].size(), 1u);
  EXPECT_EQ(members(slice["ports"][0]),
            (Members{{"name", R"("")"}, {"protocol", R"("TCP")"}, {"port", "8080"}}));
  for (const api::Value endpoint : slice["endpoints"].elements()) {
    const Pod pod = in<Pod>().get(endpoint["targetRef"]["name"].as_string());
    EXPECT_EQ(members(endpoint["targetRef"]), (Members{{"kind", R"("Pod")"},
                                                       {"namespace", R"("default")"},
                                                       {"name", fmt::format("\"{}\"", pod.name())},
                                                       {"uid", fmt::format("\"{}\"", pod.uid())}}));
    EXPECT_EQ(endpoint["addresses"][0].as_string(), pod.status().pod_ip());
    EXPECT_EQ(endpoint["nodeName"].as_string(), pod.spec().node_name());
    EXPECT_EQ(members(endpoint["conditions"]),
              (Members{{"ready", "true"}, {"serving", "true"}, {"terminating", "false"}}));
  }

  ASSERT_TRUE(eventually([&] {
    const auto now = in<Endpoints>().find("web");
    return now && now["subsets"][0]["addresses"].size() == 2;
  }));
  const Endpoints endpoints = endpoints_of("web");
  EXPECT_EQ(members(endpoints.labels()),
            (Members{{"endpoints.kubernetes.io/managed-by", R"("endpoint-controller")"},
                     {"team", R"("shop")"}}));
  EXPECT_EQ(endpoints["subsets"].size(), 1u);
  const api::Value subset = endpoints["subsets"][0];
  EXPECT_EQ(subset["ports"].size(), 1u);
  EXPECT_EQ(members(subset["ports"][0]), (Members{{"protocol", R"("TCP")"}, {"port", "8080"}}));
  const api::Value first = subset["addresses"][0];
  EXPECT_LT(first["ip"].as_string(), subset["addresses"][1]["ip"].as_string());
  const Pod pod = in<Pod>().get(first["targetRef"]["name"].as_string());
  EXPECT_EQ(first["ip"].as_string(), pod.status().pod_ip());
  EXPECT_EQ(first["nodeName"].as_string(), pod.spec().node_name());
  EXPECT_EQ(first["targetRef"]["uid"].as_string(), pod.uid());

  in<Service>().patch("web", rest::PatchType::kMerge,
                      R"({"metadata":{"labels":{"team":null,"tier":"front"}}})");
  EXPECT_TRUE(eventually([&] {
    const auto now = slices("web");
    const auto labelled = endpoints_of("web");
    return now.size() == 1 && now[0].labels()["tier"].as_string() == "front" &&
           !now[0].labels()["team"].exists() && labelled.labels()["tier"].exists() &&
           !labelled.labels()["team"].exists();
  })) << "labels follow those of the service";
  in<Service>().remove("web");
  EXPECT_TRUE(eventually([&] { return slices("web").empty() && subsets("web") == "none"; }));
}

TEST_F(SimulatedServicesTest, PodsThatLeaveAreRemoved) {
  create<Service>("web", service("web"));
  ASSERT_TRUE(eventually([&] { return slices("web").size() == 1; })) << "it is empty";
  create<Deployment>("web", workload("web", 3));
  ASSERT_TRUE(eventually([&] { return ready("web") == 3; }));
  const std::string name(held(pods("web")[0]).name());
  in<Pod>().patch(name, rest::PatchType::kMerge, R"({"metadata":{"labels":{"app":"other"}}})");
  EXPECT_TRUE(eventually([&] {
    const auto all = slices("web");
    return all.size() == 1 && all[0].to_json().find(name) == std::string::npos &&
           subsets("web").find(name) == std::string::npos;
  }));
  in<Deployment>().remove("web");
  EXPECT_TRUE(eventually([&] {
    const auto all = slices("web");
    return all.size() == 1 && all[0]["endpoints"].empty() && all[0]["ports"].empty() &&
           held(endpoints_of("web"))["subsets"].empty();
  })) << "an empty slice stays";
}

TEST_F(SimulatedServicesTest, PodsWithOtherPortsHaveTheirOwnSlice) {
  create<Service>("web", service("web"));
  create_pod_with_port("a", 8080);
  create_pod_with_port("b", 9090);
  create_pod_with_port("c", 9090);
  ASSERT_TRUE(eventually([&] { return ready("web") == 3; }));
  std::multiset<std::string> found;
  for (const EndpointSlice& slice : slices("web"))
    found.insert(
        fmt::format("{} x{}", slice["ports"][0]["port"].as_int(), slice["endpoints"].size()));
  EXPECT_THAT(found, ElementsAre("8080 x1", "9090 x2"));
  EXPECT_TRUE(eventually([&] {
    const Endpoints now = endpoints_of("web");
    const api::Value parts = now["subsets"];
    return parts.size() == 2 && parts[0]["addresses"].size() == 1 &&
           parts[1]["addresses"].size() == 2 && parts[1]["ports"][0]["port"].as_int() == 9090;
  })) << subsets("web");
}

TEST_F(SimulatedServicesTest, ASliceHasAtMost100Endpoints) {
  create<Service>("web", service("web"));
  create<Deployment>("web", workload("web", 130));
  ASSERT_TRUE(eventually([&] { return ready("web") == 130; }));
  const auto count = [&] {
    std::vector<std::size_t> sizes;
    std::set<std::string> addresses;
    for (const EndpointSlice& slice : slices("web")) {
      sizes.push_back(slice["endpoints"].size());
      for (const api::Value endpoint : slice["endpoints"].elements())
        addresses.emplace(endpoint["addresses"][0].as_string());
    }
    std::ranges::sort(sizes);
    return fmt::format("{} in {}", addresses.size(), fmt::join(sizes, "+"));
  };
  EXPECT_EQ(count(), "130 in 30+100");
  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":0}})");
  EXPECT_TRUE(eventually([&] { return count() == "0 in 0"; })) << count();
}

TEST_F(SimulatedServicesTest, UnreadyPodsAreListedAsSuch) {
  create<Service>("web", service("web"));
  create<Service>("all", service("web", R"(,"clusterIP":"None","publishNotReadyAddresses":true)"));
  in<Pod>().create(api::Object::parse(fmt::format(
      R"({{"metadata":{{"name":"p","labels":{{"app":"web"}},"annotations":{{"{}":"1"}}}},"spec":{{"containers":)"
      R"([{{"name":"c","image":"i","ports":[{{"name":"http","containerPort":8080}}]}}]}}}})",
      kExitCode)));
  // The containers crash again and again.
  EXPECT_TRUE(eventually([&] {
    const auto all = slices("web");
    const Endpoints endpoints = endpoints_of("web");
    return all.size() == 1 && all[0]["endpoints"].size() == 1 && ready("web") == 0 &&
           !all[0]["endpoints"][0]["conditions"]["serving"].as_bool(true) &&
           endpoints["subsets"][0]["notReadyAddresses"].size() == 1 &&
           !endpoints["subsets"][0]["addresses"].exists();
  })) << subsets("web");
  EXPECT_TRUE(eventually([&] { return ready("all") == 1; }));
  const EndpointSlice slice = slices("all")[0];
  EXPECT_TRUE(slice.labels()["service.kubernetes.io/headless"].exists());
  EXPECT_TRUE(eventually([&] {
    return held(endpoints_of("all"))["subsets"][0]["addresses"].size() == 1;
  })) << subsets("all");
}

TEST_F(SimulatedServicesTest, EndpointsOfAStatefulSetHaveHostNames) {
  create<Service>("db", R"({"selector":{"app":"db"},"clusterIP":"None"})");
  create<StatefulSet>("db", workload("db", 2, R"(,"serviceName":"db")"));
  ASSERT_TRUE(eventually([&] { return ready("db") == 2; }));
  std::set<std::string> names;
  const EndpointSlice slice = slices("db")[0];
  for (const api::Value endpoint : slice["endpoints"].elements())
    names.emplace(endpoint["hostname"].as_string());
  EXPECT_THAT(names, ElementsAre("db-0", "db-1"));
  EXPECT_TRUE(slice["ports"].empty()) << "a headless service needs no ports";
  EXPECT_TRUE(eventually([&] {
    const Endpoints now = endpoints_of("db");
    const api::Value addresses = now["subsets"][0]["addresses"];
    return addresses.size() == 2 && addresses[0]["hostname"].exists();
  })) << subsets("db");
}

TEST_F(SimulatedServicesTest, EndpointsOfOthersAreLeftAlone) {
  create<Service>("outside", R"({"ports":[{"port":80}]})");
  in<Endpoints>().create(api::Object::parse(
      R"({"metadata":{"name":"outside"},"subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]})"));
  in<Endpoints>().create(api::Object::parse(R"({"metadata":{"name":"alone"}})"));
  create<Service>("web", service("web"));
  create<Deployment>("web", workload("web", 1));
  ASSERT_TRUE(eventually([&] { return ready("web") == 1; }));
  EXPECT_THAT(subsets("outside"), HasSubstr("192.0.2.1"));
  in<Service>().remove("outside");
  EXPECT_TRUE(eventually([&] { return subsets("outside") == "none"; }))
      << "as in Kubernetes, they go with their service";
  EXPECT_TRUE(in<Endpoints>().find("alone"));
}

TEST_F(SimulatedServicesTest, ARegistryLivesOnTheSlices) {
  create<Service>("web", service("web"));
  create<Deployment>("web", workload("web", 2));
  registry::Options options;
  options.ns = "default";
  registry::services::Registry registry(client_, options);
  auto watcher = registry.watch("web");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto addresses_of = [&](std::size_t wanted) {
    std::set<std::string> out;
    for (;;) {
      const auto next = watcher.next({}, deadline);
      if (!next) {
        ADD_FAILURE() << to_string(next.outcome());
        return out;
      }
      out.clear();
      for (const auto& instance : *next) {
        for (const auto& endpoint : instance.endpoints) out.emplace(endpoint.host());
      }
      if (out.size() == wanted) return out;
    }
  };
  const auto of_pods = [&] {
    std::set<std::string> out;
    for (const Pod& pod : pods("web")) out.emplace(pod.status().pod_ip());
    return out;
  };
  const auto two = addresses_of(2);
  EXPECT_EQ(two, of_pods());
  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":4}})");
  const auto four = addresses_of(4);
  EXPECT_EQ(four, of_pods());
  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":1}})");
  const auto left = addresses_of(1);
  ASSERT_TRUE(eventually([&] { return pods("web").size() == 1; }));
  EXPECT_EQ(left, of_pods());
}

}  // namespace
}  // namespace lookout::cmd::cluster
