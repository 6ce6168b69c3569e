#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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
  std::map<std::string_view, int> refusals;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[next_++ % nodes.size()];
    std::string_view why = refusal((*pod)["spec"], node);
    if (why.empty() && node.spec().unschedulable().value_or(false) &&
        !tolerates_cordons((*pod)["spec"]))
      why = "were unschedulable";
    if (!why.empty()) {
      ++refusals[why];
      continue;
    }
    try {
      rest::bind(context.uncached().resource<Pod>(pod->ns()), pod->name(), node.name());
      context.event(*pod, "Scheduled", "Successfully assigned {} to {}", pod->key(), node.name());
    } catch (const api::StatusError& e) {
      // The cache may be stale: the pod already has a node or was deleted.
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
    }
    return {};
  }
  std::vector<std::string> reasons;
  for (const auto& [why, count] : refusals)
    reasons.push_back(fmt::format("{} node(s) {}", count, why));
  say_unschedulable(*pod,
                    reasons.empty() ? "no nodes available to schedule pods"
                                    : fmt::format("0/{} nodes are available: {}.", nodes.size(),
                                                  fmt::join(reasons, ", ")),
                    context);
  return controller::requeue_after(kTryAgain);
}

void Scheduler::say_unschedulable(const Pod& pod, const std::string& message, Context& context) {
  const auto change = pod.edit();
  const auto condition = change.status().conditions().get_or_append("PodScheduled");
  condition.set_status("False").set_reason("Unschedulable").set_message(message);
  if (!change.changed()) return;
  context.patch_status(change);
  // (A real scheduler repeats the event with each attempt.)
  context.warning(pod, "FailedScheduling", "{}", message);
}

}  // namespace lookout::cmd::cluster
