#include "apiserver/tables/rows.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace lookout::apiserver::tables {
namespace {

struct ResourceRow {
  std::string_view group;
  std::string_view plural;
  AppendRow append;
};
constexpr ResourceRow kRows[] = {
    {"", "componentstatuses", component_status_row},
    {"", "configmaps", config_map_row},
    {"", "endpoints", endpoints_row},
    {"", "events", event_row},
    {"", "namespaces", namespace_row},
    {"", "nodes", node_row},
    {"", "persistentvolumeclaims", claim_row},
    {"", "persistentvolumes", volume_row},
    {"", "pods", pod_row},
    {"", "podtemplates", pod_template_row},
    {"", "replicationcontrollers", replication_controller_row},
    {"", "resourcequotas", quota_row},
    {"", "secrets", secret_row},
    {"", "serviceaccounts", name_and_age_row},
    {"", "services", service_row},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", policy_row},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", policy_binding_row},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", webhooks_row},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", policy_row},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", policy_binding_row},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", webhooks_row},
    {"apiregistration.k8s.io", "apiservices", api_service_row},
    {"apps", "controllerrevisions", controller_revision_row},
    {"apps", "daemonsets", daemon_set_row},
    {"apps", "deployments", deployment_row},
    {"apps", "replicasets", replica_set_row},
    {"apps", "statefulsets", stateful_set_row},
    {"autoscaling", "horizontalpodautoscalers", autoscaler_row},
    {"autoscaling", "scale", scale_row},
    {"batch", "cronjobs", cron_job_row},
    {"batch", "jobs", job_row},
    {"certificates.k8s.io", "certificatesigningrequests", signing_request_row},
    {"coordination.k8s.io", "leases", lease_row},
    {"discovery.k8s.io", "endpointslices", endpoint_slice_row},
    {"flowcontrol.apiserver.k8s.io", "flowschemas", flow_schema_row},
    {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", priority_level_row},
    {"networking.k8s.io", "ingressclasses", ingress_class_row},
    {"networking.k8s.io", "ingresses", ingress_row},
    {"networking.k8s.io", "ipaddresses", ip_address_row},
    {"networking.k8s.io", "networkpolicies", network_policy_row},
    {"networking.k8s.io", "servicecidrs", service_cidr_row},
    {"node.k8s.io", "runtimeclasses", runtime_class_row},
    {"policy", "poddisruptionbudgets", disruption_budget_row},
    {"rbac.authorization.k8s.io", "clusterrolebindings", binding_row},
    {"rbac.authorization.k8s.io", "rolebindings", binding_row},
    {"resource.k8s.io", "deviceclasses", name_and_age_row},
    {"resource.k8s.io", "resourceclaims", resource_claim_row},
    {"resource.k8s.io", "resourceclaimtemplates", name_and_age_row},
    {"resource.k8s.io", "resourceslices", resource_slice_row},
    {"scheduling.k8s.io", "priorityclasses", priority_class_row},
    {"storage.k8s.io", "csidrivers", csi_driver_row},
    {"storage.k8s.io", "csinodes", csi_node_row},
    {"storage.k8s.io", "storageclasses", storage_class_row},
    {"storage.k8s.io", "volumeattachments", attachment_row},
    {"storage.k8s.io", "volumeattributesclasses", attributes_class_row},
};

}  // namespace

AppendRow find_row(std::string_view group, std::string_view plural) {
  // The same objects in two groups.
  if (group == "events.k8s.io") group = "";
  const auto* const row = std::ranges::find_if(
      kRows, [&](const ResourceRow& one) { return one.group == group && one.plural == plural; });
  return row == std::end(kRows) ? nullptr : row->append;
}

}  // namespace lookout::apiserver::tables
