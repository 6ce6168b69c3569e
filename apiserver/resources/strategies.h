// The functions of strategies, by kind.
#pragma once

#include "apiserver/resources/strategy.h"

namespace lookout::apiserver::resources {

/// The annotation of a daemon set that counts the changes of its template.
inline constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

// defaults.cc: Kubernetes' defaults (k8s.io/kubernetes/pkg/apis/*/v1/defaults.go) that clients
// depend on.
void default_pod(json::Value& object, json::Allocator& allocator);
void default_pod_template(json::Value& object, json::Allocator& allocator);
void default_deployment(json::Value& object, json::Allocator& allocator);
void default_replica_set(json::Value& object, json::Allocator& allocator);
void default_replication_controller(json::Value& object, json::Allocator& allocator);
void default_stateful_set(json::Value& object, json::Allocator& allocator);
void default_daemon_set(json::Value& object, json::Allocator& allocator);
void default_job(json::Value& object, json::Allocator& allocator);
void default_cron_job(json::Value& object, json::Allocator& allocator);
void default_service(json::Value& object, json::Allocator& allocator);
void default_namespace(json::Value& object, json::Allocator& allocator);
void default_secret(json::Value& object, json::Allocator& allocator);
void default_autoscaler(json::Value& object, json::Allocator& allocator);
void default_persistent_volume(json::Value& object, json::Allocator& allocator);
void default_persistent_volume_claim(json::Value& object, json::Allocator& allocator);
void default_node(json::Value& object, json::Allocator& allocator);
void default_node_status(json::Value& object, json::Allocator& allocator);
void default_service_status(json::Value& object, json::Allocator& allocator);
void default_namespace_status(json::Value& object, json::Allocator& allocator);
void default_volume_status(json::Value& object, json::Allocator& allocator);
void default_endpoints(json::Value& object, json::Allocator& allocator);
void default_endpoint_slice(json::Value& object, json::Allocator& allocator);
void default_ingress_class(json::Value& object, json::Allocator& allocator);
void default_network_policy(json::Value& object, json::Allocator& allocator);
void default_limit_range(json::Value& object, json::Allocator& allocator);
void default_priority_class(json::Value& object, json::Allocator& allocator);
void default_storage_class(json::Value& object, json::Allocator& allocator);
void default_resource_claim(json::Value& object, json::Allocator& allocator);
void default_resource_claim_template(json::Value& object, json::Allocator& allocator);
void default_api_service(json::Value& object, json::Allocator& allocator);
void default_flow_schema(json::Value& object, json::Allocator& allocator);
void default_priority_level(json::Value& object, json::Allocator& allocator);
void default_csi_driver(json::Value& object, json::Allocator& allocator);
void default_role_binding(json::Value& object, json::Allocator& allocator);
void default_webhooks(json::Value& object, json::Allocator& allocator);
void default_mutating_webhooks(json::Value& object, json::Allocator& allocator);
void default_admission_policy(json::Value& object, json::Allocator& allocator);
void default_admission_policy_binding(json::Value& object, json::Allocator& allocator);
void default_custom_resource_definition(json::Value& object, json::Allocator& allocator);

/// Whether a service (given its spec) can be reached from outside of the cluster.
bool is_externally_accessible(const json::Value& spec);

// prepare_pod.cc
/// The QoS class of a pod: "Guaranteed", "Burstable", "BestEffort".
std::string_view quality_of_service(const json::Value& spec);
/// Adds the default tolerations for not-ready and unreachable nodes (the plugin
/// DefaultTolerationSeconds).
void tolerate_lost_nodes(json::Value& spec, json::Allocator& allocator);
void prepare_pod_update(json::Value& object, const json::Value& old, json::Allocator& allocator);
void prepare_pod(json::Value& object, json::Allocator& allocator);

// prepare_service.cc
void prepare_service(json::Value& object, json::Allocator& allocator);
void prepare_service_update(json::Value& object, const json::Value& old,
                            json::Allocator& allocator);

// prepare.cc
void prepare_endpoint_slice(json::Value& object, json::Allocator& allocator);
void prepare_endpoint_slice_update(json::Value& object, const json::Value& old,
                                   json::Allocator& allocator);
void prepare_limit_range(json::Value& object, json::Allocator& allocator);
void prepare_node(json::Value& object, json::Allocator& allocator);
void prepare_node_update(json::Value& object, const json::Value& old, json::Allocator& allocator);
void prepare_job(json::Value& object, json::Allocator& allocator);
void prepare_daemon_set(json::Value& object, json::Allocator& allocator);
void prepare_daemon_set_update(json::Value& object, const json::Value& old,
                               json::Allocator& allocator);
api::Object finish_daemon_set_update(const api::Object& set, const api::Object& old);
void prepare_api_service(json::Value& object, json::Allocator& allocator);
void prepare_service_account(json::Value& object, json::Allocator& allocator);
void prepare_service_account_update(json::Value& object, const json::Value& old,
                                    json::Allocator& allocator);
void prepare_namespace(json::Value& object, json::Allocator& allocator);
void prepare_persistent_volume(json::Value& object, json::Allocator& allocator);
void prepare_persistent_volume_claim(json::Value& object, json::Allocator& allocator);
void prepare_persistent_volume_claim_update(json::Value& object, const json::Value& old,
                                            json::Allocator& allocator);
void prepare_attributes_class(json::Value& object, json::Allocator& allocator);
void prepare_custom_resource_definition(json::Value& object, json::Allocator& allocator);
void default_definition_status(json::Value& object, json::Allocator& allocator);
void prepare_signing_request_update(json::Value& object, const json::Value& old,
                                    json::Allocator& allocator);
void prepare_node_status(json::Value& object, const json::Value& old, json::Allocator& allocator);
void prepare_persistent_volume_status(json::Value& object, const json::Value& old,
                                      json::Allocator& allocator);
void prepare_namespace_update(json::Value& object, const json::Value& old,
                              json::Allocator& allocator);
void prepare_custom_resource_definition_update(json::Value& object, const json::Value& old,
                                               json::Allocator& allocator);

// pod_validation.cc
void validate_pod(const api::Object& object, Causes& causes);
void validate_pod_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_new_pod(const api::Object& object, Causes& causes);

// pod_status.cc
void default_pod_status(json::Value& object, json::Allocator& allocator);
void prepare_pod_status(json::Value& object, const json::Value& old, json::Allocator& allocator);
void validate_pod_status(const api::Object& object, const api::Object& old, Causes& causes);

// workload_validation.cc
void validate_deployment(const api::Object& object, Causes& causes);
void validate_replica_set(const api::Object& object, Causes& causes);
void validate_replication_controller(const api::Object& object, Causes& causes);
void validate_stateful_set(const api::Object& object, Causes& causes);
void validate_new_stateful_set(const api::Object& object, Causes& causes);
void validate_daemon_set(const api::Object& object, Causes& causes);
void validate_pod_template_object(const api::Object& object, Causes& causes);
void validate_controller_revision(const api::Object& object, Causes& causes);
void validate_new_controller_revision(const api::Object& object, Causes& causes);
void validate_selector_stays(const api::Object& object, const api::Object& old, Causes& causes);
void validate_stateful_set_update(const api::Object& object, const api::Object& old,
                                  Causes& causes);
void validate_controller_revision_update(const api::Object& object, const api::Object& old,
                                         Causes& causes);
/// Checks the counts in the status of a workload.
void validate_deployment_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_replicas_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_stateful_set_status(const api::Object& object, const api::Object& old,
                                  Causes& causes);
void validate_daemon_set_status(const api::Object& object, const api::Object& old, Causes& causes);

// batch_validation.cc
void validate_job(const api::Object& object, Causes& causes);
void validate_cron_job(const api::Object& object, Causes& causes);
void validate_new_cron_job(const api::Object& object, Causes& causes);
void validate_job_update(const api::Object& object, const api::Object& old, Causes& causes);

// job_status.cc
void validate_job_status(const api::Object& object, const api::Object& old, Causes& causes);

// rbac_validation.cc
void validate_role(const api::Object& object, Causes& causes);
void validate_cluster_role(const api::Object& object, Causes& causes);
void validate_role_binding(const api::Object& object, Causes& causes);
void validate_cluster_role_binding(const api::Object& object, Causes& causes);
void validate_role_binding_update(const api::Object& object, const api::Object& old,
                                  Causes& causes);

// storage_validation.cc
void validate_persistent_volume(const api::Object& object, Causes& causes);
void validate_persistent_volume_claim(const api::Object& object, Causes& causes);
void validate_storage_class(const api::Object& object, Causes& causes);
void validate_csi_driver(const api::Object& object, Causes& causes);
void validate_csi_node(const api::Object& object, Causes& causes);
void validate_storage_capacity(const api::Object& object, Causes& causes);
void validate_volume_attachment(const api::Object& object, Causes& causes);
void validate_attributes_class(const api::Object& object, Causes& causes);
void validate_persistent_volume_update(const api::Object& object, const api::Object& old,
                                       Causes& causes);
void validate_claim_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_claim_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_volume_attachment_status(const api::Object& object, const api::Object& old,
                                       Causes& causes);
void validate_storage_class_update(const api::Object& object, const api::Object& old,
                                   Causes& causes);
void validate_csi_driver_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_csi_node_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_storage_capacity_update(const api::Object& object, const api::Object& old,
                                      Causes& causes);
void validate_volume_attachment_update(const api::Object& object, const api::Object& old,
                                       Causes& causes);
void validate_attributes_class_update(const api::Object& object, const api::Object& old,
                                      Causes& causes);

// network_validation.cc
void validate_service(const api::Object& object, Causes& causes);
void validate_service_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_endpoints(const api::Object& object, Causes& causes);
void validate_endpoint_slice(const api::Object& object, Causes& causes);
void validate_ingress(const api::Object& object, Causes& causes);
void validate_new_ingress(const api::Object& object, Causes& causes);
void validate_ingress_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_ingress_class(const api::Object& object, Causes& causes);
void validate_network_policy(const api::Object& object, Causes& causes);
void validate_new_service_cidr(const api::Object& object, Causes& causes);
void validate_ip_address(const api::Object& object, Causes& causes);
api::validation::Messages check_ip_name(std::string_view name);
void validate_service_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_endpoint_slice_update(const api::Object& object, const api::Object& old,
                                    Causes& causes);
void validate_ingress_class_update(const api::Object& object, const api::Object& old,
                                   Causes& causes);
void validate_service_cidr_update(const api::Object& object, const api::Object& old,
                                  Causes& causes);
void validate_ip_address_update(const api::Object& object, const api::Object& old, Causes& causes);

// data_validation.cc
void validate_config_map(const api::Object& object, Causes& causes);
void validate_secret(const api::Object& object, Causes& causes);
void validate_config_map_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_secret_update(const api::Object& object, const api::Object& old, Causes& causes);

// cluster_validation.cc
void validate_event(const api::Object& object, Causes& causes);
void validate_strict_event(const api::Object& object, Causes& causes);
void validate_new_strict_event(const api::Object& object, Causes& causes);
void validate_node(const api::Object& object, Causes& causes);
void validate_new_priority_class(const api::Object& object, Causes& causes);
void validate_new_namespace(const api::Object& object, Causes& causes);
void validate_finalized_namespace(const api::Object& object, Causes& causes);
void validate_runtime_class(const api::Object& object, Causes& causes);
void validate_signing_request(const api::Object& object, Causes& causes);
void validate_namespace_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_api_service_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_lease(const api::Object& object, Causes& causes);
void validate_api_service(const api::Object& object, Causes& causes);
void validate_strict_event_update(const api::Object& object, const api::Object& old,
                                  Causes& causes);
void validate_node_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_priority_class_update(const api::Object& object, const api::Object& old,
                                    Causes& causes);
void validate_runtime_class_update(const api::Object& object, const api::Object& old,
                                   Causes& causes);

// device_validation.cc
void validate_new_device_class(const api::Object& object, Causes& causes);
void validate_device_class_update(const api::Object& object, const api::Object& old,
                                  Causes& causes);
void validate_new_resource_claim(const api::Object& object, Causes& causes);
void validate_resource_claim_template(const api::Object& object, Causes& causes);
void validate_resource_claim_update(const api::Object& object, const api::Object& old,
                                    Causes& causes);

// slice_validation.cc
void validate_new_resource_slice(const api::Object& object, Causes& causes);
void validate_resource_slice_update(const api::Object& object, const api::Object& old,
                                    Causes& causes);

// flow_validation.cc
void validate_flow_schema(const api::Object& object, Causes& causes);
void validate_flow_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_priority_level(const api::Object& object, Causes& causes);

// quota_validation.cc
void validate_resource_quota(const api::Object& object, Causes& causes);
void validate_resource_quota_status(const api::Object& object, const api::Object& old,
                                    Causes& causes);
void validate_limit_range(const api::Object& object, Causes& causes);
void validate_resource_quota_update(const api::Object& object, const api::Object& old,
                                    Causes& causes);

// scaling_validation.cc
void validate_autoscaler(const api::Object& object, Causes& causes);
void validate_new_autoscaler(const api::Object& object, Causes& causes);
void validate_autoscaler_update(const api::Object& object, const api::Object& old, Causes& causes);
void validate_autoscaler_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_disruption_budget(const api::Object& object, Causes& causes);
void validate_disruption_budget_status(const api::Object& object, const api::Object& old,
                                       Causes& causes);

// webhook_validation.cc
void validate_webhook_configuration(const api::Object& object, Causes& causes);
void validate_admission_policy(const api::Object& object, Causes& causes);
void validate_admission_policy_status(const api::Object& object, const api::Object& old,
                                      Causes& causes);
void validate_admission_policy_binding(const api::Object& object, Causes& causes);
void validate_mutating_policy(const api::Object& object, Causes& causes);
void validate_mutating_policy_binding(const api::Object& object, Causes& causes);
/// `here` names the field. `missing` is the error for versions that do not exist.
void validate_webhook_client(api::Value client, const std::string& here, Causes& causes);
void validate_review_versions(api::Value versions, const std::string& here,
                              std::string_view missing, Causes& causes);

// definition_validation.cc
void validate_custom_resource_definition(const api::Object& object, Causes& causes);
void validate_new_custom_resource_definition(const api::Object& object, Causes& causes);
void validate_definition_status(const api::Object& object, const api::Object& old, Causes& causes);
void validate_custom_resource_definition_update(const api::Object& object, const api::Object& old,
                                                Causes& causes);

// signing_request_status.cc
void prepare_signing_request_status(json::Value& object, const json::Value& old,
                                    json::Allocator& allocator);
void validate_signing_request_status(const api::Object& object, const api::Object& old,
                                     Causes& causes);

// autoscaler_conversion.cc: only these functions change the annotations that represent the spec or
// the status in v1.
void prepare_autoscaler_update(json::Value& object, const json::Value& old,
                               json::Allocator& allocator);
void prepare_autoscaler_status(json::Value& object, const json::Value& old,
                               json::Allocator& allocator);

// claim_status.cc
void prepare_resource_claim_status(json::Value& object, const json::Value& old,
                                   json::Allocator& allocator);
void validate_resource_claim_status(const api::Object& object, const api::Object& old,
                                    Causes& causes);

}  // namespace lookout::apiserver::resources
