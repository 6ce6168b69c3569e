#include "apiserver/resources/strategy.h"

#include <algorithm>
#include <iterator>

#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;

struct Entry {
  std::string_view group;
  std::string_view plural;
  Strategy strategy;
};

/// The built-in resources that differ from the default strategy.
constexpr Entry kEntries[] = {
    {"",
     "pods",
     {.generation = Generation::kSpec,
      .returns_deleted_object = true,
      .set_defaults = default_pod,
      .prepare_for_create = prepare_pod,
      .prepare_for_update = prepare_pod_update,
      .validate = validate_pod,
      .validate_update = validate_pod_update}},
    {"",
     "namespaces",
     {.check_name = rules::check_dns1123_label,
      .set_defaults = default_namespace,
      .prepare_for_create = prepare_namespace,
      .prepare_for_update = prepare_namespace_update}},
    {"",
     "nodes",
     {.keeps_status_on_create = true,
      .validates_metadata_again = true,
      .set_defaults = default_node,
      .prepare_for_create = prepare_node,
      .validate = validate_node,
      .validate_update = validate_node_update}},
    {"",
     "services",
     {.check_name = rules::check_dns1035_label,
      .create_on_update = true,
      .returns_deleted_object = true,
      .validates_metadata_again = true,
      .set_defaults = default_service,
      .prepare_for_create = prepare_service,
      .prepare_for_update = prepare_service_update,
      .validate = validate_service,
      .validate_update = validate_service_update}},
    {"",
     "configmaps",
     {.validates_metadata_again = true,
      .validate = validate_config_map,
      .validate_update = validate_config_map_update}},
    {"",
     "secrets",
     {.validates_metadata_again = true,
      .set_defaults = default_secret,
      .validate = validate_secret,
      .validate_update = validate_secret_update}},
    {"",
     "persistentvolumes",
     {.returns_deleted_object = true,
      .validates_metadata_again = true,
      .set_defaults = default_persistent_volume,
      .prepare_for_create = prepare_persistent_volume,
      .validate = validate_persistent_volume}},
    {"",
     "persistentvolumeclaims",
     {.returns_deleted_object = true,
      .validates_metadata_again = true,
      .set_defaults = default_persistent_volume_claim,
      .prepare_for_create = prepare_persistent_volume_claim,
      .validate = validate_persistent_volume_claim,
      .validate_update = validate_claim_update}},
    {"", "resourcequotas", {.returns_deleted_object = true, .validates_metadata_again = true}},
    {"", "serviceaccounts", {.returns_deleted_object = true, .validates_metadata_again = true}},
    {"",
     "podtemplates",
     {.generation = Generation::kSpec,
      .returns_deleted_object = true,
      .set_defaults = default_pod_template}},
    {"",
     "endpoints",
     {.create_on_update = true, .set_defaults = default_endpoints, .validate = validate_endpoints}},
    {"", "limitranges", {.create_on_update = true, .set_defaults = default_limit_range}},
    {"", "events", {.create_on_update = true, .validate = validate_event}},
    {"",
     "replicationcontrollers",
     {.generation = Generation::kSpec,
      .orphans_dependents = true,
      .set_defaults = default_replication_controller,
      .validate = validate_replication_controller}},
    {"events.k8s.io", "events", {.create_on_update = true, .validate = validate_event}},
    {"coordination.k8s.io",
     "leases",
     {.create_on_update = true, .unconditional_update = false, .validate = validate_lease}},
    {"apps",
     "deployments",
     {.generation = Generation::kSpecOrAnnotations,
      .status_update_keeps_labels = true,
      .set_defaults = default_deployment,
      .validate = validate_deployment,
      .validate_update = validate_selector_stays,
      .validate_status = validate_replicas_status}},
    {"apps",
     "replicasets",
     {.generation = Generation::kSpec,
      .set_defaults = default_replica_set,
      .validate = validate_replica_set,
      .validate_update = validate_selector_stays,
      .validate_status = validate_replicas_status}},
    {"apps",
     "statefulsets",
     {.generation = Generation::kSpec,
      .set_defaults = default_stateful_set,
      .validate = validate_stateful_set,
      .validate_update = validate_stateful_set_update}},
    {"apps",
     "daemonsets",
     {.generation = Generation::kSpec,
      .set_defaults = default_daemon_set,
      .prepare_for_create = prepare_daemon_set,
      .prepare_for_update = prepare_daemon_set_update,
      .finish_update = finish_daemon_set_update,
      .validate = validate_daemon_set,
      .validate_update = validate_selector_stays}},
    {"batch",
     "jobs",
     {.generation = Generation::kSpec,
      .orphans_dependents = true,
      .set_defaults = default_job,
      .prepare_for_create = prepare_job,
      .validate = validate_job,
      .validate_update = validate_job_update}},
    {"batch",
     "cronjobs",
     {.generation = Generation::kSpec,
      .set_defaults = default_cron_job,
      .validate = validate_cron_job}},
    {"autoscaling",
     "horizontalpodautoscalers",
     {.set_defaults = default_autoscaler, .validate = validate_autoscaler}},
    {"storage.k8s.io", "csinodes", {.returns_deleted_object = true}},
    {"storage.k8s.io", "volumeattachments", {.returns_deleted_object = true}},
    {"storage.k8s.io",
     "csidrivers",
     {.generation = Generation::kChangesOfSpec,
      .returns_deleted_object = true,
      .set_defaults = default_csi_driver}},
    {"storage.k8s.io",
     "storageclasses",
     {.returns_deleted_object = true,
      .validates_metadata_again = true,
      .set_defaults = default_storage_class,
      .validate = validate_storage_class,
      .validate_update = validate_storage_class_update}},
    {"rbac.authorization.k8s.io",
     "roles",
     {.check_name = rules::check_path_segment_name,
      .create_on_update = true,
      .validate = validate_role}},
    {"rbac.authorization.k8s.io",
     "clusterroles",
     {.check_name = rules::check_path_segment_name,
      .create_on_update = true,
      .validate = validate_cluster_role}},
    {"rbac.authorization.k8s.io",
     "rolebindings",
     {.check_name = rules::check_path_segment_name,
      .create_on_update = true,
      .set_defaults = default_role_binding,
      .validate = validate_role_binding,
      .validate_update = validate_role_binding_update}},
    {"rbac.authorization.k8s.io",
     "clusterrolebindings",
     {.check_name = rules::check_path_segment_name,
      .create_on_update = true,
      .set_defaults = default_role_binding,
      .validate = validate_cluster_role_binding,
      .validate_update = validate_role_binding_update}},
    {"networking.k8s.io",
     "ingresses",
     {.generation = Generation::kSpec, .validate = validate_ingress}},
    {"networking.k8s.io", "ingressclasses", {.generation = Generation::kSpec}},
    {"networking.k8s.io",
     "networkpolicies",
     {.generation = Generation::kSpec, .set_defaults = default_network_policy}},
    {"policy",
     "poddisruptionbudgets",
     {.generation = Generation::kSpec, .unconditional_update = false}},
    {"discovery.k8s.io",
     "endpointslices",
     {.generation = Generation::kSpecOrLabels, .set_defaults = default_endpoint_slice}},
    {"scheduling.k8s.io",
     "priorityclasses",
     {.generation = Generation::kOnce,
      .set_defaults = default_priority_class,
      .validate = validate_priority_class,
      .validate_update = validate_priority_class_update}},
    {"resource.k8s.io", "deviceclasses", {.generation = Generation::kSpec}},
    {"resource.k8s.io", "resourceslices", {.generation = Generation::kSpec}},
    {"admissionregistration.k8s.io",
     "validatingwebhookconfigurations",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_webhooks,
      .validate = validate_webhook_configuration}},
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_mutating_webhooks,
      .validate = validate_webhook_configuration}},
    {"admissionregistration.k8s.io",
     "validatingadmissionpolicies",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_admission_policy}},
    {"admissionregistration.k8s.io",
     "validatingadmissionpolicybindings",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_admission_policy_binding}},
    {"admissionregistration.k8s.io",
     "mutatingadmissionpolicies",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_admission_policy}},
    {"admissionregistration.k8s.io",
     "mutatingadmissionpolicybindings",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_admission_policy_binding}},
    {"flowcontrol.apiserver.k8s.io",
     "flowschemas",
     {.generation = Generation::kSpec, .unconditional_update = false}},
    {"flowcontrol.apiserver.k8s.io",
     "prioritylevelconfigurations",
     {.generation = Generation::kSpec, .unconditional_update = false}},
    {"certificates.k8s.io",
     "certificatesigningrequests",
     {.prepare_for_update = prepare_signing_request_update, .validate = validate_signing_request}},
    {"apiextensions.k8s.io",
     "customresourcedefinitions",
     {.generation = Generation::kSpec,
      .unconditional_update = false,
      .set_defaults = default_custom_resource_definition,
      .prepare_for_create = prepare_custom_resource_definition,
      .prepare_for_update = prepare_custom_resource_definition_update,
      .validate = validate_custom_resource_definition,
      .validate_update = validate_custom_resource_definition_update}},
};

}  // namespace

const Strategy& strategy_for(std::string_view group, std::string_view plural) {
  static const Strategy kPlain;
  const auto* const entry =
      std::find_if(std::begin(kEntries), std::end(kEntries),
                   [&](const Entry& e) { return e.group == group && e.plural == plural; });
  return entry == std::end(kEntries) ? kPlain : entry->strategy;
}

const Strategy& custom_resource_strategy() {
  // With a status subresource, the new object already has the status of the old one.
  static const Strategy kStrategy{.generation = Generation::kContent,
                                  .unconditional_update = false,
                                  .status_update_keeps_metadata = true};
  return kStrategy;
}

bool is_new_generation(Generation generation, const api::Object& object, const api::Object& old) {
  if (generation == Generation::kNone || generation == Generation::kOnce) return false;
  const auto differs = [&](std::string_view part) {
    const api::Value now = object["metadata"][part];
    const api::Value then = old["metadata"][part];
    return !(now.empty() && then.empty()) && !(now == then);
  };
  if (generation == Generation::kSpecOrAnnotations && differs("annotations")) return true;
  if (generation == Generation::kSpecOrLabels && differs("labels")) return true;
  // Members come in one fixed order.
  const auto counted = [&](const api::Object& one) {
    std::vector<api::Members::Member> members;
    for (const auto& member : one.body().members()) {
      const bool status = member.name == "status" && generation != Generation::kContent;
      if (member.name != "metadata" && member.name != "apiVersion" && member.name != "kind" &&
          !status)
        members.push_back(member);
    }
    return members;
  };
  const auto now = counted(object);
  const auto then = counted(old);
  return !std::equal(
      now.begin(), now.end(), then.begin(), then.end(),
      [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; });
}

}  // namespace lookout::apiserver::resources
