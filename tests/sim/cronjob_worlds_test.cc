// The CronJob example under all faults: jobs run one at a time, and continue to run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lookout/api/time.h>
#include <lookout/controller/manager.h>
#include <lookout/k8s/batch/v1_draft.h>
#include <lookout/lookout.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "cronjob_controller.h"
#include "cronjob_types.h"
#include "lookout/testing/sim/gtest.h"
#include "tests/sim/controllers.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

using cronjob::v1::CronJob;
using k8s::batch::v1::Job;

constexpr std::size_t kKept = 2;

void run_controller(sim::Process& p) {
  test::run_replica(p, "cronjob",
                    [](controller::Manager& manager) { cronjob::add_cronjob_controller(manager); });
}

/// A CronJob that runs each minute, one job at a time.
void make_cronjob(sim::World& world) {
  test::install_definition(world, CRONJOB_CRD_FILE);
  const auto draft = CronJob::draft("backup", "default");
  draft.spec().set_schedule("* * * * *").set_concurrency_policy("Forbid");
  draft.spec().set_successful_jobs_history_limit(kKept);
  draft.spec().job_template().spec().set(
      api::Object::parse(R"({"template":{"spec":{"restartPolicy":"OnFailure",
            "containers":[{"name":"main","image":"backup:1"}]}}})"));
  world.admin().resource<CronJob>("default").create(draft);
}

bool is_finished(const Job& job) {
  return std::ranges::any_of(job.status().conditions(),
                             [](const auto& each) { return each.type() == "Complete"; });
}

/// Jobs take 5 to 90 s, depending on their scheduled time.
void finish_jobs(sim::World& world) {
  const auto jobs = world.admin().resource<Job>("default");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (const Job& job : jobs.list().items) {
    const auto begun = job.metadata().creation_timestamp().value_or(api::Time());
    const auto takes = 5s + (begun.time_since_epoch() / 60s) % 4 * 28s;
    if (is_finished(job) || begun + takes > now) continue;
    const std::string start = api::format_time(begun);
    const std::string end = api::format_time(now);
    jobs.dynamic().patch(
        std::string(job.name()), rest::PatchType::kMerge,
        fmt::format(R"({{"status":{{"startTime":"{}","completionTime":"{}","conditions":[)"
                    R"({{"type":"SuccessCriteriaMet","status":"True"}},)"
                    R"({{"type":"Complete","status":"True"}}]}}}})",
                    start, end),
        {}, "status");
  }
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out = test::with_reflectors();
  // The missed runs depend on the faults.
  out.stable = false;
  out.world.rest = 60s;
  // Each minute a job starts, the status is written, and an old job is deleted.
  out.world.hot_loop = 20;
  // A jump of the clock would change the start times of jobs.
  out.faults = sim::all_faults().without({sim::FaultKind::kClockJump});
  out.faults.per_request = 0.06;
  return out;
}

void run_jobs(sim::World& world) {
  make_cronjob(world);
  world.start("replica-a", run_controller);
  world.start("replica-b", run_controller);
  const auto jobs = world.admin().resource<Job>("default");
  world.always("one job runs at a time", [jobs] {
    return std::ranges::count_if(jobs.list().items,
                                 [](const Job& job) { return !is_finished(job); }) <= 1;
  });
  test::every(world, 5s, 9min, [&world] { finish_jobs(world); });
  world.eventually("a job has begun of late, and old ones are gone", [jobs] {
    const auto now = std::chrono::system_clock::now();
    const auto all = jobs.list().items;
    return all.size() <= kKept + 2 && std::ranges::any_of(all, [&](const Job& job) {
             return job.metadata().creation_timestamp().value_or(api::Time()) > now - 150s;
           });
  });
  world.run(5min);
}

LOOKOUT_SIM_TEST(CronJobWorlds, JobsRunOneAtATimeAndGoOn, faults()) { run_jobs(world); }

sim::ExploreOptions late_events() {
  sim::ExploreOptions out = faults();
  out.faults = sim::only({sim::FaultKind::kLateEvents});
  out.faults.per_request = 0.3;
  return out;
}

LOOKOUT_SIM_TEST(CronJobWorlds, ALateCacheStartsNoSecondJob, late_events()) { run_jobs(world); }

}  // namespace
}  // namespace lookout
