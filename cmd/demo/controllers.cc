#include "cmd/demo/controllers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd {
namespace {

using controller::Context;
using controller::Request;
using controller::Result;
using k8s::apps::v1::Deployment;
using k8s::core::v1::Pod;

bool is_ready(const Pod& pod) {
  for (const auto condition : pod.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return false;
}

bool belongs_to(const Pod& pod, const Deployment& deployment) {
  const auto owner = controller::controller_of(pod);
  return owner && owner->uid() == deployment.uid() && !controller::is_being_deleted(pod);
}

}  // namespace

// ---------------------------------------------------------------------------------- deployments

void DeploymentController::add_to(controller::Manager& manager) {
  controller::Builder<Deployment>(manager).owns<Pod>().reconcile(
      [this](const Request& request, Context& context) { return reconcile(request, context); });
}

Result DeploymentController::reconcile(const Request& request, Context& context) {
  const auto deployment = context.find<Deployment>(request);
  if (!deployment) return {};
  auto pods = context.list<Pod>(request.ns, api::labels::parse("app=" + request.name));
  std::erase_if(pods, [&](const Pod& pod) { return !belongs_to(pod, *deployment); });

  const auto wanted =
      static_cast<std::size_t>(std::max(0, deployment->spec().replicas().value_or(1)));
  for (std::size_t have = pods.size(); have < wanted; ++have) create_pod(*deployment, context);
  if (pods.size() > wanted) {
    // The ready ones stay.
    std::stable_partition(pods.begin(), pods.end(), is_ready);
    for (std::size_t i = wanted; i < pods.size(); ++i) context.remove(pods[i]);
    pods.resize(wanted);
  }

  const auto change = deployment->edit();
  const auto ready = static_cast<std::int32_t>(std::count_if(pods.begin(), pods.end(), is_ready));
  const auto replicas = static_cast<std::int32_t>(wanted);
  change.status().set_replicas(replicas).set_updated_replicas(replicas);
  change.status().set_ready_replicas(ready).set_available_replicas(ready);
  context.patch_status(change);
  return {};
}

void DeploymentController::create_pod(const Deployment& deployment, Context& context) {
  const auto pod = Pod::draft("", deployment.ns());
  pod.metadata().set_generate_name(fmt::format("{}-", deployment.name()));
  pod.metadata().labels().set("app", deployment.name());
  pod.spec().set_node_name(
      fmt::format("node-{}", std::uniform_int_distribution<int>(1, 5)(random_)));
  pod.spec().set_termination_grace_period_seconds(0);
  for (const auto from : deployment.spec().pod_template().spec().containers()) {
    const auto container = pod.spec().containers().append(from.name());
    container.set_image(from.image());
    container.ports().append(8080).set_name("http");
  }
  context.create(pod);
}

// --------------------------------------------------------------------------------------- kubelet

void Kubelet::add_to(controller::Manager& manager) {
  controller::Builder<Pod>(manager).named("kubelet").reconcile(
      [this](const Request& request, Context& context) { return reconcile(request, context); });
}

Result Kubelet::reconcile(const Request& request, Context& context) {
  const auto pod = context.find<Pod>(request);
  if (!pod) {
    next_steps_.erase(request.key());
    return {};
  }
  const auto now = std::chrono::steady_clock::now();
  const auto [at, fresh] = next_steps_.try_emplace(request.key(), now);
  if (fresh) {
    at->second = now + random(300, 1500);
  } else if (at->second <= now) {
    at->second = now + advance(*pod, context);
  }
  return controller::requeue_after(at->second - now);
}

std::chrono::milliseconds Kubelet::advance(const Pod& pod, Context& context) {
  std::string_view waiting_for;
  std::int32_t restarts = 0;
  const auto containers = pod.status().container_statuses();
  for (const auto container : containers) restarts = container.restart_count();
  auto lasts = random(5000, 30000);
  if (containers.empty()) {
    waiting_for = "ContainerCreating";
    lasts = random(300, 2000);
  } else if (is_ready(pod) && random(0, 3).count() == 0) {
    waiting_for = "CrashLoopBackOff";
    ++restarts;
    lasts = random(1000, 3000);
  }
  const bool runs = waiting_for.empty();

  const auto change = pod.edit();
  const auto status = change.status();
  status.set_phase(waiting_for == "ContainerCreating" ? "Pending" : "Running");
  status.conditions().get_or_append("Ready").set_status(runs ? "True" : "False");
  if (runs && pod.status().pod_ip().empty()) {
    status.set_pod_ip(fmt::format("10.0.{}.{}", next_ip_ / 250, next_ip_ % 250 + 1));
    ++next_ip_;
  }
  status.clear_container_statuses();
  for (const auto from : pod.spec().containers()) {
    const auto container = status.container_statuses().append();
    container.set_name(from.name()).set_image(from.image()).set_image_id("");
    container.set_ready(runs).set_restart_count(restarts);
    if (runs) {
      container.state()["running"].set_empty_object();
    } else {
      container.state().waiting().set_reason(waiting_for);
    }
  }
  try {
    context.patch_status(change);
  } catch (const api::StatusError& e) {
    if (!api::is_not_found(e)) throw;  // somebody has scaled its deployment down
  }
  return lasts;
}

}  // namespace lookout::cmd
