#include "cmd/demo/workload.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "cmd/duration.h"
#include "lookout/api/apps/v1.h"
#include "lookout/api/core/v1.h"
#include "lookout/api/status.h"

namespace lookout::cmd {
namespace {

constexpr const char* kDeployments[] = {"web", "api", "cart", "search", "payments", "worker"};
constexpr auto kPace = std::chrono::milliseconds(40);

std::string deployment_json(const std::string& name, int replicas) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}","labels":{{"app":"{0}"}}}},)"
      R"("spec":{{"replicas":{1},"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{)"
      R"("labels":{{"app":"{0}"}}}},"spec":{{"containers":[{{"name":"{0}","image":"shop/{0}:1.0"}}]}}}}}}}})",
      name, replicas);
}

std::string pod_json(const std::string& name, const std::string& app, int node) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{0}","labels":{{"app":"{1}"}}}},)"
      R"("spec":{{"nodeName":"node-{2}","terminationGracePeriodSeconds":0,"containers":[{{"name":"{1}",)"
      R"("image":"shop/{1}:1.0","ports":[{{"name":"http","containerPort":8080}}]}}]}}}})",
      name, app, node);
}

std::string service_json(const std::string& app) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{0}"}},"spec":{{"type":"ClusterIP",)"
      R"("selector":{{"app":"{0}"}},"ports":[{{"name":"http","port":80,"targetPort":8080,"protocol":"TCP"}}]}}}})",
      app);
}

}  // namespace

Workload::Workload(rest::Client client, std::uint32_t seed)
    : client_(std::move(client)),
      random_(seed),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

Workload::~Workload() = default;

std::chrono::steady_clock::time_point Workload::soon(int from_ms, int to_ms) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(random(from_ms, to_ms));
}

void Workload::run(std::stop_token stop) {
  try {
    set_up();
  } catch (const std::exception& e) {
    spdlog::error("demo: the workload cannot be set up: {}", e.what());
    return;
  }
  do {
    try {
      step();
    } catch (const std::exception& e) {
      spdlog::warn("demo: a step of the workload failed: {}", e.what());
    }
  } while (wait_for_stop(stop, kPace));
}

void Workload::set_up() {
  try {
    client_.resource<core::v1::Namespace>().create(
        api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", kNamespace)));
  } catch (const std::exception& e) {
    if (!api::is_already_exists(e)) throw;
  }
  for (const char* name : kDeployments) {
    Deployment deployment;
    deployment.name = name;
    deployment.replicas = random(1, 6);
    client_.resource<apps::v1::Deployment>(kNamespace)
        .create(api::Object::parse(deployment_json(name, deployment.replicas)));
    deployments_.push_back(std::move(deployment));
  }
}

void Workload::step() {
  auto& deployment =
      deployments_[static_cast<std::size_t>(random(0, static_cast<int>(deployments_.size()) - 1))];
  if (random(0, 99) < 3) scale(deployment);
  if (random(0, 99) < 3) toggle_service();
  reconcile(deployment);
  const auto now = std::chrono::steady_clock::now();
  for (auto& owner : deployments_) {
    for (auto& pod : owner.pods) {
      if (pod.next_step <= now) {
        advance(owner, pod);
        return;
      }
    }
  }
}

void Workload::scale(Deployment& deployment) {
  deployment.replicas = random(0, 12);
  client_.resource<apps::v1::Deployment>(kNamespace)
      .patch(deployment.name, rest::PatchType::kMerge,
             fmt::format(R"({{"spec":{{"replicas":{}}}}})", deployment.replicas));
}

void Workload::reconcile(Deployment& deployment) {
  const auto pods = client_.resource<core::v1::Pod>(kNamespace);
  const auto have = static_cast<int>(deployment.pods.size());
  if (have < deployment.replicas) {
    Pod pod;
    pod.name = fmt::format("{}-{:05}", deployment.name, deployment.next_pod++);
    pod.phase = "Pending";
    pod.next_step = soon(300, 1500);
    pods.create(api::Object::parse(pod_json(pod.name, deployment.name, random(1, 5))));
    deployment.pods.push_back(std::move(pod));
  } else if (have > deployment.replicas) {
    const auto victim = deployment.pods.begin() + random(0, have - 1);
    rest::DeleteOptions options;
    options.grace_period_seconds = 0;
    pods.remove(victim->name, options);
    deployment.pods.erase(victim);
  } else {
    return;
  }
  update_deployment_status(deployment);
}

void Workload::advance(Deployment& deployment, Pod& pod) {
  std::string state;
  std::string reason;
  bool ready = false;
  if (pod.phase == "Pending") {
    pod.phase = "Starting";
    state = R"("waiting":{"reason":"ContainerCreating"})";
    pod.next_step = soon(300, 2000);
  } else if (pod.phase == "Running" && random(0, 3) == 0) {
    pod.phase = "Crashed";
    state = R"("waiting":{"reason":"CrashLoopBackOff"})";
    ++pod.restarts;
    pod.next_step = soon(1000, 3000);
  } else {
    pod.phase = "Running";
    state = R"("running":{})";
    ready = true;
    pod.next_step = soon(5000, 30000);
  }
  const std::string phase = pod.phase == "Starting" ? "Pending" : "Running";
  if (pod.phase == "Running" && pod.ip.empty()) {
    pod.ip = fmt::format("10.0.{}.{}", next_ip_ / 250, next_ip_ % 250 + 1);
    ++next_ip_;
  }
  client_.resource<core::v1::Pod>(kNamespace)
      .patch(
          pod.name, rest::PatchType::kMerge,
          fmt::format(
              R"({{"status":{{"phase":"{}","podIP":"{}","conditions":[{{"type":"Ready","status":"{}"}}],)"
              R"("containerStatuses":[{{"name":"{}","image":"shop/{}:1.0","imageID":"","ready":{},"restartCount":{},"state":{{{}}}}}]}}}})",
              phase, pod.ip, ready ? "True" : "False", deployment.name, deployment.name, ready,
              pod.restarts, state),
          {}, "status");
  update_deployment_status(deployment);
}

void Workload::update_deployment_status(const Deployment& deployment) {
  const auto ready = std::count_if(deployment.pods.begin(), deployment.pods.end(),
                                   [](const Pod& pod) { return pod.phase == "Running"; });
  client_.resource<apps::v1::Deployment>(kNamespace)
      .patch(
          deployment.name, rest::PatchType::kMerge,
          fmt::format(
              R"({{"status":{{"replicas":{0},"updatedReplicas":{0},"readyReplicas":{1},"availableReplicas":{1}}}}})",
              deployment.pods.size(), ready),
          {}, "status");
}

void Workload::toggle_service() {
  const std::string name = kDeployments[random(0, 5)];
  const auto services = client_.resource<core::v1::Service>(kNamespace);
  if (services_.erase(name) > 0) {
    services.remove(name);
  } else {
    services.create(api::Object::parse(service_json(name)));
    services_.insert(name);
  }
}

}  // namespace lookout::cmd
