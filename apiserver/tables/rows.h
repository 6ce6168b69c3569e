// The rows of built-in kinds.
#pragma once

#include <string_view>

#include "apiserver/tables/cells.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::tables {

/// Adds the cells for the columns of the resource (see columns_of). The object is in its stored form.
using AppendRow = void (*)(const api::Object& object, Cells& cells);

/// Null for resources without their own columns.
AppendRow find_row(std::string_view group, std::string_view plural);

// The rows of kinds. workload_rows.cc:
void pod_row(const api::Object& pod, Cells& cells);
void pod_template_row(const api::Object& object, Cells& cells);
void replication_controller_row(const api::Object& object, Cells& cells);
void replica_set_row(const api::Object& object, Cells& cells);
void deployment_row(const api::Object& object, Cells& cells);
void stateful_set_row(const api::Object& object, Cells& cells);
void daemon_set_row(const api::Object& object, Cells& cells);
void job_row(const api::Object& job, Cells& cells);
void cron_job_row(const api::Object& object, Cells& cells);
void disruption_budget_row(const api::Object& object, Cells& cells);
void autoscaler_row(const api::Object& object, Cells& cells);
void controller_revision_row(const api::Object& object, Cells& cells);
void scale_row(const api::Object& object, Cells& cells);

// network_rows.cc:
void service_row(const api::Object& service, Cells& cells);
void endpoints_row(const api::Object& endpoints, Cells& cells);
void endpoint_slice_row(const api::Object& slice, Cells& cells);
void ingress_row(const api::Object& ingress, Cells& cells);
void ingress_class_row(const api::Object& object, Cells& cells);
void network_policy_row(const api::Object& policy, Cells& cells);
void service_cidr_row(const api::Object& object, Cells& cells);
void ip_address_row(const api::Object& object, Cells& cells);

// storage_rows.cc:
void volume_row(const api::Object& volume, Cells& cells);
void claim_row(const api::Object& claim, Cells& cells);
void storage_class_row(const api::Object& object, Cells& cells);
void attributes_class_row(const api::Object& object, Cells& cells);
void attachment_row(const api::Object& object, Cells& cells);
void csi_node_row(const api::Object& object, Cells& cells);
void csi_driver_row(const api::Object& object, Cells& cells);
void config_map_row(const api::Object& object, Cells& cells);
void secret_row(const api::Object& object, Cells& cells);

// cluster_rows.cc:
void name_and_age_row(const api::Object& object, Cells& cells);
void namespace_row(const api::Object& object, Cells& cells);
void node_row(const api::Object& node, Cells& cells);
void event_row(const api::Object& event, Cells& cells);
void component_status_row(const api::Object& object, Cells& cells);
void quota_row(const api::Object& quota, Cells& cells);
void binding_row(const api::Object& binding, Cells& cells);
void signing_request_row(const api::Object& object, Cells& cells);
void lease_row(const api::Object& lease, Cells& cells);
void priority_class_row(const api::Object& object, Cells& cells);
void runtime_class_row(const api::Object& object, Cells& cells);
void webhooks_row(const api::Object& object, Cells& cells);
void policy_row(const api::Object& object, Cells& cells);
void policy_binding_row(const api::Object& object, Cells& cells);
void flow_schema_row(const api::Object& object, Cells& cells);
void priority_level_row(const api::Object& object, Cells& cells);
void resource_claim_row(const api::Object& object, Cells& cells);
void resource_slice_row(const api::Object& object, Cells& cells);
void api_service_row(const api::Object& object, Cells& cells);

/// When the object was created.
inline api::Value created(const api::Object& object) {
  return object["metadata"]["creationTimestamp"];
}

}  // namespace lookout::apiserver::tables
