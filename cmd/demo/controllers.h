// The controllers of the demo's cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "lookout/controller/context.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::cmd {

/// Gives each Deployment as many pods as it asks for, and reports how many are ready. (In a cluster
/// there is a ReplicaSet between them.)
class DeploymentController {
 public:
  explicit DeploymentController(std::uint32_t seed) : random_(seed) {}
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  void create_pod(const k8s::apps::v1::Deployment& deployment, controller::Context& context);

  std::minstd_rand random_;
};

/// Does to the pods' status what the kubelets of a busy cluster do: containers start, run, crash
/// now and then, and start again.
class Kubelet {
 public:
  explicit Kubelet(std::uint32_t seed) : random_(seed) {}
  /// The controller refers to this object.
  void add_to(controller::Manager& manager);

 private:
  using Time = std::chrono::steady_clock::time_point;

  controller::Result reconcile(const controller::Request& request, controller::Context& context);
  /// Takes the pod to its next phase, and returns how long that lasts.
  std::chrono::milliseconds advance(const k8s::core::v1::Pod& pod, controller::Context& context);
  std::chrono::milliseconds random(int from_ms, int to_ms) {
    return std::chrono::milliseconds(std::uniform_int_distribution<int>(from_ms, to_ms)(random_));
  }

  std::minstd_rand random_;
  std::map<std::string, Time> next_steps_;  // by the pods' keys
  int next_ip_ = 1;
};

}  // namespace lookout::cmd
