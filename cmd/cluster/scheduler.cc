#include <fmt/format.h>

#include <chrono>

#include "cmd/cluster/names.h"
#include "cmd/cluster/nodes.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/rest/subresources.h"

namespace lookout::cmd::cluster {

namespace {

constexpr std::chrono::seconds kTryAgain{1};

bool is_pending(const Pod& pod) {
  return pod.spec().node_name().empty() && !controller::is_being_deleted(pod) &&
         pod["spec"]["schedulingGates"].empty() &&
         (pod.spec().scheduler_name().empty() ||
          pod.spec().scheduler_name() == "default-scheduler");
}

}  // namespace

void Scheduler::add_to(controller::Manager& manager) {
  controller::Builder<Pod>(manager)
      .watches<Node>([](const Node&, Enqueue&) {})
      .named("scheduler")
      .reconcile(
          [this](const Request& request, Context& context) { return reconcile(request, context); });
}

Result Scheduler::reconcile(const Request& request, Context& context) {
  const auto pod = context.find<Pod>(request);
  if (!pod || !is_pending(*pod)) return {};
  const auto nodes = context.list<Node>();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[next_++ % nodes.size()];
    if (node.spec().unschedulable().value_or(false) || !admits((*pod)["spec"], node)) continue;
    try {
      rest::bind(context.uncached().resource<Pod>(pod->ns()), pod->name(), node.name());
    } catch (const api::StatusError& e) {
      // The cache may be stale: the pod already has a node or was deleted.
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
    }
    return {};
  }
  say_unschedulable(*pod, nodes.size(), context);
  return controller::requeue_after(kTryAgain);
}

void Scheduler::say_unschedulable(const Pod& pod, std::size_t nodes, Context& context) {
  const auto change = pod.edit();
  const auto condition = change.status().conditions().get_or_append("PodScheduled");
  condition.set_status("False").set_reason("Unschedulable");
  condition.set_message(fmt::format(
      "0/{} nodes are available: the pod's node selector admits none, or they are unschedulable.",
      nodes));
  context.patch_status(change);
}

}  // namespace lookout::cmd::cluster
