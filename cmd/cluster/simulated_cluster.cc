#include "cmd/cluster/simulated_cluster.h"

#include <memory>
#include <utility>

#include "cmd/cluster/controllers.h"
#include "lookout/controller/event_sink.h"

namespace lookout::cmd::cluster {

namespace {

controller::ManagerOptions with_events(std::shared_ptr<controller::EventSink> events) {
  controller::ManagerOptions out;
  out.events = std::move(events);
  return out;
}

}  // namespace

rest::Config without_warnings(rest::Config config) {
  config.on_warning = [](const rest::Warning&) {};
  return config;
}

SimulatedCluster::SimulatedCluster(const rest::Client& client, const Options& options)
    : events_(std::make_shared<Events>(client)),
      kubelet_(options.kubelet, *events_),
      manager_(client, with_events(events_)) {
  create_nodes(client, options.nodes);
  add_deployment_controller(manager_);
  add_replica_set_controller(manager_);
  add_stateful_set_controller(manager_);
  add_daemon_set_controller(manager_);
  add_job_controller(manager_);
  add_cron_job_controller(manager_);
  add_endpoint_slice_controller(manager_);
  add_endpoints_controller(manager_);
  add_disruption_controller(manager_);
  add_node_controller(manager_);
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
  ended_.wait();
  events_->stop();
  ended_.get();
}

}  // namespace lookout::cmd::cluster
