// SimulatedCluster: simulates nodes and controllers for an API server.
#pragma once

#include <future>
#include <memory>
#include <stop_token>

#include "cmd/cluster/events.h"
#include "cmd/cluster/nodes.h"
#include "lookout/base/pinned.h"
#include "lookout/controller/manager.h"
#include "lookout/rest/client.h"
#include "lookout/rest/config.h"

namespace lookout::cmd::cluster {

struct Options {
  unsigned nodes = 3;
  KubeletOptions kubelet = {};
};

/// The client configuration for a simulated cluster: ignores the server's warnings, because the cluster
/// uses the deprecated Endpoints.
rest::Config without_warnings(rest::Config config);

/// Runs simulated nodes and controllers while this object exists: Deployments, ReplicaSets, StatefulSets,
/// DaemonSets, Jobs, CronJobs, Services, PodDisruptionBudgets, service accounts, a scheduler and kubelets.
/// All of them use the API with the rights of `client`.
class SimulatedCluster : public base::Pinned {
 public:
  /// Creates the nodes. Throws what the client throws.
  explicit SimulatedCluster(const rest::Client& client, const Options& options = {});
  ~SimulatedCluster();

  /// Stops everything and writes the last events; rethrows the error that ended it earlier, if any. Call
  /// it once, while the server runs.
  void stop();

 private:
  const std::shared_ptr<Events> events_;
  Scheduler scheduler_;
  Kubelet kubelet_;
  controller::Manager manager_;
  std::stop_source stop_;
  std::future<void> ended_;
};

}  // namespace lookout::cmd::cluster
