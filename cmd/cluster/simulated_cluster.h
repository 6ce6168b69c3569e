// SimulatedCluster: a cluster around an API server, in which everything runs and nothing is real.
#pragma once

#include <future>
#include <stop_token>

#include "cmd/cluster/nodes.h"
#include "lookout/controller/manager.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::cluster {

struct Options {
  unsigned nodes = 3;
  KubeletOptions kubelet = {};
};

/// Simulated nodes and the controllers of a cluster, at work while this object lives: Deployments,
/// ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, Services, service accounts, a scheduler and
/// kubelets. Everything happens through the API server's API, with the rights of `client`.
class SimulatedCluster {
 public:
  /// Creates the nodes. Throws what the client throws.
  explicit SimulatedCluster(const rest::Client& client, const Options& options = {});
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// Stops everything; throws what has ended it before. Call it once.
  void stop();

 private:
  Scheduler scheduler_;
  Kubelet kubelet_;
  controller::Manager manager_;
  std::stop_source stop_;
  std::future<void> ended_;
};

}  // namespace lookout::cmd::cluster
