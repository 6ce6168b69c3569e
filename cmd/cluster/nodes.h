// The simulated nodes, their scheduler and kubelets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "cmd/cluster/events.h"
#include "lookout/api/value.h"
#include "lookout/controller/context.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {

/// Creates the missing nodes among node-1 to node-N and marks them as ready.
void create_nodes(const rest::Client& client, unsigned count);

/// The reason why a node does not take a pod, in the scheduler's words; empty if it does. Considers the
/// nodeSelector and taints, but not cordons. (Simulated nodes are always ready, so the not-ready taint of
/// new nodes does not count.)
std::string_view refusal(api::Value pod_spec, const k8s::core::v1::Node& node);
/// True if the node takes the pod.
bool admits(api::Value pod_spec, const k8s::core::v1::Node& node);
/// True if a pod that runs on the node may stay.
bool keeps(api::Value pod_spec, const k8s::core::v1::Node& node);
/// True if the pod may run on a cordoned node.
bool tolerates_cordons(api::Value pod_spec);

/// Binds pods to nodes, round robin among those that take them.
class Scheduler {
 public:
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  void say_unschedulable(const k8s::core::v1::Pod& pod, const std::string& message,
                         controller::Context& context);

  std::size_t next_ = 0;
};

struct KubeletOptions {
  /// The minimum and maximum time until a container runs.
  std::chrono::milliseconds starts_after_at_least{200};
  std::chrono::milliseconds starts_after_at_most{1000};
  /// The time after which containers succeed, unless they run forever.
  std::chrono::milliseconds runs_for{2000};
  /// Containers occasionally crash and restart.
  bool crashes = false;
  std::uint32_t seed = 0;
};

/// The pod annotation with the exit code of its containers; 0 by default.
inline constexpr const char* kExitCode = "simulation.lookout/exit-code";

/// Writes the status of pods as the kubelets of all nodes do: containers start and run, finite ones
/// succeed or fail, and deleted pods are removed.
class Kubelet {
 public:
  /// `events` must outlive the kubelet's controller.
  Kubelet(KubeletOptions options, Events& events)
      : options_(options), events_(events), random_(options.seed) {}
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  /// The duration of the pod's current phase; 0: unlimited.
  Duration duration_of(const k8s::core::v1::Pod& pod);
  /// Moves the pod to its next phase.
  void advance(const k8s::core::v1::Pod& pod, controller::Context& context);
  std::string new_address(controller::Context& context);
  /// Reports an event about each container of the pod. `note` gets the name and the image of one.
  void report(const k8s::core::v1::Pod& pod, controller::EventType type, std::string_view reason,
              const std::function<std::string(std::string_view, std::string_view)>& note);
  void say_started(const k8s::core::v1::Pod& pod);
  Duration random(Duration from, Duration to);

  /// The end of a pod's current phase.
  struct Step {
    std::string id;  ///< of the pod and the phase
    Time at;
  };

  const KubeletOptions options_;
  Events& events_;
  std::minstd_rand random_;
  std::map<std::string, Step> steps_;  // by the pods' keys
  std::uint32_t last_address_ = 0;     // offset from 10.244.0.0
};

}  // namespace lookout::cmd::cluster
