// The fixture of the tests of the simulated cluster: `lookout serve --simulate-cluster`, around a server in this
// process.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cmd/cluster/names.h"
#include "cmd/cluster/simulated_cluster.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/discovery/v1.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::cmd::cluster {

using test::eventually;
using test::held;

inline Options quick() {
  Options out;
  out.kubelet.starts_after_at_least = std::chrono::milliseconds(1);
  out.kubelet.starts_after_at_most = std::chrono::milliseconds(20);
  out.kubelet.runs_for = std::chrono::milliseconds(20);
  return out;
}

class SimulatedClusterTest : public testing::Test {
 protected:
  template <class T>
  rest::TypedClient<T> in() const {
    return client_.resource<T>("default");
  }
  template <class T>
  T create(const std::string& name, const std::string& spec) const {
    return in<T>().create(
        api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{}}})", name, spec)));
  }
  /// The spec of a workload; `more` begins with a comma.
  static std::string workload(const std::string& app, int replicas, const std::string& more = "") {
    return fmt::format(
        R"({{"replicas":{1},"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{2}{3}}})", app,
        replicas, pod_template(app), more);
  }
  static std::string pod_template(const std::string& app, const std::string& more = "") {
    return fmt::format(
        R"({{"metadata":{{"labels":{{"app":"{0}"}}}},"spec":{{"containers":[{{"name":"c","image":"{0}:1",)"
        R"("ports":[{{"name":"http","containerPort":8080}}]}}]{1}}}}})",
        app, more);
  }
  /// Like `kubectl set image`.
  template <class T>
  void set_image(const std::string& name, const std::string& image) const {
    in<T>().patch(
        name, rest::PatchType::kStrategicMerge,
        fmt::format(
            R"({{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c","image":"{}"}}]}}}}}}}})",
            image));
  }
  std::vector<Pod> pods(const std::string& app) const {
    return in<Pod>().list({.label_selector = "app=" + app}).items;
  }
  /// Decides like `kubectl rollout status`.
  bool is_rolled_out(const std::string& name) const {
    const Deployment d = in<Deployment>().get(name);
    const auto status = d.status();
    const auto wanted = d.spec().replicas().value_or(1);
    return status.observed_generation() == d.metadata().generation() &&
           status.updated_replicas() == wanted && status.replicas() == wanted &&
           status.available_replicas() == wanted;
  }
  std::vector<ReplicaSet> sets() const { return in<ReplicaSet>().list().items; }
  static std::string image(const Pod& pod) {
    return std::string(pod["spec"]["containers"][0]["image"].as_string());
  }

  const apiserver::Server server_;
  const rest::Client client_{without_warnings(server_.client_config())};
  SimulatedCluster cluster_{client_, quick()};
};

}  // namespace lookout::cmd::cluster
