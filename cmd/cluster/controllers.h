// The controllers of the simulated cluster, for the workloads that kube-controller-manager handles.
#pragma once

#include "lookout/controller/manager.h"

namespace lookout::cmd::cluster {

/// ReplicaSets of Deployments: rolling updates and Recreate, revisions for `kubectl rollout undo`,
/// pauses, history limits.
void add_deployment_controller(controller::Manager& manager);
/// Pods of ReplicaSets.
void add_replica_set_controller(controller::Manager& manager);
/// Pods of StatefulSets, one after another, with their claims; rolling updates start with the last pod.
void add_stateful_set_controller(controller::Manager& manager);
/// A pod of each DaemonSet on each node that its nodeSelector admits.
void add_daemon_set_controller(controller::Manager& manager);
/// Pods of Jobs, until enough have succeeded.
void add_job_controller(controller::Manager& manager);
/// Jobs of CronJobs, at the times of their schedules.
void add_cron_job_controller(controller::Manager& manager);
/// EndpointSlices of Services with a selector.
void add_endpoint_slice_controller(controller::Manager& manager);
/// Endpoints of Services with a selector, of which EndpointSlices are the successor.
void add_endpoints_controller(controller::Manager& manager);
/// Counts the disruptions that PodDisruptionBudgets allow.
void add_disruption_controller(controller::Manager& manager);
/// Evicts pods from nodes with NoExecute taints, and removes those of deleted nodes.
void add_node_controller(controller::Manager& manager);
/// The service account "default" of each namespace.
void add_service_account_controller(controller::Manager& manager);

}  // namespace lookout::cmd::cluster
