#include "cronjob_controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lookout/apiserver/server.h>
#include <lookout/base/yaml_tree.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/apiextensions/v1.h>
#include <lookout/k8s/batch/v1_draft.h>
#include <lookout/lookout.h>
#include <lookout/testing/fake_clock.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cronjob_types.h"

namespace cronjob {
namespace {

using namespace lookout;
using namespace std::chrono_literals;
using k8s::batch::v1::Job;
using v1::CronJob;

/// Polls until `condition` holds. False after a time limit.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// An API server with the CRD, and the running controller with a clock that tests set. No jobs run:
/// the tests write their status.
class CronJobControllerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(CRD_FILE);
    const std::string crd{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    client_.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(
        api::Object::parse(to_json(YamlTree(crd).root())));
    controller::ManagerOptions options;
    options.clock = clock_;
    manager_ = std::make_unique<controller::Manager>(client_, options);
    add_cronjob_controller(*manager_, [this] { return now_.load(); });
    running_ = std::jthread([this](const std::stop_token& stop) { manager_->run(stop); });
  }

  /// A CronJob that runs at most hourly.
  static v1::CronJobDraft hourly(const std::string& name = "backup") {
    auto draft = CronJob::draft(name, "default");
    const auto job_template = draft.spec().set_schedule("0 * * * *").job_template();
    job_template.metadata().labels().set("team", "ops");
    job_template.metadata().annotations().set("note", "nightly");
    job_template.spec().set(api::Object::parse(R"({"template":{"spec":{"restartPolicy":"OnFailure",
            "containers":[{"name":"main","image":"backup:1"}]}}})"));
    return draft;
  }
  void pass(std::chrono::seconds time) {
    now_ = now_.load() + time;
    clock_->advance(time);
  }
  /// Advances the clock, by up to half a day, until `condition` holds.
  bool pass_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 12 * 6; ++i) {
      if (condition()) return true;
      pass(10min);
      std::this_thread::sleep_for(50ms);
    }
    return eventually(condition);
  }
  double runs() const {
    std::vector<metrics::Sample> samples;
    manager_->collect(samples);
    double out = 0;
    for (const auto& sample : samples) {
      if (sample.name == "controller_runtime_reconcile_total") out += sample.value;
    }
    return out;
  }
  /// Waits for a complete reconciliation of the CronJob. The first one that ends may have begun
  /// before this call.
  bool look_again() const {
    for (int i = 0; i < 2; ++i) {
      const double before = runs();
      crons_.patch(
          "backup", rest::PatchType::kMerge,
          fmt::format(R"({{"metadata":{{"annotations":{{"touched":"{}"}}}}}})", touched_++));
      if (!eventually([&] { return runs() > before; })) return false;
    }
    return true;
  }

  std::string name_of_run(Time time) const {
    return fmt::format("backup-{}", time.time_since_epoch().count());
  }
  std::vector<std::string> jobs() const {
    std::vector<std::string> out;
    const auto list = jobs_.list();
    for (const Job& job : list.items) out.emplace_back(job.name());
    std::ranges::sort(out);
    return out;
  }
  bool is_there(Time run) const { return static_cast<bool>(jobs_.find(name_of_run(run))); }
  /// No Job starts before the spec gets this.
  void expect_start_only_after(const std::string& spec) const {
    ASSERT_TRUE(look_again());
    EXPECT_TRUE(jobs().empty());
    crons_.patch("backup", rest::PatchType::kMerge, R"({"spec":)" + spec + "}");
    EXPECT_TRUE(eventually([&] { return is_there(hour_); }));
  }
  /// Writes the status that the Job controller would write.
  void finish(Time run, const std::string& type) const {
    const auto start = api::format_time(run);
    jobs_.dynamic().patch(
        name_of_run(run), rest::PatchType::kMerge,
        fmt::format(
            R"({{"status":{{"startTime":"{0}",{1}"conditions":[{2}{{"type":"{3}","status":"True"}}]}}}})",
            start, type == "Complete" ? fmt::format(R"("completionTime":"{}",)", start) : "",
            type == "Complete" ? R"({"type":"SuccessCriteriaMet","status":"True"},)"
                               : R"({"type":"FailureTarget","status":"True"},)",
            type),
        {}, "status");
  }
  /// "True JobsActive 1 job(s) are currently active".
  std::string condition(const std::string& type) const {
    const auto cron = crons_.get("backup");
    for (const auto& each : cron.status().conditions()) {
      if (each.type() == type)
        return fmt::format("{} {} {}", each.status(), each.reason(), each.message());
    }
    return "";
  }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<CronJob> crons_ = client_.resource<CronJob>("default");
  const rest::TypedClient<Job> jobs_ = client_.resource<Job>("default");
  mutable int touched_ = 0;
  // Two hours after the creation of every CronJob, so that a run was missed.
  const Time hour_ = std::chrono::floor<std::chrono::hours>(machine_time()) + 2h;
  std::atomic<Time> now_{hour_ + 5s};
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  std::unique_ptr<controller::Manager> manager_;
  std::jthread running_;  // last: ends before the members that it uses
};

TEST_F(CronJobControllerTest, StartsTheLatestMissedRun) {
  const auto cron = crons_.create(hourly());
  ASSERT_TRUE(eventually([&] { return condition("Available").starts_with("True JobsActive"); }));
  ASSERT_EQ(jobs(), std::vector{name_of_run(hour_)});
  const auto job = jobs_.get(name_of_run(hour_));
  EXPECT_EQ(job.metadata().labels()["team"], "ops");
  EXPECT_EQ(job.metadata().annotations()["note"], "nightly");
  EXPECT_EQ(job.metadata().annotations()["batch.tutorial.kubebuilder.io/scheduled-at"],
            api::format_time(hour_));
  const auto owner = controller::controller_of(job);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->uid(), cron.uid());

  const auto now = crons_.get("backup");
  EXPECT_EQ(now.status().last_schedule_time(), api::Time(hour_));
  ASSERT_EQ(now.status().active().size(), 1U);
  EXPECT_EQ(now.status().active()[0].name(), job.name());
  EXPECT_EQ(now.status().active()[0].uid(), job.uid());
  EXPECT_EQ(condition("Progressing"), "True JobsActive 1 job(s) are currently active");
}

TEST_F(CronJobControllerTest, WakesAtTheNextRun) {
  crons_.create(hourly());
  ASSERT_TRUE(eventually([&] { return is_there(hour_); }));
  // The default policy allows both.
  EXPECT_TRUE(pass_until([&] { return jobs().size() >= 2; }));
  EXPECT_TRUE(is_there(hour_));
}

TEST_F(CronJobControllerTest, HasTheDefaultsOfTheTutorialsWebhook) {
  const auto cron = crons_.create(hourly());
  EXPECT_EQ(cron.spec().concurrency_policy(), "Allow");
  EXPECT_EQ(cron.spec().suspend(), false);
  EXPECT_EQ(cron.spec().successful_jobs_history_limit(), 3);
  EXPECT_EQ(cron.spec().failed_jobs_history_limit(), 1);
}

TEST_F(CronJobControllerTest, CountsOnlyItsOwnJobs) {
  auto other = Job::draft("other", "default");
  other["spec"].set(api::Object::parse(R"({"template":{"spec":{"restartPolicy":"OnFailure",
      "containers":[{"name":"main","image":"i"}]}}})"));
  jobs_.create(other);
  crons_.create(hourly());
  EXPECT_TRUE(eventually(
      [&] { return condition("Progressing") == "True JobsActive 1 job(s) are currently active"; }));
}

TEST_F(CronJobControllerTest, ForbidWaitsForTheRunningJob) {
  auto draft = hourly();
  draft.spec().set_concurrency_policy("Forbid");
  crons_.create(draft);
  ASSERT_TRUE(eventually([&] { return is_there(hour_); }));
  pass(1h);
  ASSERT_TRUE(look_again());
  EXPECT_FALSE(is_there(hour_ + 1h));
  finish(hour_, "Complete");
  EXPECT_TRUE(eventually([&] { return is_there(hour_ + 1h); }));
}

TEST_F(CronJobControllerTest, ReplaceDeletesTheRunningJob) {
  auto draft = hourly();
  draft.spec().set_concurrency_policy("Replace");
  crons_.create(draft);
  ASSERT_TRUE(eventually([&] { return is_there(hour_); }));
  EXPECT_TRUE(pass_until([&] { return !is_there(hour_); }));
  EXPECT_TRUE(eventually([&] { return jobs().size() == 1; }));
}

TEST_F(CronJobControllerTest, StartsNothingWhileSuspended) {
  auto draft = hourly();
  draft.spec().set_suspend(true);
  crons_.create(draft);
  ASSERT_TRUE(
      eventually([&] { return condition("Available") == "False Suspended CronJob is suspended"; }));
  expect_start_only_after(R"({"suspend":false})");
}

TEST_F(CronJobControllerTest, StartsNothingPastTheDeadline) {
  auto draft = hourly();
  draft.spec().set_starting_deadline_seconds(3);
  crons_.create(draft);
  ASSERT_TRUE(eventually([&] { return condition("Available").starts_with("True"); }));
  expect_start_only_after(R"({"startingDeadlineSeconds":60})");
}

TEST_F(CronJobControllerTest, ReportsAnInvalidSchedule) {
  auto draft = hourly();
  draft.spec().set_schedule("every day");
  crons_.create(draft);
  EXPECT_TRUE(eventually([&] {
    return condition("Degraded") ==
           "True InvalidSchedule Failed to parse schedule: expected exactly 5 fields, found 2: "
           "[every "
           "day]";
  }));
  expect_start_only_after(R"({"schedule":"0 * * * *"})");
}

TEST_F(CronJobControllerTest, ReportsTooManyMissedRuns) {
  now_ = hour_ + 200h;
  crons_.create(hourly());
  EXPECT_TRUE(eventually([&] {
    return condition("Degraded").find("too many missed start times (> 100)") != std::string::npos;
  }));
  ASSERT_TRUE(look_again());
  EXPECT_TRUE(jobs().empty());
}

TEST_F(CronJobControllerTest, ReportsAJobThatTheServerRejects) {
  auto draft = hourly();
  draft.spec().job_template().spec().set(api::Object::parse(R"({"template":{"spec":{}}})"));
  crons_.create(draft);
  EXPECT_TRUE(
      eventually([&] { return condition("Degraded").starts_with("True JobCreationFailed"); }));
}

TEST_F(CronJobControllerTest, KeepsFinishedJobsUpToTheLimits) {
  auto draft = hourly();
  draft.spec().set_successful_jobs_history_limit(2).set_failed_jobs_history_limit(1);
  crons_.create(draft);
  const auto run = [&](int number) { return hour_ + std::chrono::hours(number); };
  for (int i = 0; i < 6; ++i) {
    pass(run(i) + 5s - now_.load());
    ASSERT_TRUE(look_again());
    ASSERT_TRUE(is_there(run(i))) << i;
    finish(run(i), i % 3 == 2 ? "Failed" : "Complete");  // 2 and 5 fail
  }
  EXPECT_TRUE(eventually([&] {
    return jobs() == std::vector{name_of_run(run(3)), name_of_run(run(4)), name_of_run(run(5))};
  })) << fmt::format("{}", fmt::join(jobs(), " "));
  // The run that removes jobs has counted them before.
  EXPECT_TRUE(
      eventually([&] { return condition("Degraded") == "True JobsFailed 1 job(s) have failed"; }));
}

}  // namespace
}  // namespace cronjob
