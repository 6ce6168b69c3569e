#include "cmd/cluster/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "cmd/cluster/names.h"
#include "lookout/api/status.h"

namespace lookout::cmd::cluster {

namespace {

/// The status of a node, as a kubelet reports it.
api::Object status_of(unsigned number, const std::string& name) {
  return api::Object::parse(fmt::format(
      R"({{"status":{{"capacity":{{"cpu":"64","memory":"256Gi","pods":"1000"}},)"
      R"("allocatable":{{"cpu":"64","memory":"256Gi","pods":"1000"}},)"
      R"("addresses":[{{"type":"InternalIP","address":"10.0.{0}.{1}"}},{{"type":"Hostname","address":"{2}"}}],)"
      R"("nodeInfo":{{"operatingSystem":"linux","architecture":"amd64","kubeletVersion":"v0.0.0-simulated",)"
      R"("osImage":"none","kernelVersion":"none","containerRuntimeVersion":"none://0","kubeProxyVersion":"",)"
      R"("machineID":"{2}","systemUUID":"{2}","bootID":"{2}"}},)"
      R"("conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady","message":"simulated"}}]}}}})",
      number / 256, number % 256, name));
}

constexpr std::string_view kNoSchedule = "NoSchedule";
constexpr std::string_view kNoExecute = "NoExecute";

bool has_selected_labels(api::Value pod_spec, const Node& node) {
  for (const auto& [name, value] : pod_spec["nodeSelector"].members()) {
    if (node.labels()[name].as_string() != value.as_string()) return false;
  }
  return true;
}

/// The rules of core/v1 Toleration.ToleratesTaint().
bool tolerates(api::Value pod_spec, std::string_view key, std::string_view value,
               std::string_view effect) {
  for (const api::Value toleration : pod_spec["tolerations"].elements()) {
    const std::string_view of_effect = toleration["effect"].as_string();
    const std::string_view of_key = toleration["key"].as_string();
    if (!of_effect.empty() && of_effect != effect) continue;
    if (!of_key.empty() && of_key != key) continue;
    if (toleration["operator"].as_string() == "Exists") return true;
    if (!of_key.empty() && toleration["value"].as_string() == value) return true;
  }
  return false;
}

/// True if the node has a taint with one of the effects that the pod does not tolerate.
bool has_untolerated_taint(api::Value pod_spec, const Node& node,
                           std::initializer_list<std::string_view> effects) {
  for (const auto taint : node.spec().taints()) {
    if (taint.key() == "node.kubernetes.io/not-ready") continue;
    if (std::find(effects.begin(), effects.end(), taint.effect()) == effects.end()) continue;
    if (!tolerates(pod_spec, taint.key(), taint.value(), taint.effect())) return true;
  }
  return false;
}

}  // namespace

void create_nodes(const rest::Client& client, unsigned count) {
  const auto nodes = client.resource<Node>();
  for (unsigned i = 1; i <= count; ++i) {
    const std::string name = fmt::format("node-{}", i);
    const auto node = Node::draft(name);
    const auto labels = node.metadata().labels();
    labels.set("kubernetes.io/hostname", name);
    labels.set("kubernetes.io/os", "linux");
    labels.set("kubernetes.io/arch", "amd64");
    try {
      nodes.create(node);
      // New nodes have a not-ready taint, which a controller removes in a real cluster.
      nodes.patch(name, rest::PatchType::kMerge, R"({"spec":{"taints":null}})");
    } catch (const api::StatusError& e) {
      if (!api::is_already_exists(e)) throw;
    }
    const auto change = nodes.get(name).edit();
    const auto status = status_of(i, name);
    change["status"].set(status["status"]);
    nodes.patch_status(change);
  }
}

std::string_view refusal(api::Value pod_spec, const Node& node) {
  if (!has_selected_labels(pod_spec, node)) return "didn't match Pod's node affinity/selector";
  if (has_untolerated_taint(pod_spec, node, {kNoSchedule, kNoExecute}))
    return "had untolerated taint(s)";
  return {};
}

bool admits(api::Value pod_spec, const Node& node) { return refusal(pod_spec, node).empty(); }

bool keeps(api::Value pod_spec, const Node& node) {
  return has_selected_labels(pod_spec, node) &&
         !has_untolerated_taint(pod_spec, node, {kNoExecute});
}

bool tolerates_cordons(api::Value pod_spec) {
  return tolerates(pod_spec, "node.kubernetes.io/unschedulable", "", kNoSchedule);
}

}  // namespace lookout::cmd::cluster
