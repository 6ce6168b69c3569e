// Services, endpoints and events of the simulated cluster, on virtual time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cmd/cluster/names.h"
#include "cmd/cluster/simulated_cluster.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/discovery/v1.h"
#include "lookout/testing/sim/gtest.h"
#include "tests/sim/worlds.h"

namespace lookout::cmd::cluster {
namespace {

/// Two equal runs of each world.
sim::ExploreOptions twice() {
  sim::ExploreOptions out;
  out.seeds = 3;
  out.faults.per_request = 0;
  out.faults.per_minute = 0;
  out.stable = false;
  out.twice = true;
  return out;
}

void run_simulated_cluster(sim::Process& p) {
  SimulatedCluster cluster(p.client());
  test::wait_for_stop(p.stop());
  cluster.stop();
}

template <class T>
void create(sim::World& world, const std::string& json) {
  world.admin().resource<T>("default").create(api::Object::parse(json));
}

/// The addresses in the slices, and those in the Endpoints, of the service "web".
std::set<std::string> in_slices(sim::World& world) {
  std::set<std::string> out;
  for (const auto& slice : world.admin().resource<EndpointSlice>("default").list().items) {
    for (const api::Value endpoint : slice["endpoints"].elements()) {
      if (endpoint["conditions"]["ready"].as_bool())
        out.emplace(endpoint["addresses"][0].as_string());
    }
  }
  return out;
}
std::set<std::string> in_endpoints(sim::World& world) {
  std::set<std::string> out;
  const Endpoints found = world.admin().resource<Endpoints>("default").get("web");
  for (const api::Value subset : found["subsets"].elements()) {
    for (const api::Value address : subset["addresses"].elements())
      out.emplace(address["ip"].as_string());
  }
  return out;
}
std::set<std::string> of_pods(sim::World& world) {
  std::set<std::string> out;
  for (const Pod& pod : world.admin().resource<Pod>("default").list().items)
    out.emplace(pod.status().pod_ip());
  return out;
}

LOOKOUT_SIM_TEST(SimulatedClusterWorlds, ServicesFollowTheirPods, twice()) {
  world.start("cluster", run_simulated_cluster);
  create<Service>(world, R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},)"
                         R"("ports":[{"port":80,"targetPort":8080}]}})");
  create<Deployment>(world,
                     R"({"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":)"
                     R"({"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},)"
                     R"("spec":{"containers":[{"name":"c","image":"web:1"}]}}}})");
  world.sleep(30s);
  EXPECT_EQ(of_pods(world).size(), 3u);
  EXPECT_EQ(in_slices(world), of_pods(world));
  EXPECT_EQ(in_endpoints(world), of_pods(world));

  // Events are written within the same time.
  std::multiset<std::string> reasons;
  for (const auto& event : world.admin().resource<k8s::core::v1::Event>("default").list().items)
    reasons.emplace(event.reason());
  EXPECT_EQ(reasons.count("ScalingReplicaSet"), 1u);
  for (const char* reason : {"SuccessfulCreate", "Scheduled", "Pulled", "Created", "Started"})
    EXPECT_EQ(reasons.count(reason), 3u) << reason;

  world.admin().resource<Deployment>("default").patch("web", rest::PatchType::kMerge,
                                                      R"({"spec":{"replicas":1}})");
  world.sleep(30s);
  EXPECT_EQ(of_pods(world).size(), 1u);
  EXPECT_EQ(in_slices(world), of_pods(world));
  EXPECT_EQ(in_endpoints(world), of_pods(world));
  world.admin().resource<Service>("default").remove("web");
  world.sleep(30s);
  EXPECT_TRUE(in_slices(world).empty());
  EXPECT_FALSE(world.admin().resource<Endpoints>("default").find("web"));
}

}  // namespace
}  // namespace lookout::cmd::cluster
