#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/jobs.h"
#include "cmd/cluster/names.h"
#include "lookout/api/status.h"
#include "lookout/api/time.h"
#include "lookout/base/cron_schedule.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/batch/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::batch::v1::CronJob;
using k8s::batch::v1::CronJobDraft;
using Time = CronSchedule::Time;

constexpr const char* kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";

Time this_second() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::vector<Job> jobs_of(const CronJob& cron_job, Context& context) {
  auto jobs = context.list<Job>(cron_job.ns());
  std::erase_if(jobs, [&](const Job& job) {
    const auto of = controller::controller_of(job);
    return !of || of->uid() != cron_job.uid() || controller::is_being_deleted(job);
  });
  // As in kube-controller-manager, a job that has not started counts as the youngest.
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    const auto started_a = a.status().start_time();
    const auto started_b = b.status().start_time();
    if (started_a != started_b) return started_a && (!started_b || *started_a < *started_b);
    return a.name() < b.name();
  });
  return jobs;
}

bool is_among(const CronJob& cron_job, const Job& job) {
  const auto active = cron_job.status().active();
  return std::any_of(active.begin(), active.end(),
                     [&](const auto& each) { return each.uid() == job.uid(); });
}

void remove(const CronJob& cron_job, const Job& job, Context& context) {
  rest::DeleteOptions options;
  options.propagation_policy = rest::PropagationPolicy::kBackground;
  context.remove(job, options);
  context.event(cron_job, "SuccessfulDelete", "Deleted job {}", job.name());
}

/// Deletes the oldest jobs with this outcome, beyond the limit.
void clean_up(const CronJob& cron_job, const std::vector<Job>& jobs, std::string_view ended,
              std::optional<std::int32_t> limit, Context& context) {
  if (!limit) return;
  std::vector<Job> done;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(done),
               [&](const Job& job) { return how_ended(job) == ended; });
  for (std::size_t i = 0; i + static_cast<std::size_t>(*limit) < done.size(); ++i)
    remove(cron_job, done[i], context);
}

void refer_to(const Job& job, const CronJobDraft& change) {
  change.status()
      .active()
      .append()
      .set_api_version("batch/v1")
      .set_kind("Job")
      .set_name(job.name())
      .set_namespace(job.ns())
      .set_resource_version(job.resource_version())
      .set_uid(job.uid());
}

/// The active jobs that this controller has started, not those that others have created for the CronJob
/// (`kubectl create job --from`).
std::vector<Job> active_of(const CronJob& cron_job, const std::vector<Job>& jobs) {
  std::vector<Job> out;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(out),
               [&](const Job& job) { return how_ended(job).empty() && is_among(cron_job, job); });
  return out;
}

void set_active(const std::vector<Job>& jobs, const CronJobDraft& change) {
  change.status().clear_active();
  for (const Job& job : jobs) refer_to(job, change);
}

/// Reports ended jobs.
void report(const CronJob& cron_job, const std::vector<Job>& jobs, const std::vector<Job>& active,
            const CronJobDraft& change, Context& context) {
  auto last_success = cron_job.status().last_successful_time();
  for (const Job& job : jobs) {
    const std::string_view ended = how_ended(job);
    if (ended.empty()) continue;
    const auto time = job.status().completion_time();
    if (time && (!last_success || *last_success < *time)) last_success = time;
    if (is_among(cron_job, job)) {
      context.event(cron_job, "SawCompletedJob", "Saw completed job: {}, condition: {}", job.name(),
                    ended);
    }
  }
  if (last_success) change.status().set_last_successful_time(*last_success);
  if (active.size() != cron_job.status().active().size()) set_active(active, change);
}

/// The name of a job is derived from its time, so that no job is started twice.
std::string name_of_job(const CronJob& cron_job, Time time) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time).time_since_epoch().count();
  return fmt::format("{}-{}", cron_job.name(), minutes);
}

k8s::batch::v1::JobDraft job_for(const CronJob& cron_job, Time time) {
  auto job = Job::draft(name_of_job(cron_job, time), cron_job.ns());
  const auto job_template = cron_job.spec().job_template();
  for (const auto& [name, value] : job_template.metadata().labels())
    job.metadata().labels().set(name, value);
  for (const auto& [name, value] : job_template.metadata().annotations())
    job.metadata().annotations().set(name, value);
  job.metadata().annotations().set(kScheduledAt, api::format_time(time));
  job["spec"].set(job_template.spec());
  return job;
}

/// The last missed time: after the last job or the CronJob's creation, and within the deadline.
std::optional<Time> missed(const CronJob& cron_job, const CronSchedule& schedule, Time now) {
  Time earliest =
      std::chrono::floor<std::chrono::seconds>(cron_job.status().last_schedule_time().value_or(
          cron_job.metadata().creation_timestamp().value_or(api::Time())));
  if (const auto deadline = cron_job.spec().starting_deadline_seconds())
    earliest = std::max(earliest, now - std::chrono::seconds(*deadline));
  if (earliest > now) return std::nullopt;
  return schedule.last(earliest, now);
}

std::optional<CronSchedule> schedule_of(const CronJob& cron_job, Context& context) {
  TimeZone zone;
  const std::string_view name = cron_job.spec().time_zone();
  try {
    if (!name.empty()) zone = TimeZone::load(name);
  } catch (const TimeZoneError& e) {
    context.warning(cron_job, "UnknownTimeZone", "invalid timeZone: \"{}\": {}", name, e.what());
    return std::nullopt;
  }
  try {
    return CronSchedule::parse(cron_job.spec().schedule(), zone);
  } catch (const CronScheduleError& e) {
    context.warning(cron_job, "UnparseableSchedule", "unparseable schedule: \"{}\" : {}",
                    cron_job.spec().schedule(), e.what());
    return std::nullopt;
  }
}

/// Starts the job for this time.
Job start_job(const CronJob& cron_job, Time time, Context& context) {
  try {
    Job job = context.create(job_for(cron_job, time));
    context.event(cron_job, "SuccessfulCreate", "Created job {}", job.name());
    return job;
  } catch (const api::StatusError& e) {
    if (!api::is_already_exists(e)) throw;
  }
  // The job was started before, but the status was not written.
  return context.uncached().resource<Job>(cron_job.ns()).get(name_of_job(cron_job, time));
}

/// Starts the due job, unless the concurrency policy forbids it while others are active.
void run(const CronJob& cron_job, Time due, std::vector<Job> active, const CronJobDraft& change,
         Context& context) {
  const std::string_view policy = cron_job.spec().concurrency_policy();
  if (policy == "Forbid" && !active.empty()) {
    context.event(cron_job, "JobAlreadyActive",
                  "Not starting job because prior execution is running and concurrency policy is "
                  "Forbid");
    return;
  }
  if (policy == "Replace") {
    for (const Job& job : active) remove(cron_job, job, context);
    active.clear();
  }
  const Job job = start_job(cron_job, due, context);
  const bool is_new = std::none_of(active.begin(), active.end(), [&](const Job& one) {
    return one.uid() == job.uid();  // the job of that minute
  });
  if (is_new && how_ended(job).empty() && controller::has_owner_reference(cron_job, job))
    active.push_back(job);
  set_active(active, change);
  change.status().set_last_schedule_time(due);
}

Result reconcile_cron_job(const Request& request, Context& context) {
  const auto cron_job = context.find<CronJob>(request);
  if (!cron_job) return {};
  const auto spec = cron_job->spec();
  const auto jobs = jobs_of(*cron_job, context);
  const auto active = active_of(*cron_job, jobs);
  const auto change = cron_job->edit();
  report(*cron_job, jobs, active, change, context);
  clean_up(*cron_job, jobs, "Complete", spec.successful_jobs_history_limit(), context);
  clean_up(*cron_job, jobs, "Failed", spec.failed_jobs_history_limit(), context);

  Result next;
  const bool rests = controller::is_being_deleted(*cron_job) || spec.suspend().value_or(false);
  if (const auto schedule = rests ? std::nullopt : schedule_of(*cron_job, context)) {
    const Time time = this_second();
    if (const auto then = schedule->next(time)) next = controller::requeue_after(*then - time);
    if (const auto due = missed(*cron_job, *schedule, time))
      run(*cron_job, *due, active, change, context);
  }
  context.patch_status(change);
  return next;
}

}  // namespace

void add_cron_job_controller(controller::Manager& manager) {
  controller::Builder<CronJob>(manager)
      .owns<Job>()
      .options(expect_bursts)
      .reconcile(reconcile_cron_job);
}

}  // namespace lookout::cmd::cluster
