#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/nodes.h"
#include "cmd/cluster/pods.h"
#include "cmd/cluster/revisions.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/apps/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::apps::v1::ControllerRevision;
using k8s::core::v1::PodDraft;

/// A pod of the set. The tolerations are those that the daemon set controller adds.
PodDraft daemon_pod(const DaemonSet& set, const std::string& hash) {
  auto pod = pod_from(set["spec"]["template"], set.ns());
  pod.metadata().set_generate_name(fmt::format("{}-", set.name()));
  pod.metadata().labels().set(kRevisionHash, hash);
  const auto tolerate = [&](std::string_view condition, std::string_view effect) {
    pod.spec()
        .tolerations()
        .append()
        .set_key(fmt::format("node.kubernetes.io/{}", condition))
        .set_operator("Exists")
        .set_effect(effect);
  };
  for (const char* condition : {"not-ready", "unreachable"}) tolerate(condition, "NoExecute");
  for (const char* condition :
       {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"})
    tolerate(condition, "NoSchedule");
  return pod;
}

Result reconcile_daemon_set(const Request& request, Context& context) {
  const auto set = context.find<DaemonSet>(request);
  if (!set || controller::is_being_deleted(*set)) return {};
  const std::string hash = hash_of((*set)["spec"]["template"]);
  std::map<std::string, Pod> pods;
  std::set<std::string> used;
  for (Pod& pod : pods_of(*set, context)) {
    if (!is_active(pod)) continue;
    used.insert(revision_name(*set, pod.labels()[kRevisionHash].as_string()));
    pods.emplace(std::string(pod.spec().node_name()), std::move(pod));
  }
  keep_revisions(*set, hash, kRevisionHash, used, set->spec().revision_history_limit().value_or(10),
                 context);

  std::vector<Pod> running;
  std::vector<Pod> outdated;
  std::int32_t nodes = 0;
  std::int32_t misplaced = 0;
  const Pod example(daemon_pod(*set, hash).build());
  for (const Node& node : context.list<Node>()) {
    if (!admits(example["spec"], node)) {
      // A taint that only keeps new pods away lets the present one run.
      const auto stray = pods.find(std::string(node.name()));
      if (stray == pods.end() || !keeps(example["spec"], node)) continue;
      ++misplaced;
      pods.erase(stray);
      continue;
    }
    ++nodes;
    const auto known = pods.extract(std::string(node.name()));
    if (!known) {
      const auto pod = daemon_pod(*set, hash);
      pod.spec().set_node_name(node.name());
      create_pod(*set, pod, context);
      continue;
    }
    running.push_back(known.mapped());
    if (known.mapped().labels()[kRevisionHash].as_string() != hash)
      outdated.push_back(known.mapped());
  }
  // Their nodes were deleted, or no longer take them.
  for (const auto& [name, pod] : pods) remove_pod(*set, pod, context);

  const auto min_ready = set->spec().min_ready_seconds().value_or(0);
  const PodCounts counts = count(running, min_ready);
  if (set->spec().update_strategy().type() != "OnDelete") {
    const auto limit = set->spec().update_strategy().rolling_update().max_unavailable();
    const std::int32_t most = std::max(1, limit.scaled(nodes, true).value_or(1));
    const std::int32_t missing = nodes - counts.available;
    const auto room = static_cast<std::size_t>(std::max(0, most - missing));
    remove_pods(*set, outdated, room, context);
  }

  const auto change = set->edit();
  const auto status = change.status();
  status.set_observed_generation(set->metadata().generation().value_or(0));
  status.set_desired_number_scheduled(nodes).set_current_number_scheduled(counts.all);
  status.set_number_misscheduled(misplaced).set_number_ready(counts.ready);
  status.set_number_available(counts.available).set_number_unavailable(nodes - counts.available);
  status.set_updated_number_scheduled(counts.all - static_cast<std::int32_t>(outdated.size()));
  context.patch_status(change);
  return after_min_ready(counts, min_ready);
}

}  // namespace

void add_daemon_set_controller(controller::Manager& manager) {
  controller::Builder<DaemonSet>(manager)
      .owns<Pod>()
      .owns<ControllerRevision>()
      .watches<Node>([&manager](const Node&, Enqueue& enqueue) {
        for (const DaemonSet& set : manager.cache().view().list<DaemonSet>())
          enqueue(Request(set.ns(), set.name()));
      })
      .options(expect_bursts)
      .reconcile(reconcile_daemon_set);
}

}  // namespace lookout::cmd::cluster
