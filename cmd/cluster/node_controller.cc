#include <algorithm>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/nodes.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"

namespace lookout::cmd::cluster {
namespace {

/// Kubernetes' taint-eviction controller and pod garbage collector.
Result reconcile_node(const Request& request, Context& context) {
  const auto node = context.find<Node>(request);
  const auto is_there = [&](const Pod& pod) { return pod.spec().node_name() == request.name; };
  auto pods = context.list<Pod>();
  std::erase_if(pods, [&](const Pod& pod) { return !is_there(pod); });
  for (const Pod& pod : pods) {
    if (!node) {
      context.remove(pod, {.grace_period_seconds = 0});
    } else if (!controller::is_being_deleted(pod) && !keeps(pod["spec"], *node)) {
      if (context.remove(pod))
        context.event(pod, "TaintManagerEviction", "Marking for deletion Pod {}", pod.key());
    }
  }
  return {};
}

}  // namespace

void add_node_controller(controller::Manager& manager) {
  controller::Builder<Node>(manager)
      .watches<Pod>([](const Pod&, Enqueue&) {})
      .named("taint-eviction")
      .options(expect_bursts)
      .reconcile(reconcile_node);
}

}  // namespace lookout::cmd::cluster
