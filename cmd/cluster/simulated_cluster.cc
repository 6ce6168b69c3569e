#include "cmd/cluster/simulated_cluster.h"

#include <memory>

#include "cmd/cluster/controllers.h"
#include "lookout/controller/recorded_events.h"

namespace lookout::cmd::cluster {

namespace {

controller::ManagerOptions with_events(const rest::Client& client) {
  controller::ManagerOptions out;
  out.events = std::make_shared<controller::RecordedEvents>(client);
  return out;
}

}  // namespace

rest::Config without_warnings(rest::Config config) {
  config.on_warning = [](const rest::Warning&) {};
  return config;
}

SimulatedCluster::SimulatedCluster(const rest::Client& client, const Options& options)
    : kubelet_(options.kubelet), manager_(client, with_events(client)) {
  create_nodes(client, options.nodes);
  add_deployment_controller(manager_);
  add_replica_set_controller(manager_);
  add_stateful_set_controller(manager_);
  add_daemon_set_controller(manager_);
  add_job_controller(manager_);
  add_cron_job_controller(manager_);
  add_endpoint_slice_controller(manager_);
  add_endpoints_controller(manager_);
  add_service_account_controller(manager_);
  scheduler_.add_to(manager_);
  kubelet_.add_to(manager_);
  ended_ = std::async(std::launch::async, [this] { manager_.run(stop_.get_token()); });
}

SimulatedCluster::~SimulatedCluster() {
  stop_.request_stop();
  if (ended_.valid()) ended_.wait();
}

void SimulatedCluster::stop() {
  stop_.request_stop();
  ended_.get();
}

}  // namespace lookout::cmd::cluster
