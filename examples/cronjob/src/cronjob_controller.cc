#include "cronjob_controller.h"

#include <fmt/format.h>
#include <lookout/api/time.h>
#include <lookout/controller/builder.h>
#include <lookout/controller/conditions.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/batch/v1_draft.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cronjob_types.h"

namespace cronjob {
namespace {

using namespace lookout;
using k8s::batch::v1::Job;
using v1::CronJob;

constexpr std::string_view kApiVersion = "batch.tutorial.kubebuilder.io/v1";
constexpr std::string_view kScheduledAt = "batch.tutorial.kubebuilder.io/scheduled-at";
constexpr const char* kOwnerIndex = "controller";
constexpr int kMostMissed = 100;

using controller::ConditionStatus;

controller::Condition condition_of(std::string type, ConditionStatus status, std::string reason,
                                   std::string message) {
  controller::Condition out;
  out.type = std::move(type);
  out.status = status;
  out.reason = std::move(reason);
  out.message = std::move(message);
  return out;
}

/// The jobs of a CronJob by state.
struct Jobs {
  std::vector<Job> active;
  std::vector<Job> successful;
  std::vector<Job> failed;
  std::optional<Time> last_scheduled;
};

/// The type of the condition for a finished job; empty if the job has not finished.
std::string_view finished(const Job& job) {
  for (const auto& each : job.status().conditions()) {
    if ((each.type() == "Complete" || each.type() == "Failed") && each.status() == "True")
      return each.type();
  }
  return {};
}

std::optional<Time> scheduled_time(const Job& job) {
  const std::string_view text = job.metadata().annotations()[kScheduledAt];
  if (text.empty()) return std::nullopt;
  const auto time = api::parse_time(text);
  if (!time) {
    spdlog::error("{}: its {} is not a timestamp", job.key(), kScheduledAt);
    return std::nullopt;
  }
  return std::chrono::floor<std::chrono::seconds>(*time);
}

Jobs jobs_of(controller::Context& context, const CronJob& cron_job) {
  Jobs out;
  for (Job& job : context.by_index<Job>(kOwnerIndex, cron_job.name(), cron_job.ns())) {
    const auto owner = controller::controller_of(job);
    if (!owner || owner->uid() != cron_job.uid()) continue;
    const auto time = scheduled_time(job);
    if (time && (!out.last_scheduled || *out.last_scheduled < *time)) out.last_scheduled = time;
    const std::string_view how = finished(job);
    auto& group = how.empty() ? out.active : how == "Failed" ? out.failed : out.successful;
    group.push_back(std::move(job));
  }
  // Sorted, because the index is unordered and a different order would change the status.
  std::ranges::sort(out.active, [](const Job& a, const Job& b) { return a.name() < b.name(); });
  const auto by_start = [](const Job& a, const Job& b) {
    return a.status().start_time() < b.status().start_time();  // a missing time comes first
  };
  std::ranges::sort(out.successful, by_start);
  std::ranges::sort(out.failed, by_start);
  return out;
}

/// Writes the status from the jobs. Sends no request if nothing has changed.
CronJob report(controller::Context& context, const CronJob& cron_job, const Jobs& jobs) {
  const auto change = cron_job.edit();
  const auto status = change.status();
  if (jobs.last_scheduled) {
    status.set_last_schedule_time(*jobs.last_scheduled);
  } else {
    status.clear_last_schedule_time();
  }
  status.clear_active();
  for (const Job& job : jobs.active) {
    status.active()
        .append()
        .set_api_version("batch/v1")
        .set_kind("Job")
        .set_name(job.name())
        .set_namespace(job.ns())
        .set_resource_version(job.resource_version())
        .set_uid(job.uid());
  }

  const auto set = [&](std::string type, ConditionStatus to, std::string reason,
                       std::string message) {
    controller::set_condition(
        change, condition_of(std::move(type), to, std::move(reason), std::move(message)));
  };
  if (cron_job.status().conditions().empty())
    set("Progressing", ConditionStatus::kUnknown, "Reconciling", "Starting reconciliation");
  if (cron_job.spec().suspend().value_or(false)) {
    set("Available", ConditionStatus::kFalse, "Suspended", "CronJob is suspended");
  } else if (!jobs.failed.empty()) {
    const auto message = fmt::format("{} job(s) have failed", jobs.failed.size());
    set("Degraded", ConditionStatus::kTrue, "JobsFailed", message);
    set("Available", ConditionStatus::kFalse, "JobsFailed", message);
  } else if (!jobs.active.empty()) {
    set("Progressing", ConditionStatus::kTrue, "JobsActive",
        fmt::format("{} job(s) are currently active", jobs.active.size()));
    set("Available", ConditionStatus::kTrue, "JobsActive",
        fmt::format("CronJob is progressing with {} active job(s)", jobs.active.size()));
  } else {
    set("Available", ConditionStatus::kTrue, "AllJobsCompleted",
        "All jobs have completed successfully");
    set("Progressing", ConditionStatus::kFalse, "NoJobsActive", "No jobs are currently active");
  }
  return context.patch_status(change);
}

void report(controller::Context& context, const CronJob& cron_job,
            const controller::Condition& condition) {
  const auto change = cron_job.edit();
  controller::set_condition(change, condition);
  context.patch_status(change);
}

void remove(controller::Context& context, const Job& job) {
  rest::DeleteOptions options;
  options.propagation_policy = rest::PropagationPolicy::kBackground;
  context.remove(job, options);
}

/// Removes the oldest jobs beyond the limit. Failures are not retried, as the next run tries again.
void clean_up(controller::Context& context, const std::vector<Job>& jobs,
              std::optional<std::int32_t> limit) {
  if (!limit) return;
  for (std::size_t i = 0; i + static_cast<std::size_t>(*limit) < jobs.size(); ++i) {
    try {
      remove(context, jobs[i]);
    } catch (const api::StatusError& e) {
      spdlog::error("{}: cannot delete this old job: {}", jobs[i].key(), e.what());
    }
  }
}

/// A job's name is derived from its time, so that no job is started twice.
k8s::batch::v1::JobDraft job_for(const CronJob& cron_job, Time time) {
  auto draft = Job::draft(fmt::format("{}-{}", cron_job.name(), time.time_since_epoch().count()),
                          cron_job.ns());
  const auto job_template = cron_job.spec().job_template();
  for (const auto& [name, value] : job_template.metadata().annotations())
    draft.metadata().annotations().set(name, value);
  draft.metadata().annotations().set(kScheduledAt, api::format_time(time));
  for (const auto& [name, value] : job_template.metadata().labels())
    draft.metadata().labels().set(name, value);
  draft["spec"].set(job_template.spec());
  return draft;
}

controller::Result reconcile(const controller::Request& request, controller::Context& context,
                             const Now& clock) {
  const auto found = context.find<CronJob>(request);
  if (!found) return {};
  const Jobs jobs = jobs_of(context, *found);
  const CronJob cron_job = report(context, *found, jobs);
  const auto spec = cron_job.spec();

  clean_up(context, jobs.failed, spec.failed_jobs_history_limit());
  clean_up(context, jobs.successful, spec.successful_jobs_history_limit());
  if (spec.suspend().value_or(false)) return {};

  const Time now = clock();
  std::optional<std::chrono::seconds> deadline;
  if (const auto seconds = spec.starting_deadline_seconds())
    deadline = std::chrono::seconds(*seconds);
  Runs runs;
  try {
    const auto created = cron_job.metadata().creation_timestamp().value_or(api::Time());
    runs = runs_of(CronSchedule::parse(spec.schedule()),
                   jobs.last_scheduled.value_or(std::chrono::floor<std::chrono::seconds>(created)),
                   deadline, now);
  } catch (const CronScheduleError& e) {
    // Only a change of the CronJob can fix this, and the change triggers the next run.
    report(context, cron_job,
           condition_of("Degraded", ConditionStatus::kTrue, "InvalidSchedule",
                        fmt::format("Failed to parse schedule: {}", e.what())));
    return {};
  }
  const auto at_the_next_run = controller::requeue_after(runs.next - now);
  if (!runs.missed) return at_the_next_run;

  if (deadline && *runs.missed + *deadline < now) {
    report(context, cron_job,
           condition_of("Degraded", ConditionStatus::kTrue, "MissedSchedule",
                        fmt::format("Missed starting deadline for run at {}",
                                    api::format_time(*runs.missed))));
    return at_the_next_run;
  }
  const std::string_view policy = spec.concurrency_policy();
  if (policy == "Forbid" && !jobs.active.empty()) return at_the_next_run;
  if (policy == "Replace") {
    for (const Job& job : jobs.active) remove(context, job);
  }

  try {
    // The builder owns Jobs, so the controller reference is set automatically.
    const Job job = context.create(job_for(cron_job, *runs.missed));
    report(context, cron_job,
           condition_of("Progressing", ConditionStatus::kTrue, "JobCreated",
                        fmt::format("Created job {}", job.name())));
  } catch (const api::StatusError& e) {
    report(context, cron_job,
           condition_of("Degraded", ConditionStatus::kTrue, "JobCreationFailed",
                        fmt::format("Failed to create job: {}", e.what())));
    throw;
  }
  return at_the_next_run;
}

}  // namespace

Runs runs_of(const CronSchedule& schedule, Time earliest,
             std::optional<std::chrono::seconds> deadline, Time now) {
  if (deadline) earliest = std::max(earliest, now - *deadline);
  Runs out;
  const auto next = schedule.next(now);
  if (!next) throw CronScheduleError("no time in five years matches");
  out.next = *next;
  int missed = 0;
  for (auto run = schedule.next(earliest); run && *run <= now; run = schedule.next(*run)) {
    // After a long outage, or with wrong clocks, there may be many.
    if (++missed > kMostMissed) {
      throw CronScheduleError(fmt::format(
          "too many missed start times (> {}). Set or decrease spec.startingDeadlineSeconds, or "
          "check the clocks",
          kMostMissed));
    }
    out.missed = run;
  }
  return out;
}

void add_cronjob_controller(controller::Manager& manager, Now now) {
  manager.cache().add_index<Job>(kOwnerIndex, [](const Job& job) {
    const auto owner = controller::controller_of(job);
    const bool ours = owner && owner->api_version() == kApiVersion && owner->kind() == "CronJob";
    return ours ? std::optional<std::string>(owner->name()) : std::nullopt;
  });
  controller::Builder<CronJob>(manager).owns<Job>().named("cronjob").reconcile(
      [now = std::move(now)](const controller::Request& request, controller::Context& context) {
        return reconcile(request, context, now);
      });
}

}  // namespace cronjob
