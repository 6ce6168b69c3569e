// Events, taints and disruption budgets of the simulated cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/pods.h"
#include "lookout/api/status.h"
#include "lookout/k8s/batch/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/policy/v1.h"
#include "lookout/rest/subresources.h"
#include "tests/cmd/simulated_cluster.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::policy::v1::PodDisruptionBudget;

class SimulatedEventsTest : public SimulatedClusterTest {
 protected:
  /// "component reason: message" for each event about an object.
  std::set<std::string> events(std::string_view name) const {
    std::set<std::string> out;
    const auto all = in<k8s::core::v1::Event>().list(
        {.field_selector = fmt::format("involvedObject.name={}", name)});
    for (const auto& event : all.items) {
      out.insert(fmt::format("{} {}: {}", event["source"]["component"].as_string(), event.reason(),
                             event.message()));
    }
    return out;
  }
  /// True when these events have been written.
  bool has_events(std::string_view name, const std::set<std::string>& wanted) const {
    return eventually([&] {
      const auto all = events(name);
      return std::ranges::includes(all, wanted);
    });
  }
  void taint(const std::string& node, std::string_view effect) const {
    client_.resource<Node>().patch(
        node, rest::PatchType::kMerge,
        fmt::format(R"({{"spec":{{"taints":[{{"key":"only","value":"gpu","effect":"{}"}}]}}}})",
                    effect));
  }
  std::set<std::string> nodes_of(const std::string& app) const {
    std::set<std::string> out;
    for (const Pod& pod : pods(app)) {
      if (is_live(pod)) out.emplace(pod.spec().node_name());
    }
    return out;
  }
  static bool is_live(const Pod& pod) {
    return !pod["metadata"]["deletionTimestamp"].exists() && pod.status().phase() == "Running";
  }
  std::string condition(const api::Object& object, std::string_view type) const {
    for (const api::Value one : object["status"]["conditions"].elements()) {
      if (one["type"].as_string() == type)
        return fmt::format("{} {}", one["status"].as_string(), one["reason"].as_string());
    }
    return "";
  }
};

TEST_F(SimulatedEventsTest, ADeploymentHasTheEventsOfARealOne) {
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  const std::string set(held(sets()[0]).name());
  const Pod pod = pods("web")[0];
  const Pod other = pods("web")[1];
  EXPECT_TRUE(has_events("web", {fmt::format("deployment-controller ScalingReplicaSet: Scaled up "
                                             "replica set {} from 0 to 2",
                                             set)}));
  EXPECT_TRUE(has_events(
      set, {fmt::format("replicaset-controller SuccessfulCreate: Created pod: {}", pod.name()),
            fmt::format("replicaset-controller SuccessfulCreate: Created pod: {}", other.name())}));
  EXPECT_TRUE(
      has_events(pod.name(),
                 {fmt::format("default-scheduler Scheduled: Successfully assigned default/{} to {}",
                              pod.name(), pod.spec().node_name()),
                  "kubelet Pulled: Container image \"web:1\" already present on machine and can be "
                  "accessed by "
                  "the pod",
                  "kubelet Created: Container created", "kubelet Started: Container started"}));
  const auto started = in<k8s::core::v1::Event>().list(
      {.field_selector = fmt::format("reason=Started,involvedObject.name={}", pod.name())});
  ASSERT_THAT(started.items, SizeIs(1));
  const auto& event = started.items[0];
  EXPECT_EQ(event["source"]["host"].as_string(), pod.spec().node_name());
  EXPECT_EQ(event["involvedObject"]["fieldPath"].as_string(), "spec.containers{c}");
  EXPECT_EQ(event["involvedObject"]["uid"].as_string(), pod.uid());
  EXPECT_EQ(event["type"].as_string(), "Normal");

  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":0}})");
  EXPECT_TRUE(has_events("web", {fmt::format("deployment-controller ScalingReplicaSet: Scaled down "
                                             "replica set {} from 2 to 0",
                                             set)}));
  EXPECT_TRUE(has_events(
      set, {fmt::format("replicaset-controller SuccessfulDelete: Deleted pod: {}", pod.name())}));
  EXPECT_TRUE(has_events(pod.name(), {"kubelet Killing: Stopping container c"}));
}

TEST_F(SimulatedEventsTest, OtherWorkloadsHaveEvents) {
  create<StatefulSet>(
      "db",
      workload(
          "db", 1,
          R"(,"serviceName":"db","volumeClaimTemplates":[{"metadata":{"name":"data"},)"
          R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}])"));
  EXPECT_TRUE(has_events(
      "db",
      {"statefulset-controller SuccessfulCreate: create Claim data-db-0 Pod db-0 in "
       "StatefulSet db success",
       "statefulset-controller SuccessfulCreate: create Pod db-0 in StatefulSet db successful"}));
  create<DaemonSet>(
      "agent", fmt::format(R"({{"selector":{{"matchLabels":{{"app":"agent"}}}},"template":{}}})",
                           pod_template("agent")));
  ASSERT_TRUE(eventually([&] { return nodes_of("agent").size() == 3; }));
  EXPECT_TRUE(
      has_events("agent", {fmt::format("daemonset-controller SuccessfulCreate: Created pod: {}",
                                       held(pods("agent")[0]).name())}));
  create<Job>("sum", fmt::format(R"({{"template":{}}})",
                                 pod_template("sum", R"(,"restartPolicy":"Never")")));
  EXPECT_TRUE(has_events("sum", {"job-controller Completed: Job completed"}));
  create<Pod>("picky",
              R"({"nodeSelector":{"disk":"fast"},"containers":[{"name":"c","image":"i"}]})");
  EXPECT_TRUE(has_events(
      "picky",
      {"default-scheduler FailedScheduling: 0/3 nodes are available: 3 node(s) didn't match "
       "Pod's node affinity/selector."}));
}

TEST_F(SimulatedEventsTest, StopWritesTheLastEvents) {
  create<Deployment>("web", workload("web", 1));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  const std::string name(held(pods("web")[0]).name());
  cluster_.stop();
  EXPECT_THAT(events(name), Contains("kubelet Started: Container started"));
}

TEST_F(SimulatedEventsTest, RefusedPodsAreReported) {
  using k8s::core::v1::ResourceQuota;
  create<ResourceQuota>("few", R"({"hard":{"pods":"1"}})");
  ASSERT_TRUE(eventually(
      [&] { return held(in<ResourceQuota>().get("few"))["status"]["hard"]["pods"].exists(); }));
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] {
    return condition(in<Deployment>().get("web"), kReplicaFailure) == "True FailedCreate";
  }));
  const ReplicaSet set = sets()[0];
  EXPECT_EQ(condition(set, kReplicaFailure), "True FailedCreate");
  EXPECT_TRUE(eventually([&] {
    for (const std::string& event : events(set.name())) {
      if (event.find("FailedCreate: Error creating: pods \"web-") != std::string::npos &&
          event.find("exceeded quota: few") != std::string::npos)
        return true;
    }
    return false;
  }));
  EXPECT_TRUE(
      eventually([&] { return held(in<ReplicaSet>().get(set.name())).status().replicas() == 1; }));
  in<ResourceQuota>().remove("few");
  EXPECT_TRUE(eventually([&] {
    return is_rolled_out("web") && condition(in<Deployment>().get("web"), kReplicaFailure).empty();
  }));
}

TEST_F(SimulatedEventsTest, TaintsKeepPodsAway) {
  taint("node-1", "NoSchedule");
  create<Deployment>("web", workload("web", 4));
  const std::string agent = fmt::format(
      R"({{"selector":{{"matchLabels":{{"app":"agent"}}}},"template":{}}})", pod_template("agent"));
  create<DaemonSet>("agent", agent);
  create<DaemonSet>("all",
                    fmt::format(R"({{"selector":{{"matchLabels":{{"app":"all"}}}},"template":{}}})",
                                pod_template("all", R"(,"tolerations":[{"operator":"Exists"}])")));
  ASSERT_TRUE(eventually([&] {
    return is_rolled_out("web") && nodes_of("all").size() == 3 && nodes_of("agent").size() == 2;
  }));
  EXPECT_THAT(nodes_of("web"), ElementsAre("node-2", "node-3"));
  EXPECT_THAT(nodes_of("agent"), ElementsAre("node-2", "node-3"));

  taint("node-2", "NoSchedule");
  ASSERT_TRUE(eventually(
      [&] { return held(in<DaemonSet>().get("agent")).status().number_misscheduled() == 1; }));
  EXPECT_THAT(nodes_of("agent"), ElementsAre("node-2", "node-3")) << "the pod stays";
  taint("node-2", "NoExecute");
  EXPECT_TRUE(eventually([&] {
    return is_rolled_out("web") && nodes_of("web") == std::set<std::string>{"node-3"} &&
           nodes_of("agent") == std::set<std::string>{"node-3"};
  }));
  EXPECT_THAT(nodes_of("all"), SizeIs(3));
}

TEST_F(SimulatedEventsTest, PodsOfADeletedNodeAreReplaced) {
  create<Deployment>("web", workload("web", 3));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  client_.resource<Node>().remove("node-1");
  EXPECT_TRUE(eventually([&] {
    return is_rolled_out("web") && nodes_of("web") == std::set<std::string>{"node-2", "node-3"};
  }));
}

TEST_F(SimulatedEventsTest, EvictionsRespectABudget) {
  create<PodDisruptionBudget>("web",
                              R"({"minAvailable":"60%","selector":{"matchLabels":{"app":"web"}}})");
  create<Deployment>("web", workload("web", 4));
  const auto status = [&] {
    const PodDisruptionBudget now = in<PodDisruptionBudget>().get("web");
    const auto all = now.status();
    return fmt::format("{} of {}, {} needed, {} allowed, {}", all.current_healthy().value_or(-1),
                       all.expected_pods().value_or(-1), all.desired_healthy().value_or(-1),
                       all.disruptions_allowed().value_or(-1), condition(now, "DisruptionAllowed"));
  };
  const std::string calm = "4 of 4, 3 needed, 1 allowed, True SufficientPods";
  ASSERT_TRUE(eventually([&] { return status() == calm; })) << status();
  const auto live = client_.resource(Pod::kResource, "default");
  // A pod without a node cannot become ready, so the second eviction is refused.
  for (const char* node : {"node-1", "node-2", "node-3"}) {
    client_.resource<Node>().patch(node, rest::PatchType::kMerge,
                                   R"({"spec":{"unschedulable":true}})");
  }
  const auto present = pods("web");
  rest::evict(live, present[0].name());
  EXPECT_TRUE(eventually([&] {
    return status() == "3 of 4, 3 needed, 0 allowed, False InsufficientPods";
  })) << status();
  try {
    rest::evict(live, present[1].name());
    ADD_FAILURE() << "the budget has been overdrawn";
  } catch (const api::StatusError& e) {
    EXPECT_EQ(e.code(), 429) << e.what();
  }
  for (const char* node : {"node-1", "node-2", "node-3"}) {
    client_.resource<Node>().patch(node, rest::PatchType::kMerge,
                                   R"({"spec":{"unschedulable":null}})");
  }
  EXPECT_TRUE(eventually([&] { return status() == calm; })) << status();
  EXPECT_TRUE(held(in<PodDisruptionBudget>().get("web"))["status"]["disruptedPods"].empty());
}

TEST_F(SimulatedEventsTest, AJobIsSuspendedAndExpires) {
  create<Job>("sum", fmt::format(R"({{"suspend":true,"ttlSecondsAfterFinished":1,"template":{}}})",
                                 pod_template("sum", R"(,"restartPolicy":"Never")")));
  ASSERT_TRUE(eventually(
      [&] { return condition(in<Job>().get("sum"), "Suspended") == "True JobSuspended"; }));
  EXPECT_THAT(pods("sum"), IsEmpty());
  in<Job>().patch("sum", rest::PatchType::kMerge, R"({"spec":{"suspend":false}})");
  EXPECT_TRUE(has_events(
      "sum", {"job-controller Suspended: Job suspended", "job-controller Resumed: Job resumed",
              "job-controller Completed: Job completed"}));
  EXPECT_TRUE(eventually([&] { return !in<Job>().find("sum") && pods("sum").empty(); }));
}

}  // namespace
}  // namespace lookout::cmd::cluster
