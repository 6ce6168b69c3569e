#include "apiserver/registry/strategy.h"

#include <algorithm>
#include <iterator>

#include "apiserver/registry/strategies.h"

namespace lookout::apiserver::registry {
namespace {

namespace rules = api::validation;

struct Entry {
  std::string_view group;
  std::string_view plural;
  Strategy strategy;
};

Strategy with_generation() {
  Strategy strategy;
  strategy.has_generation = true;
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
  add("", "nodes", nodes);

  Strategy services;
  services.check_name = rules::check_dns1035_label;
  services.create_on_update = true;
  services.returns_deleted_object = true;
  services.set_defaults = default_service;
  services.prepare_for_create = prepare_service;
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
  claims.prepare_for_create = prepare_persistent_volume_claim;
  add("", "persistentvolumeclaims", claims);
  for (const char* plural : {"podtemplates", "resourcequotas", "serviceaccounts"})
    add("", plural, returned());
  for (const char* plural : {"csidrivers", "csinodes", "volumeattachments"})
    add("storage.k8s.io", plural, returned());
  Strategy storage_classes = returned();
  storage_classes.validate = validate_storage_class;
  add("storage.k8s.io", "storageclasses", storage_classes);

  Strategy upsert;
  upsert.create_on_update = true;
  for (const char* plural : {"endpoints", "limitranges"}) add("", plural, upsert);
  Strategy events = upsert;
  events.validate = validate_event;
  add("", "events", events);
  add("events.k8s.io", "events", events);
  Strategy leases = upsert;
  leases.unconditional_update = false;
  leases.validate = validate_lease;
  add("coordination.k8s.io", "leases", leases);

  add("apps", "deployments", workload(default_deployment, validate_deployment));
  add("apps", "replicasets", workload(default_replica_set, validate_replica_set));
  add("apps", "statefulsets", workload(default_stateful_set, validate_stateful_set));
  add("apps", "daemonsets", workload(default_daemon_set, validate_daemon_set));
  Strategy controllers = workload(default_replication_controller, validate_replication_controller);
  controllers.validate_update = nullptr;
  add("", "replicationcontrollers", controllers);
  Strategy jobs = workload(default_job, validate_job);
  jobs.validate_update = nullptr;
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
  add("rbac.authorization.k8s.io", "rolebindings", rbac(validate_role_binding));
  add("rbac.authorization.k8s.io", "clusterrolebindings", rbac(validate_cluster_role_binding));
  Strategy ingresses = with_generation();
  ingresses.validate = validate_ingress;
  add("networking.k8s.io", "ingresses", ingresses);
  for (const char* plural : {"ingressclasses", "networkpolicies"})
    add("networking.k8s.io", plural, with_generation());
  Strategy budgets = with_generation();
  budgets.unconditional_update = false;
  add("policy", "poddisruptionbudgets", budgets);
  add("discovery.k8s.io", "endpointslices", with_generation());
  Strategy priorities = with_generation();
  priorities.validate = validate_priority_class;
  add("scheduling.k8s.io", "priorityclasses", priorities);
  add("resource.k8s.io", "deviceclasses", with_generation());
  add("resource.k8s.io", "resourceslices", with_generation());
  Strategy admission = with_generation();
  admission.unconditional_update = false;
  for (const char* plural : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
                             "validatingadmissionpolicies", "validatingadmissionpolicybindings",
                             "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"})
    add("admissionregistration.k8s.io", plural, admission);
  for (const char* plural : {"flowschemas", "prioritylevelconfigurations"})
    add("flowcontrol.apiserver.k8s.io", plural, admission);

  Strategy definitions = with_generation();
  definitions.unconditional_update = false;
  definitions.set_defaults = default_custom_resource_definition;
  definitions.prepare_for_create = prepare_custom_resource_definition;
  definitions.prepare_for_update = prepare_custom_resource_definition_update;
  definitions.validate = validate_custom_resource_definition;
  definitions.validate_update = validate_custom_resource_definition_update;
  add("apiextensions.k8s.io", "customresourcedefinitions", definitions);
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
    Strategy strategy = with_generation();
    strategy.unconditional_update = false;
    strategy.status_update_keeps_metadata = true;
    return strategy;
  }();
  return kStrategy;
}

bool spec_differs(const api::Object& a, const api::Object& b) {
  // Members come in one fixed order.
  const auto spec_of = [](const api::Object& object) {
    std::vector<api::Members::Member> members;
    for (const auto& member : object.body().members()) {
      if (member.name != "metadata" && member.name != "status" && member.name != "apiVersion" &&
          member.name != "kind")
        members.push_back(member);
    }
    return members;
  };
  const auto one = spec_of(a);
  const auto other = spec_of(b);
  return !std::equal(
      one.begin(), one.end(), other.begin(), other.end(),
      [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; });
}

}  // namespace lookout::apiserver::registry
