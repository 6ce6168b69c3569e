#include "apiserver/resources/strategy.h"

#include <algorithm>
#include <array>
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

Strategy with_generation(Generation generation = Generation::kSpec) {
  Strategy strategy;
  strategy.generation = generation;
  return strategy;
}

Strategy returned() {
  Strategy strategy;
  strategy.returns_deleted_object = true;
  return strategy;
}

/// Roles and bindings: any name that can be part of a URL.
Strategy rbac(void (*validate)(const api::Object&, Causes&)) {
  Strategy strategy;
  strategy.validate = validate;
  strategy.check_name = rules::check_path_segment_name;
  strategy.create_on_update = true;
  return strategy;
}

Strategy workload(void (*defaults)(json::Value&, json::Allocator&),
                  void (*validate)(const api::Object&, Causes&)) {
  Strategy strategy = with_generation();
  strategy.set_defaults = defaults;
  strategy.validate = validate;
  strategy.validate_update = validate_selector_stays;
  return strategy;
}

std::vector<Entry> make_entries() {
  std::vector<Entry> entries;
  const auto add = [&](std::string_view group, std::string_view plural, const Strategy& strategy) {
    entries.push_back({group, plural, strategy});
  };

  Strategy pods = with_generation();
  pods.returns_deleted_object = true;
  pods.set_defaults = default_pod;
  pods.prepare_for_create = prepare_pod;
  pods.prepare_for_update = prepare_pod_update;
  pods.validate = validate_pod;
  pods.validate_update = validate_pod_update;
  add("", "pods", pods);

  Strategy namespaces;
  namespaces.check_name = rules::check_dns1123_label;
  namespaces.set_defaults = default_namespace;
  namespaces.prepare_for_create = prepare_namespace;
  namespaces.prepare_for_update = prepare_namespace_update;
  add("", "namespaces", namespaces);

  Strategy nodes;
  nodes.keeps_status_on_create = true;
  nodes.set_defaults = default_node;
  nodes.prepare_for_create = prepare_node;
  nodes.validate = validate_node;
  nodes.validate_update = validate_node_update;
  add("", "nodes", nodes);

  Strategy services;
  services.check_name = rules::check_dns1035_label;
  services.create_on_update = true;
  services.returns_deleted_object = true;
  services.set_defaults = default_service;
  services.prepare_for_create = prepare_service;
  services.prepare_for_update = prepare_service_update;
  services.validate_update = validate_service_update;
  services.validate = validate_service;
  add("", "services", services);

  Strategy config_maps;
  config_maps.validate = validate_config_map;
  config_maps.validate_update = validate_config_map_update;
  add("", "configmaps", config_maps);

  Strategy secrets;
  secrets.set_defaults = default_secret;
  secrets.validate = validate_secret;
  secrets.validate_update = validate_secret_update;
  add("", "secrets", secrets);

  Strategy volumes = returned();
  volumes.set_defaults = default_persistent_volume;
  volumes.validate = validate_persistent_volume;
  volumes.prepare_for_create = prepare_persistent_volume;
  add("", "persistentvolumes", volumes);
  Strategy claims = returned();
  claims.set_defaults = default_persistent_volume_claim;
  claims.validate = validate_persistent_volume_claim;
  claims.validate_update = validate_claim_update;
  claims.prepare_for_create = prepare_persistent_volume_claim;
  add("", "persistentvolumeclaims", claims);
  for (const char* plural : {"resourcequotas", "serviceaccounts"}) add("", plural, returned());
  Strategy pod_templates = returned();
  pod_templates.generation = Generation::kSpec;
  pod_templates.set_defaults = default_pod_template;
  add("", "podtemplates", pod_templates);
  for (const char* plural : {"csinodes", "volumeattachments"})
    add("storage.k8s.io", plural, returned());
  Strategy drivers = returned();
  drivers.generation = Generation::kChangesOfSpec;
  drivers.set_defaults = default_csi_driver;
  add("storage.k8s.io", "csidrivers", drivers);
  Strategy storage_classes = returned();
  storage_classes.set_defaults = default_storage_class;
  storage_classes.validate = validate_storage_class;
  storage_classes.validate_update = validate_storage_class_update;
  add("storage.k8s.io", "storageclasses", storage_classes);

  Strategy upsert;
  upsert.create_on_update = true;
  Strategy endpoints = upsert;
  endpoints.set_defaults = default_endpoints;
  endpoints.validate = validate_endpoints;
  add("", "endpoints", endpoints);
  Strategy limits = upsert;
  limits.set_defaults = default_limit_range;
  add("", "limitranges", limits);
  Strategy events = upsert;
  events.validate = validate_event;
  add("", "events", events);
  add("events.k8s.io", "events", events);
  Strategy leases = upsert;
  leases.unconditional_update = false;
  leases.validate = validate_lease;
  add("coordination.k8s.io", "leases", leases);

  Strategy deployments = workload(default_deployment, validate_deployment);
  deployments.generation = Generation::kSpecOrAnnotations;
  deployments.validate_status = validate_replicas_status;
  add("apps", "deployments", deployments);
  Strategy replica_sets = workload(default_replica_set, validate_replica_set);
  replica_sets.validate_status = validate_replicas_status;
  add("apps", "replicasets", replica_sets);
  Strategy stateful_sets = workload(default_stateful_set, validate_stateful_set);
  stateful_sets.validate_update = validate_stateful_set_update;
  add("apps", "statefulsets", stateful_sets);
  Strategy daemon_sets = workload(default_daemon_set, validate_daemon_set);
  daemon_sets.prepare_for_create = prepare_daemon_set;
  daemon_sets.prepare_for_update = prepare_daemon_set_update;
  daemon_sets.finish_update = finish_daemon_set_update;
  add("apps", "daemonsets", daemon_sets);
  Strategy controllers = workload(default_replication_controller, validate_replication_controller);
  controllers.validate_update = nullptr;
  add("", "replicationcontrollers", controllers);
  Strategy jobs = workload(default_job, validate_job);
  jobs.prepare_for_create = prepare_job;
  jobs.validate_update = validate_job_update;
  add("batch", "jobs", jobs);
  Strategy cron_jobs = with_generation();
  cron_jobs.set_defaults = default_cron_job;
  cron_jobs.validate = validate_cron_job;
  add("batch", "cronjobs", cron_jobs);
  Strategy autoscalers;
  autoscalers.set_defaults = default_autoscaler;
  autoscalers.validate = validate_autoscaler;
  add("autoscaling", "horizontalpodautoscalers", autoscalers);

  add("rbac.authorization.k8s.io", "roles", rbac(validate_role));
  add("rbac.authorization.k8s.io", "clusterroles", rbac(validate_cluster_role));
  Strategy role_bindings = rbac(validate_role_binding);
  role_bindings.set_defaults = default_role_binding;
  role_bindings.validate_update = validate_role_binding_update;
  add("rbac.authorization.k8s.io", "rolebindings", role_bindings);
  Strategy cluster_role_bindings = rbac(validate_cluster_role_binding);
  cluster_role_bindings.set_defaults = default_role_binding;
  cluster_role_bindings.validate_update = validate_role_binding_update;
  add("rbac.authorization.k8s.io", "clusterrolebindings", cluster_role_bindings);
  Strategy ingresses = with_generation();
  ingresses.validate = validate_ingress;
  add("networking.k8s.io", "ingresses", ingresses);
  add("networking.k8s.io", "ingressclasses", with_generation());
  Strategy policies = with_generation();
  policies.set_defaults = default_network_policy;
  add("networking.k8s.io", "networkpolicies", policies);
  Strategy budgets = with_generation();
  budgets.unconditional_update = false;
  add("policy", "poddisruptionbudgets", budgets);
  Strategy slices = with_generation(Generation::kSpecOrLabels);
  slices.set_defaults = default_endpoint_slice;
  add("discovery.k8s.io", "endpointslices", slices);
  Strategy priorities = with_generation(Generation::kOnce);
  priorities.set_defaults = default_priority_class;
  priorities.validate = validate_priority_class;
  priorities.validate_update = validate_priority_class_update;
  add("scheduling.k8s.io", "priorityclasses", priorities);
  add("resource.k8s.io", "deviceclasses", with_generation());
  add("resource.k8s.io", "resourceslices", with_generation());
  Strategy admission = with_generation();
  admission.unconditional_update = false;
  Strategy webhooks = admission;
  webhooks.set_defaults = default_webhooks;
  webhooks.validate = validate_webhook_configuration;
  add("admissionregistration.k8s.io", "validatingwebhookconfigurations", webhooks);
  webhooks.set_defaults = default_mutating_webhooks;
  add("admissionregistration.k8s.io", "mutatingwebhookconfigurations", webhooks);
  for (const char* plural : {"validatingadmissionpolicies", "validatingadmissionpolicybindings",
                             "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"})
    add("admissionregistration.k8s.io", plural, admission);
  for (const char* plural : {"flowschemas", "prioritylevelconfigurations"})
    add("flowcontrol.apiserver.k8s.io", plural, admission);

  Strategy requests;
  requests.validate = validate_signing_request;
  add("certificates.k8s.io", "certificatesigningrequests", requests);

  Strategy definitions = with_generation();
  definitions.unconditional_update = false;
  definitions.set_defaults = default_custom_resource_definition;
  definitions.prepare_for_create = prepare_custom_resource_definition;
  definitions.prepare_for_update = prepare_custom_resource_definition_update;
  definitions.validate = validate_custom_resource_definition;
  definitions.validate_update = validate_custom_resource_definition_update;
  add("apiextensions.k8s.io", "customresourcedefinitions", definitions);
  // Kinds whose validation of a change begins with that of a new object.
  for (Entry& entry : entries) {
    constexpr std::array<std::string_view, 9> kWhole = {"configmaps",
                                                        "secrets",
                                                        "services",
                                                        "nodes",
                                                        "persistentvolumeclaims",
                                                        "persistentvolumes",
                                                        "serviceaccounts",
                                                        "resourcequotas",
                                                        "storageclasses"};
    entry.strategy.validates_metadata_again =
        std::find(kWhole.begin(), kWhole.end(), entry.plural) != kWhole.end();
  }
  return entries;
}

}  // namespace

const Strategy& strategy_for(std::string_view group, std::string_view plural) {
  static const std::vector<Entry> kEntries = make_entries();
  static const Strategy kPlain;
  const auto entry = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) {
    return e.group == group && e.plural == plural;
  });
  return entry == kEntries.end() ? kPlain : entry->strategy;
}

const Strategy& custom_resource_strategy() {
  static const Strategy kStrategy = [] {
    // With a subresource the status of the old object is in the new one by then.
    Strategy strategy = with_generation(Generation::kContent);
    strategy.unconditional_update = false;
    strategy.status_update_keeps_metadata = true;
    return strategy;
  }();
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
