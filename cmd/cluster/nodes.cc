#include "cmd/cluster/nodes.h"

#include <fmt/format.h>

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

bool admits(api::Value pod_spec, const Node& node) {
  for (const auto& [name, value] : pod_spec["nodeSelector"].members()) {
    if (node.labels()[name].as_string() != value.as_string()) return false;
  }
  return true;
}

}  // namespace lookout::cmd::cluster
