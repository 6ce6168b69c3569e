#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "cmd/cluster/controllers.h"
#include "cmd/cluster/pods.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/batch/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using controller::Context;
using controller::Request;
using controller::Result;
using k8s::batch::v1::Job;
using k8s::core::v1::Pod;

bool has_ended(const Job& job) {
  for (const auto condition : job.status().conditions()) {
    if (condition.status() == "True" &&
        (condition.type() == "Complete" || condition.type() == "Failed"))
      return true;
  }
  return false;
}

api::Time now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

void add_condition(const k8s::batch::v1::JobDraft& change, std::string_view type,
                   std::string_view reason, std::string_view message) {
  const auto condition = change.status().conditions().get_or_append(type);
  condition.set_status("True").set_last_probe_time(now()).set_last_transition_time(now());
  condition.set_reason(reason).set_message(message);
}

Result reconcile(const Request& request, Context& context) {
  const auto job = context.find<Job>(request);
  if (!job || controller::is_being_deleted(*job) || has_ended(*job)) return {};
  std::int32_t active = 0;
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  for (const Pod& pod : pods_of(*job, context)) {
    if (pod.status().phase() == "Succeeded") ++succeeded;
    if (is_active(pod)) ++active;
    if (is_active(pod) && is_ready(pod)) ++ready;
  }
  const std::int32_t completions = job->spec().completions().value_or(1);
  const std::int32_t parallelism = job->spec().parallelism().value_or(1);
  const bool suspended = job->spec().suspend().value_or(false);
  const std::int32_t wanted = suspended ? 0 : std::min(parallelism, completions - succeeded);
  for (std::int32_t have = active; have < wanted; ++have) {
    const auto pod = pod_from((*job)["spec"]["template"], job->ns());
    pod.metadata().set_generate_name(fmt::format("{}-", job->name()));
    context.create(pod);
  }

  const auto change = job->edit();
  const auto status = change.status();
  status.set_active(std::max(active, wanted)).set_succeeded(succeeded).set_ready(ready);
  if (!suspended && !job->status().start_time()) status.set_start_time(now());
  if (succeeded >= completions) {
    status.set_completion_time(now());
    add_condition(change, "SuccessCriteriaMet", "CompletionsReached",
                  "Reached expected number of succeeded pods");
    add_condition(change, "Complete", "CompletionsReached",
                  "Reached expected number of succeeded pods");
  }
  context.patch_status(change);
  return {};
}

}  // namespace

void add_job_controller(controller::Manager& manager) {
  controller::Builder<Job>(manager).owns<Pod>().reconcile(reconcile);
}

}  // namespace lookout::cmd::cluster
