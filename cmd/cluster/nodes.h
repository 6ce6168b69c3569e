// The simulated nodes, and what happens on them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "lookout/api/value.h"
#include "lookout/controller/context.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {

/// Creates the nodes node-1 to node-N where they are missing, and says that they are ready.
void create_nodes(const rest::Client& client, unsigned count);

/// Whether the nodeSelector of a pod's spec admits the node.
bool admits(api::Value pod_spec, const k8s::core::v1::Node& node);

/// Gives pods to nodes, in turn, as far as their nodeSelector admits.
class Scheduler {
 public:
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  void say_unschedulable(const k8s::core::v1::Pod& pod, std::size_t nodes,
                         controller::Context& context);

  std::size_t next_ = 0;
};

struct KubeletOptions {
  /// The time until a container runs, at least and at most.
  std::chrono::milliseconds starts_after_at_least{200};
  std::chrono::milliseconds starts_after_at_most{1000};
  /// The time after which containers that do not run for ever succeed.
  std::chrono::milliseconds runs_for{2000};
  /// Containers crash now and then, and start again.
  bool crashes = false;
  std::uint32_t seed = 0;
};

/// The annotation of a pod whose containers end with another exit code than 0, which it says.
inline constexpr const char* kExitCode = "simulation.lookout/exit-code";

/// Writes the status of pods as the kubelets of all nodes do: containers start and run, those that
/// do not run for ever succeed or fail, deleted pods go.
class Kubelet {
 public:
  explicit Kubelet(KubeletOptions options) : options_(options), random_(options.seed) {}
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  /// How long the pod's present phase lasts; zero: for ever.
  Duration duration_of(const k8s::core::v1::Pod& pod);
  /// Takes the pod to its next phase.
  void advance(const k8s::core::v1::Pod& pod, controller::Context& context);
  std::string new_address(controller::Context& context);
  Duration random(Duration from, Duration to);

  /// The end of a pod's present phase.
  struct Step {
    std::string id;  ///< of the pod and the phase
    Time at;
  };

  const KubeletOptions options_;
  std::minstd_rand random_;
  std::map<std::string, Step> steps_;  // by the pods' keys
  std::uint32_t last_address_ = 0;     // 10.244.0.0 and so many
};

}  // namespace lookout::cmd::cluster
