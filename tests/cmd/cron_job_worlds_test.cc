// CronJobs of the simulated cluster, on virtual time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ratio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/jobs.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/simulated_cluster.h"
#include "lookout/api/time.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/batch/v1_draft.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/testing/sim/gtest.h"
#include "tests/sim/worlds.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::batch::v1::CronJob;

/// A world runs in its own process, which returns only exceptions.
void expect(bool holds, std::string_view what) {
  if (!holds) throw sim::Violation(std::string(what));
}
template <class A, class B>
void expect_equal(const A& actual, const B& expected, std::string_view what) {
  if (!(actual == expected))
    throw sim::Violation(fmt::format("{}: {}, not {}", what, actual, expected));
}

/// No faults, because these tests check times.
sim::ExploreOptions calm() {
  sim::ExploreOptions out;
  out.seeds = 1;
  out.faults.per_request = 0;
  out.stable = false;
  return out;
}

void run_cluster(sim::Process& p) {
  SimulatedCluster cluster(p.client());
  test::wait_for_stop(p.stop());
  cluster.stop();
}

/// `more` are members of the CronJob's spec, with a leading comma; pods run for two seconds, or forever.
CronJob create(sim::World& world, std::string_view schedule, std::string_view more = "",
               bool for_ever = false) {
  return world.admin().resource<CronJob>("default").create(api::Object::parse(fmt::format(
      R"({{"metadata":{{"name":"tick"}},"spec":{{"schedule":"{}","jobTemplate":{{"metadata":)"
      R"({{"labels":{{"of":"tick"}}}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","nodeSelector":{},)"
      R"("containers":[{{"name":"c","image":"c:1"}}]}}}}}}}}{}}}}})",
      schedule, for_ever ? R"({"no":"node"})" : "{}", more)));
}

CronJob cron_job(sim::World& world) {
  return world.admin().resource<CronJob>("default").get("tick");
}

std::vector<Job> jobs(sim::World& world) {
  auto out = world.admin().resource<Job>("default").list().items;
  std::ranges::sort(out, {}, [](const Job& job) { return std::string(job.name()); });
  return out;
}

std::vector<std::string> scheduled(sim::World& world) {
  std::vector<std::string> out;
  for (const Job& job : jobs(world)) {
    out.emplace_back(
        job.metadata().annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"]);
  }
  return out;
}

/// The UIDs of status.active.
std::vector<std::string> active(sim::World& world) {
  std::vector<std::string> out;
  const CronJob now = cron_job(world);
  for (const auto job : now.status().active()) out.emplace_back(job.uid());
  return out;
}

/// Sleeps until 30 s after the next full hour.
void sleep_past_hour(sim::World& world) {
  const auto now = std::chrono::system_clock::now();
  const auto hour = std::chrono::ceil<std::chrono::hours>(now);
  world.sleep(std::chrono::ceil<std::chrono::milliseconds>(hour - now) + 30s);
}

/// The last time that "*/10 * * * *" matches.
std::string last_tenth_minute() {
  using TenMinutes = std::chrono::duration<int, std::ratio<600>>;
  return api::format_time(std::chrono::floor<TenMinutes>(std::chrono::system_clock::now()));
}

LOOKOUT_SIM_TEST(CronJobWorlds, RunJobsOnScheduleAndDeleteOldOnes, calm()) {
  world.start("cluster", run_cluster);
  sleep_past_hour(world);
  const CronJob tick = create(world, "*/5 * * * *");
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) {
    world.sleep(1min);
    for (const std::string& time : scheduled(world)) seen.insert(time);
  }
  expect_equal(seen.size(), 12u, "jobs of an hour");
  const auto left = jobs(world);
  expect_equal(left.size(), 3u, "jobs left (successfulJobsHistoryLimit)");
  for (const Job& job : left) {
    expect_equal(how_ended(job), "Complete", "end");
    expect_equal(job.labels()["of"].as_string(), "tick", "label");
    const auto owner = controller::controller_of(job);
    expect(owner && owner->uid() == tick.uid() && owner->kind() == "CronJob", "a controller");
  }
  const std::string last = last_tenth_minute();  // just after a full hour
  expect_equal(scheduled(world).back(), last, "the last job's time");
  const CronJob now = cron_job(world);
  const auto status = now.status();
  expect_equal(api::format_time(status.last_schedule_time().value()), last, "lastScheduleTime");
  expect(status.last_successful_time() == left.back().status().completion_time(),
         "lastSuccessfulTime is the last job's");
  expect(status.active().empty(), "no job is active");

  std::set<std::string> reasons;
  const auto events = world.admin().resource<k8s::core::v1::Event>("default").list(
      {.field_selector = "involvedObject.name=tick"});
  for (const auto& event : events.items) reasons.emplace(event.reason());
  expect_equal(fmt::format("{}", fmt::join(reasons, " ")),
               "SawCompletedJob SuccessfulCreate SuccessfulDelete", "events");

  world.admin().resource<CronJob>("default").remove("tick");
  world.sleep(1min);
  expect(jobs(world).empty(), "jobs go with their CronJob");
}

LOOKOUT_SIM_TEST(CronJobWorlds, FollowTheClocksOfTheirZone, calm()) {
  world.start("cluster", run_cluster);
  sleep_past_hour(world);
  // The offset there is +5:45, so full hours are at quarter past in UTC.
  create(world, "0 * * * *", R"(,"timeZone":"Asia/Kathmandu")");
  world.sleep(2h);
  const auto times = scheduled(world);
  expect_equal(times.size(), 2u, "jobs in two hours");
  for (const std::string& time : times) expect_equal(time.substr(13), ":15:00Z", "time");
}

LOOKOUT_SIM_TEST(CronJobWorlds, RunSideBySideUnlessThePolicyForbids, calm()) {
  world.start("cluster", run_cluster);
  sleep_past_hour(world);
  create(world, "*/10 * * * *", "", true);
  world.sleep(20min);
  expect_equal(jobs(world).size(), 2u, "jobs");
  expect_equal(active(world).size(), 2u, "active jobs");

  const auto patch = [&](std::string_view spec) {
    world.admin().resource<CronJob>("default").patch("tick", rest::PatchType::kMerge,
                                                     fmt::format(R"({{"spec":{}}})", spec));
  };
  patch(R"({"concurrencyPolicy":"Forbid"})");
  world.sleep(20min);
  expect_equal(jobs(world).size(), 2u, "jobs under Forbid");

  patch(R"({"concurrencyPolicy":"Replace"})");
  world.sleep(1min);
  expect_equal(jobs(world).size(), 1u, "jobs under Replace");
  expect_equal(scheduled(world).front(), last_tenth_minute(),
               "the last missed time is made up for");
  expect_equal(active(world), std::vector<std::string>{std::string(jobs(world).front().uid())},
               "active jobs under Replace");

  patch(R"({"suspend":true})");
  world.sleep(20min);
  expect_equal(jobs(world).size(), 1u, "jobs of a CronJob that is suspended");
  patch(R"({"suspend":false,"concurrencyPolicy":"Allow","startingDeadlineSeconds":20})");
  world.sleep(1min);
  expect_equal(jobs(world).size(), 1u, "jobs past their deadline");
  world.sleep(10min);
  expect_equal(jobs(world).size(), 2u, "jobs within their deadline");
}

LOOKOUT_SIM_TEST(CronJobWorlds, CountFailedJobsByThemselves, calm()) {
  world.start("cluster", run_cluster);
  sleep_past_hour(world);
  create(world, "*/10 * * * *");
  const auto exit_with = [&](std::string_view code) {
    world.admin().resource<CronJob>("default").patch(
        "tick", rest::PatchType::kMerge,
        fmt::format(
            R"({{"spec":{{"jobTemplate":{{"spec":{{"backoffLimit":0,"template":{{"metadata":)"
            R"({{"annotations":{{"simulation.lookout/exit-code":"{}"}}}}}}}}}}}}}})",
            code));
  };
  exit_with("3");
  world.sleep(30min);
  expect_equal(jobs(world).size(), 1u, "jobs left (failedJobsHistoryLimit)");
  expect_equal(how_ended(jobs(world).front()), "Failed", "end");
  const CronJob now = cron_job(world);
  expect(!now.status().last_successful_time(), "none was successful");
  exit_with("0");
  world.sleep(50min);
  expect_equal(jobs(world).size(), 4u, "jobs, one of which has failed");
}

LOOKOUT_SIM_TEST(CronJobWorlds, LetOthersStartAJobInTheirName, calm()) {
  world.start("cluster", run_cluster);
  sleep_past_hour(world);
  const CronJob tick = create(world, "@hourly", R"(,"suspend":true)", true);
  // Like `kubectl create job by-hand --from=cronjob/tick`.
  const auto draft = Job::draft("by-hand", "default");
  draft["spec"].set(tick.spec().job_template().spec());
  draft.metadata().annotations().set("cronjob.kubernetes.io/instantiate", "manual");
  controller::set_controller_reference(tick, draft);
  world.admin().resource<Job>("default").create(draft);
  world.sleep(1min);
  expect_equal(jobs(world).size(), 1u, "jobs");
  expect(active(world).empty(), "it keeps no other from running");
}

}  // namespace
}  // namespace lookout::cmd::cluster
