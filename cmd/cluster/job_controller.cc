#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/jobs.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "lookout/api/time.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/batch/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

void add_condition(const k8s::batch::v1::JobDraft& change, std::string_view type,
                   std::string_view reason, std::string_view message) {
  const auto condition = change.status().conditions().get_or_append(type);
  condition.set_status("True").set_last_probe_time(now()).set_last_transition_time(now());
  condition.set_reason(reason).set_message(message);
}

/// The pods of a job, by outcome.
struct Pods {
  std::vector<Pod> active;
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  /// Restarts of containers within a pod.
  std::int32_t restarts = 0;
  /// The time of the last failure.
  api::Time last_failure = {};
};

Pods look_at(const std::vector<Pod>& pods) {
  Pods out;
  for (const Pod& pod : pods) {
    if (pod.status().phase() == "Succeeded") ++out.succeeded;
    if (pod.status().phase() == "Failed") ++out.failed;
    for (const api::Value container : pod["status"]["containerStatuses"].elements()) {
      if (is_active(pod))
        out.restarts += static_cast<std::int32_t>(container["restartCount"].as_int());
      const auto ended =
          api::parse_time(container["state"]["terminated"]["finishedAt"].as_string());
      if (pod.status().phase() == "Failed" && ended)
        out.last_failure = std::max(out.last_failure, api::Time(*ended));
    }
    if (!is_active(pod)) continue;
    out.active.push_back(pod);
    if (is_ready(pod)) ++out.ready;
  }
  return out;
}

struct Failure {
  std::string_view reason;
  std::string_view message;
};

/// The reason why the job has failed; empty if it has not.
std::optional<Failure> failure_of(const Job& job, const Pods& pods) {
  const std::int32_t limit = job.spec().backoff_limit().value_or(6);
  const bool restarts = job["spec"]["template"]["spec"]["restartPolicy"].as_string() == "OnFailure";
  if (pods.failed > limit || (restarts && pods.restarts > 0 && pods.restarts >= limit))
    return Failure{"BackoffLimitExceeded", "Job has reached the specified backoff limit"};
  const auto deadline = job.spec().active_deadline_seconds();
  const auto start = job.status().start_time();
  if (deadline && start && *start + std::chrono::seconds(*deadline) <= now())
    return Failure{"DeadlineExceeded", "Job was active longer than specified deadline"};
  return std::nullopt;
}

/// The delay of the next pod after a failure: 1 s, 2 s, 4 s, up to a minute. (A real cluster starts with
/// 10 s.)
std::chrono::seconds backoff(const Pods& pods) {
  if (pods.failed == 0) return {};
  const std::chrono::seconds pause(std::min(60, 1 << std::min(pods.failed - 1, 6)));
  return std::chrono::duration_cast<std::chrono::seconds>(pods.last_failure + pause - now());
}

Result give_up(const Job& job, const Pods& pods, const Failure& failure, Context& context) {
  for (const Pod& pod : pods.active) remove_pod(job, pod, context);
  const auto change = job.edit();
  if (!job.status().start_time()) change.status().set_start_time(now());  // it was suspended
  change.status().set_active(0).set_ready(0);
  change.status().set_succeeded(pods.succeeded);
  change.status().set_failed(pods.failed + static_cast<std::int32_t>(pods.active.size()));
  add_condition(change, "FailureTarget", failure.reason, failure.message);
  add_condition(change, "Failed", failure.reason, failure.message);
  context.patch_status(change);
  context.warning(job, failure.reason, "{}", failure.message);
  return {};
}

/// Deletes an ended job after ttlSecondsAfterFinished.
Result expire(const Job& job, Context& context) {
  const auto ttl = job.spec().ttl_seconds_after_finished();
  if (!ttl) return {};
  api::Time ended = now();
  for (const auto condition : job.status().conditions()) {
    if (condition.type() == how_ended(job))
      ended = condition.last_transition_time().value_or(ended);
  }
  const auto left = ended + std::chrono::seconds(*ttl) - std::chrono::system_clock::now();
  if (left > left.zero()) {
    return controller::requeue_after(std::chrono::ceil<std::chrono::milliseconds>(left));
  }
  rest::DeleteOptions options;
  options.propagation_policy = rest::PropagationPolicy::kForeground;
  context.remove(job, options);
  return {};
}

bool is_suspended(const Job& job) {
  for (const auto condition : job.status().conditions()) {
    if (condition.type() == "Suspended") return condition.status() == "True";
  }
  return false;
}

/// Records that the job is suspended, or runs again. Returns the event; null if nothing has changed.
const char* note_suspension(const Job& job, const k8s::batch::v1::JobDraft& change) {
  const bool suspended = job.spec().suspend().value_or(false);
  if (suspended == is_suspended(job)) return nullptr;
  const auto condition = change.status().conditions().get_or_append("Suspended");
  condition.set_status(suspended ? "True" : "False");
  condition.set_reason(suspended ? "JobSuspended" : "JobResumed");
  condition.set_message(suspended ? "Job suspended" : "Job resumed");
  condition.set_last_probe_time(now()).set_last_transition_time(now());
  if (suspended) {
    change.status().clear_start_time();
  } else {
    change.status().set_start_time(now());
  }
  return suspended ? "Suspended" : "Resumed";
}

Result reconcile_job(const Request& request, Context& context) {
  const auto job = context.find<Job>(request);
  if (!job || controller::is_being_deleted(*job)) return {};
  if (!how_ended(*job).empty()) return expire(*job, context);
  const Pods pods = look_at(pods_of(*job, context));
  if (const auto failure = failure_of(*job, pods)) return give_up(*job, pods, *failure, context);
  const std::int32_t succeeded = pods.succeeded;
  const auto active = static_cast<std::int32_t>(pods.active.size());
  const std::int32_t completions = job->spec().completions().value_or(1);
  const std::int32_t parallelism = job->spec().parallelism().value_or(1);
  const bool suspended = job->spec().suspend().value_or(false);
  const std::chrono::seconds pause = backoff(pods);
  const std::int32_t most =
      suspended ? 0 : std::max(0, std::min(parallelism, completions - succeeded));
  const std::int32_t wanted = pause > pause.zero() ? std::min(active, most) : most;
  if (active > most)
    remove_pods(*job, pods.active, static_cast<std::size_t>(active - most), context);
  for (std::int32_t have = active; have < wanted; ++have) {
    const auto pod = pod_from((*job)["spec"]["template"], job->ns());
    pod.metadata().set_generate_name(fmt::format("{}-", job->name()));
    create_pod(*job, pod, context);
  }

  const auto change = job->edit();
  const auto status = change.status();
  status.set_active(wanted).set_succeeded(succeeded);
  status.set_ready(std::min(pods.ready, wanted)).set_failed(pods.failed);
  const char* const suspension = succeeded < completions ? note_suspension(*job, change) : nullptr;
  if (!suspended && !job->status().start_time()) status.set_start_time(now());
  if (succeeded >= completions) {
    status.set_completion_time(now());
    add_condition(change, "SuccessCriteriaMet", "CompletionsReached",
                  "Reached expected number of succeeded pods");
    add_condition(change, "Complete", "CompletionsReached",
                  "Reached expected number of succeeded pods");
  }
  context.patch_status(change);
  if (suspension != nullptr) {
    context.event(*job, suspension, "{}", suspended ? "Job suspended" : "Job resumed");
  }
  if (succeeded >= completions) {
    context.event(*job, "Completed", "Job completed");
    return {};
  }
  if (suspended) return {};
  if (pause > pause.zero()) return controller::requeue_after(pause);
  if (const auto deadline = job->spec().active_deadline_seconds())
    return controller::requeue_after(std::chrono::seconds(std::max<std::int64_t>(*deadline, 1)));
  return {};
}

}  // namespace

void add_job_controller(controller::Manager& manager) {
  controller::Builder<Job>(manager).owns<Pod>().options(expect_bursts).reconcile(reconcile_job);
}

}  // namespace lookout::cmd::cluster
