// Three controllers, each with a bug that only appears under faults, and without it.
// docs/guide/simulation.md explains them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lookout/controller/manager.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/testing/sim/gtest.h>

#include <chrono>
#include <initializer_list>
#include <map>
#include <string>

#include "claims.h"
#include "names.h"
#include "releases.h"

namespace {

using namespace lookout;
using namespace std::chrono_literals;
using k8s::apps::v1::StatefulSet;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::PersistentVolumeClaim;
using k8s::core::v1::Pod;
using sim::FaultKind;
using testing::HasSubstr;

using AddController = void (*)(controller::Manager& manager);

/// The program in a world, like its main().
void run(sim::World& world, AddController add) {
  world.start("controller", [add](sim::Process& process) {
    controller::Manager manager(process.client());
    add(manager);
    manager.run(process.stop());
  });
}

// ------------------------------------------------------------------------- a stale read

StatefulSet make_set(sim::World& world, const std::string& name) {
  const auto draft = StatefulSet::draft(name, "default");
  draft.spec().selector().match_labels().set("app", name);
  const auto pods = draft.spec().pod_template();
  pods.metadata().labels().set("app", name);
  pods.spec().containers().append("db").set_image("db:1");
  return world.admin().resource<StatefulSet>("default").create(draft);
}

/// A set's claim exists as long as the set.
void keeps_data(sim::World& world, std::map<std::string, std::string>& claim_of) {
  world.always("a set keeps its claim", [&] {
    for (const auto& set : world.admin().resource<StatefulSet>("default").list().items) {
      const auto claim = world.admin().resource<PersistentVolumeClaim>("default").find(
          "data-" + std::string(set.name()));
      const std::string uid(claim ? claim.uid() : "");
      if (!uid.empty()) claim_of.try_emplace(std::string(set.uid()), uid);
      const auto had = claim_of.find(std::string(set.uid()));
      if (had != claim_of.end() && had->second != uid) return false;
    }
    return true;
  });
}

void two_sets(sim::World& world, AddController add) {
  std::map<std::string, std::string> claim_of;
  keeps_data(world, claim_of);
  make_set(world, "old");
  run(world, add);
  world.at(20s, [&] { make_set(world, "db"); });
  world.at(60s, [&] { world.admin().resource<StatefulSet>("default").remove("old"); });
  world.run(90s);
}

// ------------------------------------------------------------------------- a crash between two
// writes

void two_releases(sim::World& world, AddController add) {
  const auto apps = world.admin().resource<ConfigMap>("default");
  const auto app = ConfigMap::draft("web", "default");
  app.data().set("release", "v1");
  apps.create(app);
  run(world, add);
  world.at(30s, [&] {
    const auto change = apps.get("web").edit();
    change.data().set("release", "v2");
    apps.patch(change);
  });
  world.run(60s);
}

// ------------------------------------------------------------------------- an unobserved state

void two_pods(sim::World& world, AddController add) {
  const auto pods = world.admin().resource<Pod>("default");
  for (const std::string name : {"web-0", "web-1"}) {
    const auto pod = Pod::draft(name, "default");
    pod.metadata().labels().set(names::kPodLabel, name);
    pod.spec().set_node_name("node-1").set_termination_grace_period_seconds(10);
    pod.spec().containers().append("web").set_image("web:1");
    pods.create(pod);
  }
  run(world, add);
  world.at(30s, [&] { pods.remove("web-1"); });
  world.run(60s);
}

// ------------------------------------------------------------------------- the worlds

// Fewer kinds of faults with higher probabilities find a particular bug sooner.
sim::ExploreOptions many(double per_request, std::initializer_list<FaultKind> kinds) {
  sim::ExploreOptions options;
  options.seeds = 1000;
  options.faults = sim::only(kinds);
  options.faults.per_request = per_request;
  return options;
}

void expect_found(const sim::Outcome& outcome, const std::string& violation) {
  ASSERT_FALSE(outcome.passed);
  EXPECT_THAT(outcome.violation, HasSubstr(violation));
  EXPECT_LE(outcome.plan.size(), 3u) << outcome.report;
}

TEST(BuggyClaimsTest, AStaleReadDeletesData) {
  const sim::Outcome outcome = sim::explore(
      "BuggyClaims", [](sim::World& world) { two_sets(world, claims::add_buggy_controller); },
      many(0.05, {FaultKind::kCrash, FaultKind::kStaleRead}));
  expect_found(outcome, "a set keeps its claim");
}

TEST(BuggyReleasesTest, ACrashBetweenTwoWritesLeavesTheOldRelease) {
  const sim::Outcome outcome = sim::explore(
      "BuggyReleases",
      [](sim::World& world) { two_releases(world, releases::add_buggy_controller); },
      many(0.05, {FaultKind::kCrashBefore, FaultKind::kCrashAfter}));
  expect_found(outcome, "left over: deployments.apps/default/web-v1");
}

TEST(BuggyNamesTest, APodThatTerminatedUnseenKeepsItsName) {
  const sim::Outcome outcome = sim::explore(
      "BuggyNames", [](sim::World& world) { two_pods(world, names::add_buggy_controller); },
      many(0.2, {FaultKind::kCutStream, FaultKind::kStallStream, FaultKind::kExpireWatch}));
  expect_found(outcome, "left over: services/default/web-1");
}

// Not random: the requests of the run without faults show where a fault can strike.
sim::Outcome crash_at_each_request(AddController add) {
  sim::ExploreOptions options;
  options.seeds = 1;
  return sim::explore_each(
      "Releases", [add](sim::World& world) { two_releases(world, add); },
      {FaultKind::kCrashBefore, FaultKind::kCrashAfter}, options);
}

TEST(BuggyReleasesTest, IsFoundByACrashAtEachRequest) {
  expect_found(crash_at_each_request(releases::add_buggy_controller),
               "left over: deployments.apps/default/web-v1");
}

TEST(ReleasesTest, ACrashAtAnyRequestLeavesNothingBehind) {
  const sim::Outcome outcome = crash_at_each_request(releases::add_controller);
  EXPECT_TRUE(outcome.passed) << outcome.report;
}

LOOKOUT_SIM_TEST(ClaimsWorlds, SetsKeepTheirClaims, {.seeds = 50}) {
  two_sets(world, claims::add_controller);
}

LOOKOUT_SIM_TEST(ReleasesWorlds, CleansUpOldReleases, {.seeds = 50}) {
  two_releases(world, releases::add_controller);
}

LOOKOUT_SIM_TEST(NamesWorlds, NamesGoWithTheirPods, {.seeds = 50}) {
  two_pods(world, names::add_controller);
}

}  // namespace
