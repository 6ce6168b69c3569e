// The simulated cluster of `lookout serve --simulate-cluster`, around a server in this process.
#include "tests/cmd/simulated_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/batch/v1.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::apps::v1::ControllerRevision;

TEST_F(SimulatedClusterTest, NodesAreReadyAndPodsRunOnThem) {
  for (const Node& node : client_.resource<Node>().list().items)
    EXPECT_EQ(node["status"]["conditions"][0]["status"].as_string(), "True") << node.name();
  create<Deployment>("web", workload("web", 4));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  std::set<std::string> addresses;
  std::set<std::string> nodes;
  for (const Pod& pod : pods("web")) {
    addresses.emplace(pod.status().pod_ip());
    nodes.emplace(pod.spec().node_name());
    EXPECT_EQ(pod.status().phase(), "Running");
  }
  EXPECT_THAT(addresses, SizeIs(4));
  EXPECT_THAT(nodes, UnorderedElementsAre("node-1", "node-2", "node-3"));
}

TEST_F(SimulatedClusterTest, ADeploymentIsRolledOutAndBack) {
  create<Deployment>("web", workload("web", 3));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  set_image<Deployment>("web", "web:2");
  int fewest = 3;
  ASSERT_TRUE(eventually([&] {
    const auto now = pods("web");
    const auto ready = std::count_if(now.begin(), now.end(), [](const Pod& pod) {
      return pod["status"]["conditions"][3]["status"].as_string() == "True";
    });
    fewest = std::min(fewest, static_cast<int>(ready));
    return is_rolled_out("web");
  }));
  EXPECT_GE(fewest, 2)
      << "a quarter of three, rounded down, may be missing; one is just being deleted";
  EXPECT_TRUE(eventually([&] { return pods("web").size() == 3; }));
  for (const Pod& pod : pods("web")) EXPECT_EQ(image(pod), "web:2");
  EXPECT_THAT(sets(), SizeIs(2));
  const auto revision = [&] {
    return std::string(held(in<Deployment>().get("web"))
                           .annotations()["deployment.kubernetes.io/revision"]
                           .as_string());
  };
  EXPECT_EQ(revision(), "2");

  set_image<Deployment>("web", "web:1");
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  EXPECT_THAT(sets(), SizeIs(2)) << "the old one is used again";
  EXPECT_TRUE(eventually([&] { return revision() == "3"; }));
}

TEST_F(SimulatedClusterTest, APausedDeploymentIsOnlyScaled) {
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  in<Deployment>().patch("web", rest::PatchType::kMerge,
                         R"({"spec":{"paused":true,"replicas":4}})");
  set_image<Deployment>("web", "web:2");
  ASSERT_TRUE(
      eventually([&] { return held(in<Deployment>().get("web")).status().ready_replicas() == 4; }));
  EXPECT_THAT(sets(), SizeIs(1));
  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"paused":false}})");
  EXPECT_TRUE(eventually([&] { return is_rolled_out("web"); }));
}

TEST_F(SimulatedClusterTest, RecreateNeverRunsPodsOfTwoTemplates) {
  create<Deployment>("web", workload("web", 3, R"(,"strategy":{"type":"Recreate"})"));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  set_image<Deployment>("web", "web:2");
  ASSERT_TRUE(eventually([&] {
    std::set<std::string> images;
    for (const Pod& pod : pods("web")) images.insert(image(pod));
    EXPECT_LE(images.size(), 1U);
    return is_rolled_out("web");
  }));
}

TEST_F(SimulatedClusterTest, OldReplicaSetsAreDeleted) {
  create<Deployment>("web", workload("web", 1, R"(,"revisionHistoryLimit":1)"));
  for (int i = 2; i <= 4; ++i) {
    ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
    set_image<Deployment>("web", fmt::format("web:{}", i));
  }
  EXPECT_TRUE(eventually([&] { return is_rolled_out("web") && sets().size() == 2; }));
}

TEST_F(SimulatedClusterTest, ADeletedDeploymentDeletesItsPods) {
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  in<Deployment>().remove("web");
  EXPECT_TRUE(eventually([&] { return pods("web").empty() && sets().empty(); }));
}

TEST_F(SimulatedClusterTest, AReplicaSetReleasesAndAdoptsPods) {
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  const std::string name(held(pods("web")[0]).name());
  const auto label = [&](const char* app) {
    in<Pod>().patch(name, rest::PatchType::kMerge,
                    fmt::format(R"({{"metadata":{{"labels":{{"app":"{}"}}}}}})", app));
  };
  // Takes the pod out of service for a closer look.
  label("broken");
  EXPECT_TRUE(eventually([&] {
    return pods("web").size() == 2 &&
           held(in<Pod>().get(name))["metadata"]["ownerReferences"].empty();
  }));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  label("web");
  // It is adopted, and one of the three is deleted.
  EXPECT_TRUE(eventually([&] {
    const auto now = pods("web");
    return now.size() == 2 && std::all_of(now.begin(), now.end(), [](const Pod& pod) {
             return pod["metadata"]["ownerReferences"][0]["controller"].as_bool();
           });
  }));
}

TEST_F(SimulatedClusterTest, ADeploymentAdoptsTheReplicaSetOfAnOrphaningDeletion) {
  create<Deployment>("web", workload("web", 2));
  ASSERT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  const auto names = [&] {
    std::set<std::string> out;
    for (const Pod& pod : pods("web")) out.emplace(pod.name());
    return out;
  };
  const auto before = names();
  in<Deployment>().remove("web", {.propagation_policy = rest::PropagationPolicy::kOrphan});
  ASSERT_TRUE(eventually([&] {
    return !in<Deployment>().find("web") &&
           held(sets().at(0))["metadata"]["ownerReferences"].empty();
  }));
  const Deployment again = create<Deployment>("web", workload("web", 2));
  EXPECT_TRUE(eventually([&] { return is_rolled_out("web"); }));
  ASSERT_THAT(sets(), SizeIs(1));
  EXPECT_EQ(held(sets()[0])["metadata"]["ownerReferences"][0]["uid"].as_string(), again.uid());
  EXPECT_EQ(names(), before);
}

TEST_F(SimulatedClusterTest, AStatefulSetStartsAndEndsInOrder) {
  create<StatefulSet>(
      "db",
      workload(
          "db", 3,
          R"(,"serviceName":"db","volumeClaimTemplates":[{"metadata":{"name":"data"},)"
          R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}])"));
  std::size_t most = 0;
  ASSERT_TRUE(eventually([&] {
    const auto present = pods("db");
    EXPECT_GE(present.size(), most);
    most = present.size();
    return held(in<StatefulSet>().get("db")).status().ready_replicas() == 3;
  }));
  std::vector<std::string> names;
  for (const Pod& pod : pods("db")) names.emplace_back(pod.name());
  EXPECT_THAT(names, UnorderedElementsAre("db-0", "db-1", "db-2"));
  EXPECT_EQ(in<k8s::core::v1::PersistentVolumeClaim>().list().items.size(), 3U);

  set_image<StatefulSet>("db", "db:2");
  EXPECT_TRUE(eventually([&] {
    const StatefulSet set = in<StatefulSet>().get("db");
    const auto status = set.status();
    return status.updated_replicas() == 3 && status.ready_replicas() == 3 &&
           status.current_revision() == status.update_revision();
  }));
  in<StatefulSet>().patch("db", rest::PatchType::kMerge, R"({"spec":{"replicas":1}})");
  ASSERT_TRUE(eventually([&] { return pods("db").size() == 1; }));
  EXPECT_EQ(pods("db")[0].name(), "db-0");
}

// `kubectl rollout undo` patches the set with the data of a revision.
TEST_F(SimulatedClusterTest, AStatefulSetIsRolledBackToARevision) {
  create<StatefulSet>("db", workload("db", 2, R"(,"serviceName":"db","revisionHistoryLimit":1)"));
  const auto runs = [&](const std::string& wanted) {
    const StatefulSet set = in<StatefulSet>().get("db");
    const auto now = pods("db");
    return set.status().updated_replicas() == 2 && set.status().ready_replicas() == 2 &&
           now.size() == 2 && std::all_of(now.begin(), now.end(), [&](const Pod& pod) {
             return image(pod) == wanted;
           });
  };
  ASSERT_TRUE(eventually([&] { return runs("db:1"); }));
  set_image<StatefulSet>("db", "db:2");
  ASSERT_TRUE(eventually([&] { return runs("db:2"); }));
  const auto numbers = [&] {
    std::map<std::int64_t, std::string> out;
    for (const auto& one : in<ControllerRevision>().list({.label_selector = "app=db"}).items) {
      out.emplace(one.revision(),
                  one["data"]["spec"]["template"]["spec"]["containers"][0]["image"].as_string());
    }
    return out;
  };
  EXPECT_EQ(numbers(), (std::map<std::int64_t, std::string>{{1, "db:1"}, {2, "db:2"}}));
  const auto revisions = in<ControllerRevision>().list().items;
  const auto first = std::find_if(revisions.begin(), revisions.end(),
                                  [](const auto& one) { return one.revision() == 1; });
  ASSERT_NE(first, revisions.end());
  in<StatefulSet>().patch("db", rest::PatchType::kStrategicMerge, (*first)["data"].to_json());
  EXPECT_TRUE(eventually([&] { return runs("db:1"); }));
  EXPECT_TRUE(eventually([&] {
    return numbers() == std::map<std::int64_t, std::string>{{2, "db:2"}, {3, "db:1"}};
  })) << "the old revision is the newest again";
  set_image<StatefulSet>("db", "db:3");
  EXPECT_TRUE(eventually([&] {
    return numbers() == std::map<std::int64_t, std::string>{{3, "db:1"}, {4, "db:3"}};
  })) << "one old revision is kept";
}

TEST_F(SimulatedClusterTest, ADaemonSetIsRolledBackToARevision) {
  create<DaemonSet>(
      "agent", fmt::format(R"({{"selector":{{"matchLabels":{{"app":"agent"}}}},"template":{}}})",
                           pod_template("agent")));
  const auto runs = [&](const std::string& wanted) {
    const auto now = pods("agent");
    return now.size() == 3 && std::all_of(now.begin(), now.end(), [&](const Pod& pod) {
             return image(pod) == wanted && pod.status().phase() == "Running";
           });
  };
  ASSERT_TRUE(eventually([&] { return runs("agent:1"); }));
  const auto revisions = in<ControllerRevision>().list({.label_selector = "app=agent"}).items;
  ASSERT_THAT(revisions, SizeIs(1));
  EXPECT_EQ(revisions[0].labels()["controller-revision-hash"].as_string(),
            held(pods("agent")[0]).labels()["controller-revision-hash"].as_string());
  set_image<DaemonSet>("agent", "agent:2");
  ASSERT_TRUE(eventually([&] { return runs("agent:2"); }));
  in<DaemonSet>().patch("agent", rest::PatchType::kStrategicMerge, revisions[0]["data"].to_json());
  EXPECT_TRUE(eventually([&] { return runs("agent:1"); }));
}

TEST_F(SimulatedClusterTest, AStuckDeploymentReportsIt) {
  const auto progressing = [&] {
    const Deployment d = in<Deployment>().get("web");
    for (const auto condition : d.status().conditions()) {
      if (condition.type() == "Progressing")
        return fmt::format("{} {}", condition.status(), condition.reason());
    }
    return std::string();
  };
  create<Deployment>("web", workload("web", 2, R"(,"progressDeadlineSeconds":1)"));
  ASSERT_TRUE(eventually([&] { return progressing() == "True NewReplicaSetAvailable"; }));
  const auto select = [&](const char* selector) {
    in<Deployment>().patch(
        "web", rest::PatchType::kMerge,
        fmt::format(R"({{"spec":{{"template":{{"spec":{{"nodeSelector":{}}}}}}}}})", selector));
  };
  // No node has this label.
  select(R"({"disk":"fast"})");
  ASSERT_TRUE(eventually([&] { return progressing() == "False ProgressDeadlineExceeded"; }));
  select("null");
  EXPECT_TRUE(eventually([&] { return progressing() == "True NewReplicaSetAvailable"; }));
}

TEST_F(SimulatedClusterTest, ADaemonSetHasAPodOnEachNode) {
  create<DaemonSet>(
      "agent", fmt::format(R"({{"selector":{{"matchLabels":{{"app":"agent"}}}},"template":{}}})",
                           pod_template("agent")));
  const auto ready = [&] { return held(in<DaemonSet>().get("agent")).status().number_ready(); };
  ASSERT_TRUE(eventually([&] { return ready() == 3; }));
  const auto node = Node::draft("late");
  client_.resource<Node>().create(node);
  EXPECT_TRUE(eventually([&] { return ready() == 4; }));
  client_.resource<Node>().remove("late");
  EXPECT_TRUE(eventually([&] { return pods("agent").size() == 3; }));
}

TEST_F(SimulatedClusterTest, AJobCompletesWithItsPods) {
  create<Job>("sum", fmt::format(R"({{"completions":3,"parallelism":2,"template":{}}})",
                                 pod_template("sum", R"(,"restartPolicy":"Never")")));
  ASSERT_TRUE(eventually(
      [&] { return held(in<Job>().get("sum")).status().completion_time().has_value(); }));
  EXPECT_EQ(held(in<Job>().get("sum")).status().succeeded(), 3);
  EXPECT_THAT(pods("sum"), SizeIs(3));
}

TEST_F(SimulatedClusterTest, AJobFailsAfterItsBackoffLimit) {
  const std::string fails = fmt::format(
      R"({{"metadata":{{"labels":{{"app":"sum"}},"annotations":{{"{}":"3"}}}},
          "spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}})",
      kExitCode);
  create<Job>("sum", fmt::format(R"({{"backoffLimit":1,"template":{}}})", fails));
  const auto failed = [&]() -> std::string {
    const Job job = in<Job>().get("sum");
    for (const auto condition : job.status().conditions()) {
      if (condition.type() == "Failed" && condition.status() == "True")
        return std::string(condition.reason());
    }
    return "";
  };
  ASSERT_TRUE(eventually([&] { return !failed().empty(); }));
  EXPECT_EQ(failed(), "BackoffLimitExceeded");
  EXPECT_EQ(held(in<Job>().get("sum")).status().failed(), 2);
  ASSERT_THAT(pods("sum"), SizeIs(2));
  const Pod pod = pods("sum")[0];
  EXPECT_EQ(pod.status().phase(), "Failed");
  EXPECT_EQ(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_int(), 3);
}

TEST_F(SimulatedClusterTest, AServiceHasItsReadyPodsAsEndpoints) {
  create<Service>("web", R"({"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"http"}]})");
  create<Deployment>("web", workload("web", 2));
  const auto ready = [&] {
    std::size_t out = 0;
    for (const EndpointSlice& slice : in<EndpointSlice>().list().items) {
      for (const auto endpoint : slice.endpoints())
        out += endpoint.conditions().ready().value_or(false) ? 1U : 0U;
    }
    return out;
  };
  ASSERT_TRUE(eventually([&] { return ready() == 2; }));
  EXPECT_EQ(held(in<EndpointSlice>().list().items[0])["ports"][0]["port"].as_int(), 8080);
  in<Deployment>().patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":1}})");
  EXPECT_TRUE(eventually([&] { return ready() == 1; }));
}

TEST_F(SimulatedClusterTest, AnUnschedulablePodReportsIt) {
  create<Pod>("picky",
              R"({"nodeSelector":{"disk":"fast"},"containers":[{"name":"c","image":"i"}]})");
  const auto reason = [&] {
    const Pod pod = in<Pod>().get("picky");
    for (const auto condition : pod.status().conditions()) {
      if (condition.type() == "PodScheduled") return std::string(condition.reason());
    }
    return std::string();
  };
  ASSERT_TRUE(eventually([&] { return reason() == "Unschedulable"; }));
  client_.resource<Node>().patch("node-2", rest::PatchType::kMerge,
                                 R"({"metadata":{"labels":{"disk":"fast"}}})");
  ASSERT_TRUE(
      eventually([&] { return held(in<Pod>().get("picky")).status().phase() == "Running"; }));
  EXPECT_EQ(held(in<Pod>().get("picky")).spec().node_name(), "node-2");
  EXPECT_EQ(reason(), "") << "it is scheduled";
}

TEST_F(SimulatedClusterTest, ARunningPodIsResizedAndDebugged) {
  create<Pod>("p",
              R"({"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]})");
  const auto status = [&] { return std::string(held(in<Pod>().get("p"))["status"].to_json()); };
  const auto shows = [&](const char* text) {
    return eventually([&] { return status().find(text) != std::string::npos; });
  };
  EXPECT_TRUE(shows(R"("resources":{"requests":{"cpu":"1"}})")) << status();
  const auto patch = [&](const char* subresource, const char* body) {
    in<Pod>().patch("p", rest::PatchType::kStrategicMerge, body, {}, subresource);
  };
  patch("resize", R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  EXPECT_TRUE(shows(R"("allocatedResources":{"cpu":"2"})")) << status();
  EXPECT_TRUE(shows(R"("resources":{"requests":{"cpu":"2"}})")) << status();
  patch("ephemeralcontainers",
        R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox"}]}})");
  EXPECT_TRUE(shows(R"("ephemeralContainerStatuses":[{"name":"debug")")) << status();
}

TEST_F(SimulatedClusterTest, ANamespaceHasAServiceAccount) {
  client_.resource<k8s::core::v1::Namespace>().create(k8s::core::v1::Namespace::draft("shop"));
  EXPECT_TRUE(eventually(
      [&] { return static_cast<bool>(client_.resource<ServiceAccount>("shop").find("default")); }));
}

}  // namespace
}  // namespace lookout::cmd::cluster
