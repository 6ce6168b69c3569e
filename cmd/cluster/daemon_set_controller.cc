#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
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
  for (const Node& node : context.list<Node>()) {
    if (!admits((*set)["spec"]["template"]["spec"], node)) continue;
    ++nodes;
    const auto known = pods.extract(std::string(node.name()));
    if (!known) {
      const auto pod = pod_from((*set)["spec"]["template"], set->ns());
      pod.metadata().set_generate_name(fmt::format("{}-", set->name()));
      pod.metadata().labels().set(kRevisionHash, hash);
      pod.spec().set_node_name(node.name());
      context.create(pod);
      continue;
    }
    running.push_back(known.mapped());
    if (known.mapped().labels()[kRevisionHash].as_string() != hash)
      outdated.push_back(known.mapped());
  }
  for (const auto& [name, pod] : pods) context.remove(pod);  // their nodes were deleted

  const auto min_ready = set->spec().min_ready_seconds().value_or(0);
  const PodCounts counts = count(running, min_ready);
  if (set->spec().update_strategy().type() != "OnDelete") {
    const auto limit = set->spec().update_strategy().rolling_update().max_unavailable();
    const std::int32_t most = std::max(1, limit.scaled(nodes, true).value_or(1));
    const std::int32_t missing = nodes - counts.available;
    const auto room = static_cast<std::size_t>(std::max(0, most - missing));
    remove_pods(outdated, room, context);
  }

  const auto change = set->edit();
  const auto status = change.status();
  status.set_observed_generation(set->metadata().generation().value_or(0));
  status.set_desired_number_scheduled(nodes).set_current_number_scheduled(counts.all);
  status.set_number_misscheduled(0).set_number_ready(counts.ready);
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
