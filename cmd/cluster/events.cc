#include "cmd/cluster/events.h"

#include <fmt/format.h>

#include <chrono>

namespace lookout::cmd::cluster {
namespace {

constexpr std::chrono::seconds kWritesFor{2};
constexpr const char* kKubelet = "kubelet";

std::string component_of(std::string_view controller) {
  if (controller == kKubelet) return kKubelet;
  if (controller == "scheduler") return "default-scheduler";
  return fmt::format("{}-controller", controller);
}

record::EventType recorded_type(controller::EventType type) {
  return type == controller::EventType::kWarning ? record::EventType::kWarning
                                                 : record::EventType::kNormal;
}

}  // namespace

Events::Events(rest::Client client) : broadcaster_(std::move(client)) {}

void Events::event(const api::Object& regarding, controller::EventType type,
                   std::string_view reason, const std::string& message,
                   std::string_view controller) {
  std::string component = component_of(controller);
  std::string host(component == kKubelet ? regarding["spec"]["nodeName"].as_string() : "");
  recorder_of(std::move(component), std::move(host))
      ->event(regarding, recorded_type(type), reason, message);
}

void Events::about_container(const k8s::core::v1::Pod& pod, std::string_view container,
                             controller::EventType type, std::string_view reason,
                             std::string note) {
  record::Event event;
  event.regarding = record::reference_to(pod, fmt::format("spec.containers{{{}}}", container));
  event.type = recorded_type(type);
  event.reason = reason;
  event.note = std::move(note);
  recorder_of(kKubelet, std::string(pod.spec().node_name()))->record(std::move(event));
}

void Events::stop() { broadcaster_.shutdown(kWritesFor); }

std::shared_ptr<record::EventRecorder> Events::recorder_of(std::string component,
                                                           std::string host) {
  const std::lock_guard lock(mutex_);
  auto& recorder = recorders_[{component, host}];
  if (!recorder) {
    record::EventSource source;
    source.component = std::move(component);
    source.host = std::move(host);
    recorder = broadcaster_.recorder(std::move(source));
  }
  return recorder;
}

}  // namespace lookout::cmd::cluster
