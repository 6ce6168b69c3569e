#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/claims.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/apps/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

/// `failure`: the message of a pod that could not be created; empty if there is none.
void report(const ReplicaSet& set, const PodCounts& counts, std::string_view failure,
            Context& context) {
  const auto change = set.edit();
  const auto conditions = change.status().conditions();
  if (failure.empty()) {
    conditions.erase_key(kReplicaFailure);
  } else if (!conditions.contains(kReplicaFailure)) {
    const auto condition = conditions.append(kReplicaFailure);
    condition.set_status("True").set_reason("FailedCreate").set_message(failure);
    condition.set_last_transition_time(now());
  }
  change.status().set_observed_generation(set.metadata().generation().value_or(0));
  change.status().set_replicas(counts.all).set_fully_labeled_replicas(counts.all);
  change.status().set_ready_replicas(counts.ready).set_available_replicas(counts.available);
  context.patch_status(change);
}

Result reconcile_replica_set(const Request& request, Context& context) {
  const auto set = context.find<ReplicaSet>(request);
  if (!set || controller::is_being_deleted(*set) || claim<Pod>(*set, context)) return {};
  auto pods = pods_of(*set, context);
  std::erase_if(pods, [](const Pod& pod) { return !is_active(pod); });
  const auto min_ready = set->spec().min_ready_seconds().value_or(0);
  const PodCounts counts = count(pods, min_ready);

  const auto wanted = static_cast<std::size_t>(std::max(0, set->spec().replicas().value_or(1)));
  try {
    for (std::size_t have = pods.size(); have < wanted; ++have) {
      const auto pod = pod_from((*set)["spec"]["template"], set->ns());
      pod.metadata().set_generate_name(fmt::format("{}-", set->name()));
      create_pod(*set, pod, context);
    }
  } catch (const api::StatusError& e) {
    report(*set, counts, e.status().message, context);
    throw;
  }
  if (pods.size() > wanted) remove_pods(*set, pods, pods.size() - wanted, context);
  report(*set, counts, "", context);
  return after_min_ready(counts, min_ready);
}

}  // namespace

void add_replica_set_controller(controller::Manager& manager) {
  controller::Builder<ReplicaSet>(manager)
      .owns<Pod>()
      .watches<Pod>([&manager](const Pod& pod, Enqueue& enqueue) {
        enqueue_adopters<ReplicaSet>(manager, pod, enqueue);
      })
      .options(expect_bursts)
      .reconcile(reconcile_replica_set);
}

}  // namespace lookout::cmd::cluster
