#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/policy/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::policy::v1::PodDisruptionBudget;

/// How long the server's note of an eviction counts if the pod is not deleted.
constexpr std::chrono::minutes kForgetsEvictionAfter{2};

template <api::ResourceObject Set>
std::optional<std::int32_t> replicas_of(std::string_view ns, std::string_view name,
                                        Context& context) {
  const auto set = context.find<Set>(ns, name);
  return set ? set->spec().replicas() : std::nullopt;
}

/// The number of pods that the controllers of these pods want; a pod without one counts by itself.
std::int32_t expected_scale(const std::vector<Pod>& pods, Context& context) {
  std::map<std::string, std::int32_t> scales;  // by the uids of the controllers, or of the pods
  for (const Pod& pod : pods) {
    const auto owner = controller::controller_of(pod);
    const std::string id(owner ? owner->uid() : pod.uid());
    if (scales.contains(id)) continue;
    std::optional<std::int32_t> scale;
    if (owner && owner->kind() == "ReplicaSet")
      scale = replicas_of<ReplicaSet>(pod.ns(), owner->name(), context);
    else if (owner && owner->kind() == "StatefulSet")
      scale = replicas_of<StatefulSet>(pod.ns(), owner->name(), context);
    scales.emplace(id, scale.value_or(1));
  }
  std::int32_t out = 0;
  for (const auto& [id, scale] : scales) out += scale;
  return out;
}

struct Health {
  std::int32_t expected = 0;
  std::int32_t desired = 0;
};

Health health_of(const PodDisruptionBudget& budget, const std::vector<Pod>& pods,
                 Context& context) {
  Health out;
  const auto spec = budget.spec();
  if (const auto most = spec.max_unavailable()) {
    out.expected = expected_scale(pods, context);
    out.desired = std::max(0, out.expected - most.scaled(out.expected, true).value_or(0));
  } else if (const auto least = spec.min_available(); least.is_string()) {
    out.expected = expected_scale(pods, context);
    out.desired = least.scaled(out.expected, true).value_or(0);
  } else {
    out.expected = static_cast<std::int32_t>(pods.size());
    out.desired = least ? least.int_value() : 0;
  }
  return out;
}

/// The evicted pods that are not being deleted yet.
std::map<std::string, api::Time> evictions_of(const PodDisruptionBudget& budget,
                                              const std::vector<Pod>& pods) {
  std::map<std::string, api::Time> out;
  const auto status = budget.status();
  for (const auto& [name, time] : status.disrupted_pods()) {
    const std::string_view evicted = name;
    const bool waits = std::any_of(pods.begin(), pods.end(), [&](const Pod& pod) {
      return pod.name() == evicted && !controller::is_being_deleted(pod);
    });
    if (waits && time && *time + kForgetsEvictionAfter > now()) out.emplace(name, *time);
  }
  return out;
}

Result reconcile_budget(const Request& request, Context& context) {
  const auto budget = context.find<PodDisruptionBudget>(request);
  if (!budget) return {};
  const auto pods = context.list<Pod>(budget->ns(), api::labels::from(budget->spec().selector()));
  const auto evicted = evictions_of(*budget, pods);
  const Health health = health_of(*budget, pods, context);
  const auto healthy =
      static_cast<std::int32_t>(std::count_if(pods.begin(), pods.end(), [&](const Pod& pod) {
        return is_ready(pod) && is_active(pod) && !evicted.contains(std::string(pod.name()));
      }));
  const std::int32_t allowed = health.expected > 0 ? std::max(0, healthy - health.desired) : 0;

  const auto change = budget->edit();
  const auto status = change.status();
  status.set_observed_generation(budget->metadata().generation().value_or(0));
  status.set_expected_pods(health.expected).set_desired_healthy(health.desired);
  status.set_current_healthy(healthy).set_disruptions_allowed(allowed);
  status.clear_disrupted_pods();
  for (const auto& [name, time] : evicted) status.disrupted_pods().set(name, time);
  const auto condition = status.conditions().get_or_append("DisruptionAllowed");
  const std::string_view holds = allowed > 0 ? "True" : "False";
  if (condition.status() != holds) condition.set_last_transition_time(now());
  condition.set_status(holds).set_message("");
  condition.set_reason(allowed > 0 ? "SufficientPods" : "InsufficientPods");
  condition.set_observed_generation(budget->metadata().generation().value_or(0));
  // Evictions change the status, too.
  rest::PatchOptions options;
  options.if_unchanged = true;
  try {
    context.patch_status(change, options);
  } catch (const api::StatusError& e) {
    if (!api::is_conflict(e)) throw;
    return controller::requeue();
  }
  if (!evicted.empty()) return controller::requeue_after(kForgetsEvictionAfter);
  return {};
}

}  // namespace

void add_disruption_controller(controller::Manager& manager) {
  // Each change in a namespace concerns few budgets, so all of them are checked.
  const auto enqueue_budgets = [&manager](const auto& object, Enqueue& enqueue) {
    for (const auto& budget : manager.cache().view().list<PodDisruptionBudget>(object.ns()))
      enqueue(Request(budget.ns(), budget.name()));
  };
  controller::Builder<PodDisruptionBudget>(manager)
      .watches<Pod>(
          [enqueue_budgets](const Pod& pod, Enqueue& enqueue) { enqueue_budgets(pod, enqueue); })
      .watches<ReplicaSet>([enqueue_budgets](const ReplicaSet& set, Enqueue& enqueue) {
        enqueue_budgets(set, enqueue);
      })
      .watches<StatefulSet>([enqueue_budgets](const StatefulSet& set, Enqueue& enqueue) {
        enqueue_budgets(set, enqueue);
      })
      .named("disruption")
      .options(expect_bursts)
      .reconcile(reconcile_budget);
}

}  // namespace lookout::cmd::cluster
