// A small busy cluster, simulated.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

/// Does what controllers, kubelets and people do to a cluster: deployments are made and scaled,
/// pods come, start, crash, and go, services appear and disappear. Everything happens through the
/// API of the server, from a thread of its own, until it is destroyed.
class Workload {
 public:
  /// `client` is used from the workload's thread. `seed` decides what happens.
  Workload(rest::Client client, std::uint32_t seed);
  /// Stops; waits for the step that is under way.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  static constexpr const char* kNamespace = "shop";

 private:
  struct Pod {
    std::string name;
    std::string phase;
    /// From its first start on, whatever its container does.
    std::string ip;
    int restarts = 0;
    std::chrono::steady_clock::time_point next_step;
  };
  struct Deployment {
    std::string name;
    int replicas = 0;
    int next_pod = 0;
    std::vector<Pod> pods;
  };

  void run(std::stop_token stop);
  void set_up();
  void step();
  void scale(Deployment& deployment);
  /// As a replica set's controller: makes or deletes one pod if their number is not what it should
  /// be.
  void reconcile(Deployment& deployment);
  /// As a kubelet: takes the pod to its next phase.
  void advance(Deployment& deployment, Pod& pod);
  void update_deployment_status(const Deployment& deployment);
  void toggle_service();

  int random(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  std::chrono::steady_clock::time_point soon(int from_ms, int to_ms);

  rest::Client client_;
  std::mt19937 random_;
  std::vector<Deployment> deployments_;
  std::set<std::string> services_;
  int next_ip_ = 1;
  std::jthread thread_;
};

}  // namespace lookout::cmd
