#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address_v4.hpp>
#include <string_view>

#include "cmd/cluster/names.h"
#include "cmd/cluster/nodes.h"
#include "cmd/cluster/pods.h"
#include "lookout/base/numbers.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"

namespace lookout::cmd::cluster {

using k8s::core::v1::PodDraft;

namespace {

using namespace std::chrono_literals;

enum class Phase { kNew, kCreating, kRunning, kCrashed, kEnded, kLeaving };

/// A deleted pod is removed after this time, regardless of its grace period.
constexpr auto kLeavesAfter = 100ms;

Phase phase_of(const Pod& pod) {
  if (controller::is_being_deleted(pod)) return Phase::kLeaving;
  const std::string_view phase = pod.status().phase();
  if (phase == "Succeeded" || phase == "Failed") return Phase::kEnded;
  const auto containers = pod.status().container_statuses();
  if (containers.empty()) return Phase::kNew;
  if (is_ready(pod)) return Phase::kRunning;
  return phase == "Running" ? Phase::kCrashed : Phase::kCreating;
}

bool runs_for_ever(const Pod& pod) {
  const std::string_view policy = pod.spec().restart_policy();
  return policy.empty() || policy == "Always";
}

int exit_code(const Pod& pod) {
  return base::parse_number<int>(pod.annotations()[kExitCode].as_string()).value_or(0);
}

/// True if ended containers are restarted.
bool restarts(const Pod& pod) {
  return runs_for_ever(pod) || (pod.spec().restart_policy() == "OnFailure" && exit_code(pod) != 0);
}

void set_condition(const PodDraft& change, std::string_view type, bool holds) {
  const auto condition = change.status().conditions().get_or_append(type);
  const std::string_view status = holds ? "True" : "False";
  if (condition.status() == status) return;
  condition.set_status(status).set_last_transition_time(now());
  condition.clear_reason().clear_message();
}

/// True if the status of a running pod does not reflect a resize or a new ephemeral container yet.
bool has_news(const Pod& pod) {
  const api::Value spec = pod["spec"];
  const api::Value status = pod["status"];
  if (spec["ephemeralContainers"].size() != status["ephemeralContainerStatuses"].size())
    return true;
  const api::Value containers = spec["containers"];
  const api::Value statuses = status["containerStatuses"];
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (statuses[i]["resources"] != containers[i]["resources"]) return true;
  }
  return false;
}

/// Sets the actual resources of each container to the requested ones.
void set_resources(const PodDraft& change, const Pod& pod) {
  const api::Value containers = pod["spec"]["containers"];
  const auto statuses = change["status"]["containerStatuses"];
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const api::Value resources = containers[i]["resources"];
    statuses[i]["resources"].set(resources);
    if (const api::Value requests = resources["requests"]; requests.exists())
      statuses[i]["allocatedResources"].set(requests);
  }
}

/// Ephemeral containers start immediately and run as long as the pod.
void set_ephemeral_containers(const PodDraft& change, const Pod& pod) {
  const api::Value containers = pod["spec"]["ephemeralContainers"];
  const std::size_t present = pod["status"]["ephemeralContainerStatuses"].size();
  for (std::size_t i = present; i < containers.size(); ++i) {
    const auto status = change["status"]["ephemeralContainerStatuses"].append();
    const api::Value image = containers[i]["image"];
    status["name"].set(containers[i]["name"]);
    status["image"].set(image);
    status["imageID"].set(fmt::format("simulated://{}", image.as_string()));
    status["ready"].set(false);
    status["restartCount"].set(0);
    status["state"]["running"]["startedAt"].set(api::format_time(now()));
  }
}

/// Sets the state of all containers for the next phase.
void set_containers(const PodDraft& change, const Pod& pod, Phase next) {
  std::int32_t restarts = 0;
  for (const auto container : pod.status().container_statuses())
    restarts = container.restart_count();
  if (next == Phase::kCrashed) ++restarts;
  const bool runs = next == Phase::kRunning;
  change.status().clear_container_statuses();
  for (const auto from : pod.spec().containers()) {
    const auto container = change.status().container_statuses().append();
    container.set_name(from.name()).set_image(from.image());
    container.set_image_id(runs ? fmt::format("simulated://{}", from.image()) : "");
    container.set_ready(runs).set_started(runs).set_restart_count(restarts);
    const auto state = container.state();
    if (runs) {
      state["running"]["startedAt"].set(api::format_time(now()));
    } else if (next == Phase::kEnded) {
      const int code = exit_code(pod);
      state["terminated"]["exitCode"].set(code);
      state["terminated"]["reason"].set(code == 0 ? "Completed" : "Error");
      state["terminated"]["finishedAt"].set(api::format_time(now()));
    } else {
      state["waiting"]["reason"].set(next == Phase::kCrashed ? "CrashLoopBackOff"
                                                             : "ContainerCreating");
    }
  }
  if (runs) set_resources(change, pod);
}

std::string_view host_address(const Node& node) {
  for (const auto address : node.status().addresses()) {
    if (address.type() == "InternalIP") return address.address();
  }
  return {};
}

}  // namespace

void Kubelet::add_to(controller::Manager& manager) {
  controller::Builder<Pod>(manager)
      .watches<Node>([](const Node&, Enqueue&) {})  // for their addresses
      .named("kubelet")
      .reconcile(
          [this](const Request& request, Context& context) { return reconcile(request, context); });
}

Result Kubelet::reconcile(const Request& request, Context& context) {
  const auto pod = context.find<Pod>(request);
  if (!pod || pod->spec().node_name().empty()) {
    steps_.erase(request.key());
    return {};
  }
  const Phase phase = phase_of(*pod);
  if (phase == Phase::kRunning && has_news(*pod)) {
    const auto change = pod->edit();
    set_resources(change, *pod);
    set_ephemeral_containers(change, *pod);
    context.patch_status(change);
  }
  const Duration lasts = duration_of(*pod);
  if (lasts == Duration::zero() && phase != Phase::kNew) return {};
  const auto now = std::chrono::steady_clock::now();
  Step& step = steps_[request.key()];
  const std::string id = fmt::format("{}/{}", pod->uid(), static_cast<int>(phase));
  if (step.id != id) {
    step = {id, now + lasts};
    if (phase == Phase::kLeaving && pod->status().phase() == "Running") {
      report(*pod, controller::EventType::kNormal, "Killing",
             [](auto name, auto) { return fmt::format("Stopping container {}", name); });
    }
  }
  if (step.at > now) return controller::requeue_after(step.at - now);
  advance(*pod, context);
  return {};
}

Kubelet::Duration Kubelet::duration_of(const Pod& pod) {
  switch (phase_of(pod)) {
    case Phase::kCreating:
      return random(options_.starts_after_at_least, options_.starts_after_at_most);
    case Phase::kRunning:
      if (!runs_for_ever(pod) || exit_code(pod) != 0) return options_.runs_for;
      return options_.crashes ? random(5s, 120s) : Duration::zero();
    case Phase::kCrashed:
      return random(1s, 3s);
    case Phase::kLeaving:
      return kLeavesAfter;
    case Phase::kNew:
    case Phase::kEnded:
      break;
  }
  return Duration::zero();
}

void Kubelet::advance(const Pod& pod, Context& context) {
  const Phase phase = phase_of(pod);
  if (phase == Phase::kLeaving) {
    context.remove(pod, {.grace_period_seconds = 0});
    return;
  }
  const bool ends = phase == Phase::kRunning && !restarts(pod);
  const Phase next = phase == Phase::kNew       ? Phase::kCreating
                     : ends                     ? Phase::kEnded
                     : phase == Phase::kRunning ? Phase::kCrashed
                                                : Phase::kRunning;
  const auto change = pod.edit();
  const auto status = change.status();
  set_containers(change, pod, next);
  const bool runs = next == Phase::kRunning;
  if (next == Phase::kCreating) {
    status.set_phase("Pending").set_start_time(now());
  } else {
    status.set_phase(!ends ? "Running" : exit_code(pod) == 0 ? "Succeeded" : "Failed");
  }
  if (runs && pod.status().pod_ip().empty()) {
    const std::string address = new_address(context);
    status.set_pod_ip(address);
    status["podIPs"].set_empty_list();
    status["podIPs"].append()["ip"].set(address);
  }
  for (const char* type : {"PodScheduled", "Initialized"}) set_condition(change, type, true);
  for (const char* type : {"ContainersReady", "Ready"}) set_condition(change, type, runs);
  if (const auto node = context.find<Node>("", pod.spec().node_name())) {
    const std::string_view address = host_address(*node);
    if (!address.empty() && pod.status().host_ip() != address) {
      status.set_host_ip(address);
      status["hostIPs"].set_empty_list();
      status["hostIPs"].append()["ip"].set(address);
    }
  }
  context.patch_status(change);
  if (runs) say_started(pod);
  if (next == Phase::kCrashed) {
    report(pod, controller::EventType::kWarning, "BackOff", [&](auto name, auto) {
      return fmt::format("Back-off restarting failed container {} in pod {}_{}({})", name,
                         pod.name(), pod.ns(), pod.uid());
    });
  }
}

void Kubelet::say_started(const Pod& pod) {
  using controller::EventType;
  report(pod, EventType::kNormal, "Pulled", [](auto, auto image) {
    return fmt::format(
        "Container image \"{}\" already present on machine and can be accessed by the pod", image);
  });
  report(pod, EventType::kNormal, "Created", [](auto, auto) { return "Container created"; });
  report(pod, EventType::kNormal, "Started", [](auto, auto) { return "Container started"; });
}

void Kubelet::report(const Pod& pod, controller::EventType type, std::string_view reason,
                     const std::function<std::string(std::string_view, std::string_view)>& note) {
  for (const auto container : pod.spec().containers()) {
    events_.about_container(pod, container.name(), type, reason,
                            note(container.name(), container.image()));
  }
}

std::string Kubelet::new_address(Context& context) {
  if (last_address_ == 0) {
    // The cluster may have pods from before this process started.
    for (const Pod& pod : context.list<Pod>()) {
      boost::system::error_code error;
      const auto address = boost::asio::ip::make_address_v4(pod.status().pod_ip(), error);
      if (!error) last_address_ = std::max(last_address_, address.to_uint() & 0xffffU);
    }
  }
  // No address ends in 0 or 255.
  do ++last_address_;
  while (last_address_ % 256 == 0 || last_address_ % 256 == 255);
  return fmt::format("10.244.{}.{}", last_address_ / 256 % 256, last_address_ % 256);
}

Kubelet::Duration Kubelet::random(Duration from, Duration to) {
  return Duration(std::uniform_int_distribution<Duration::rep>(from.count(), to.count())(random_));
}

}  // namespace lookout::cmd::cluster
