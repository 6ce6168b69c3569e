// Reading fields of pods of 6 KB through the typed views. "field" is the time of one field.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/objects.h"
#include "lookout/k8s/core/v1.h"

namespace lookout {
namespace {

using k8s::core::v1::Pod;

const std::vector<Pod>& typed_pods() {
  static const std::vector<Pod> kPods = [] {
    std::vector<Pod> out;
    for (const auto& object : bench::pods(64)) out.emplace_back(object);
    return out;
  }();
  return kPods;
}

/// `read(pod)` reads this many fields.
template <class Read>
void add(const std::string& name, std::size_t fields, Read read) {
  benchmark::RegisterBenchmark(("ReadField/" + name).c_str(), [=](benchmark::State& state) {
    const auto& pods = typed_pods();
    for (auto _ : state) {
      for (const Pod& pod : pods) read(pod);
    }
    state.counters["field"] = benchmark::Counter(
        static_cast<double>(fields * pods.size()),
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  });
}

template <class... Values>
void use(Values&&... values) {
  (benchmark::DoNotOptimize(values), ...);
}

bool register_all() {
  add("metadata.name", 1, [](const Pod& pod) { use(pod.metadata().name()); });
  add("metadata.labels", 1, [](const Pod& pod) { use(pod.metadata().labels()); });
  add("metadata.annotations", 1, [](const Pod& pod) { use(pod.metadata().annotations()); });
  add("metadata.ownerReferences", 1,
      [](const Pod& pod) { use(pod.metadata().owner_references()); });
  add("spec.nodeName", 1, [](const Pod& pod) { use(pod.spec().node_name()); });
  add("spec.containers", 1, [](const Pod& pod) { use(pod.spec().containers()); });
  add("spec.schedulerName", 1, [](const Pod& pod) { use(pod.spec().scheduler_name()); });
  add("spec.hostname_absent", 1, [](const Pod& pod) { use(pod.spec().hostname()); });
  add("status.phase", 1, [](const Pod& pod) { use(pod.status().phase()); });
  add("status.podIP", 1, [](const Pod& pod) { use(pod.status().pod_ip()); });
  add("status.conditions", 1, [](const Pod& pod) { use(pod.status().conditions()); });
  add("containers.image", 1, [](const Pod& pod) {
    for (const auto container : pod.spec().containers()) use(container.image());
  });
  // Five conditions with two fields each.
  add("conditions.type_status", 10, [](const Pod& pod) {
    for (const auto condition : pod.status().conditions())
      use(condition.type(), condition.status());
  });
  add("all_of_spec", 39, [](const Pod& pod) {
    const auto spec = pod.spec();
    use(spec.active_deadline_seconds(), spec.affinity(), spec.automount_service_account_token(),
        spec.containers(), spec.dns_config(), spec.dns_policy(), spec.enable_service_links(),
        spec.ephemeral_containers(), spec.host_aliases(), spec.host_ipc(), spec.host_network(),
        spec.host_pid(), spec.host_users(), spec.hostname(), spec.image_pull_secrets(),
        spec.init_containers(), spec.node_name(), spec.node_selector(), spec.os(), spec.overhead(),
        spec.preemption_policy(), spec.priority(), spec.priority_class_name(),
        spec.readiness_gates(), spec.resource_claims(), spec.restart_policy(),
        spec.runtime_class_name(), spec.scheduler_name(), spec.scheduling_gates(),
        spec.security_context(), spec.service_account(), spec.service_account_name(),
        spec.set_hostname_as_fqdn(), spec.share_process_namespace(), spec.subdomain(),
        spec.termination_grace_period_seconds(), spec.tolerations(),
        spec.topology_spread_constraints(), spec.volumes());
  });
  add("all_of_status", 14, [](const Pod& pod) {
    const auto status = pod.status();
    use(status.conditions(), status.container_statuses(), status.ephemeral_container_statuses(),
        status.host_ip(), status.host_ips(), status.init_container_statuses(), status.message(),
        status.nominated_node_name(), status.phase(), status.pod_ip(), status.pod_ips(),
        status.qos_class(), status.reason(), status.resize());
  });
  add("all_of_container", 18, [](const Pod& pod) {
    for (const auto one : pod.spec().containers()) {
      use(one.args(), one.command(), one.env(), one.env_from(), one.image(),
          one.image_pull_policy(), one.lifecycle(), one.liveness_probe(), one.name(), one.ports(),
          one.readiness_probe(), one.resources(), one.security_context(), one.startup_probe(),
          one.termination_message_path(), one.termination_message_policy(), one.volume_mounts(),
          one.working_dir());
    }
  });
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace lookout
