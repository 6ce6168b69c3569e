#include "cmd/demo/workload.h"

#include <fmt/format.h>

#include <iterator>

#include "cmd/duration.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"

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

void Workload::run(std::stop_token stop) {
  try {
    set_up();
  } catch (const std::exception& e) {
    log::error("demo: cannot set up the workload: {}", e.what());
    return;
  }
  do {
    try {
      step();
    } catch (const std::exception& e) {
      log::warn("demo: a step of the workload failed: {}", e.what());
    }
  } while (wait_for_stop(stop, kPace));
}

void Workload::set_up() {
  try {
    client_.resource<k8s::core::v1::Namespace>().create(
        api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", kNamespace)));
  } catch (const std::exception& e) {
    if (!api::is_already_exists(e)) throw;
  }
  for (const char* name : kDeployments) {
    client_.resource<k8s::apps::v1::Deployment>(kNamespace)
        .create(api::Object::parse(deployment_json(name, random(1, 6))));
  }
}

void Workload::step() {
  if (random(0, 99) < 3) scale();
  if (random(0, 99) < 3) toggle_service();
}

std::string Workload::any_deployment() {
  return kDeployments[random(0, static_cast<int>(std::size(kDeployments)) - 1)];
}

void Workload::scale() {
  client_.resource<k8s::apps::v1::Deployment>(kNamespace)
      .patch(any_deployment(), rest::PatchType::kMerge,
             fmt::format(R"({{"spec":{{"replicas":{}}}}})", random(0, 12)));
}

void Workload::toggle_service() {
  const std::string name = any_deployment();
  const auto services = client_.resource<k8s::core::v1::Service>(kNamespace);
  if (services_.erase(name) > 0) {
    services.remove(name);
  } else {
    services.create(api::Object::parse(service_json(name)));
    services_.insert(name);
  }
}

}  // namespace lookout::cmd
