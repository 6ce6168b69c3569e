#include "registry/kratos/pod_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/registry/kratos/registry.h"
#include "registry/pod_state.h"
#include "registry/string_map.h"
#include "registry/url.h"

namespace lookout::registry::kratos {
namespace {

using detail::StringMap;

constexpr const char* kZoneMetadata = "zone";

/// Whether kratos treats the text as an absent value.
bool stands_for_nothing(std::string_view text) {
  return text.empty() || text == "{}" || text == "null" || text == "nil" || text == "[]";
}

/// False if the annotation is malformed; then `error` is set.
bool read_annotation(const api::Object& pod, std::string_view name, StringMap& out,
                     std::string& error) {
  const std::string_view text = pod.annotations()[name].as_string();
  if (stands_for_nothing(text)) return true;
  std::string reason;
  if (detail::parse_string_map(text, out, reason)) return true;
  error = fmt::format("annotation {}: {}", name, reason);
  return false;
}

std::string protocol_of(const k8s::core::v1::ContainerPort& port, const std::string& number,
                        const StringMap& protocols) {
  if (const auto it = protocols.find(number); it != protocols.end() && !it->second.empty()) {
    return it->second;
  }
  const std::string_view name = port.name();
  if (!name.empty()) return std::string(name.substr(0, name.find('-')));
  return std::string(port.protocol().empty() ? "TCP" : port.protocol());
}

}  // namespace

const api::Projection& pod_projection() {
  static const auto kProjection = api::Projection::keep(
      {"metadata.labels.kratos-service-id", "metadata.labels.kratos-service-app",
       "metadata.labels.kratos-service-version", "metadata.labels['topology.kubernetes.io/zone']",
       "metadata.annotations.kratos-service-metadata",
       "metadata.annotations.kratos-service-protocols", "metadata.deletionTimestamp",
       "spec.containers.ports.containerPort", "spec.containers.ports.name",
       "spec.containers.ports.protocol", "status.phase", "status.podIP", "status.conditions.type",
       "status.conditions.status"});
  return kProjection;
}

void PodReader::services_of(const api::Object& pod, cache::IndexValues& services) const {
  const std::string_view name = pod.labels()[kServiceNameLabel].as_string();
  if (!name.empty()) services.add(name);
}

std::optional<bool> PodReader::readiness(const api::Object& object) const {
  const k8s::core::v1::Pod pod(object);
  if (!detail::pod_is_running(object) || pod.status().pod_ip().empty()) return std::nullopt;
  const bool ready = detail::pod_is_ready(object);
  return ready || include_unready_ ? std::optional(ready) : std::nullopt;
}

bool PodReader::read(const api::Object& object, std::string_view,
                     std::vector<InstancePtr>& instances) const {
  ServiceInstance instance;
  StringMap protocols;
  std::string error;
  if (!read_annotation(object, kMetadataAnnotation, instance.metadata, error) ||
      !read_annotation(object, kProtocolsAnnotation, protocols, error)) {
    return false;
  }
  const auto ready = readiness(object);
  if (!ready) return true;

  const k8s::core::v1::Pod pod(object);
  const auto status = pod.status();
  instance.id = object.labels()[kServiceIdLabel].as_string();
  instance.name = object.labels()[kServiceNameLabel].as_string();
  instance.version = object.labels()[kServiceVersionLabel].as_string();
  instance.origin = object.key();
  instance.ready = *ready;
  if (const auto zone = instance.metadata.find(kZoneMetadata); zone != instance.metadata.end()) {
    instance.zone = zone->second;
  } else {
    instance.zone = object.labels()[detail::kZoneLabel].as_string();
  }
  for (const auto container : pod.spec().containers()) {
    for (const auto port : container.ports()) {
      const std::string number = std::to_string(port.container_port());
      Endpoint endpoint(fmt::format("{}://{}:{}", protocol_of(port, number, protocols),
                                    detail::bracketed(status.pod_ip()), number));
      // The annotation distinguishes the program's ports from those of its sidecars.
      endpoint.set_announced(protocols.empty() || protocols.contains(number));
      instance.endpoints.push_back(std::move(endpoint));
    }
  }
  instances.push_back(std::make_shared<const ServiceInstance>(std::move(instance)));
  return true;
}

void PodReader::keep(const api::Object& object, const std::vector<InstancePtr>& last,
                     std::vector<InstancePtr>& instances) const {
  const auto ready = readiness(object);
  if (!ready) return;
  const k8s::core::v1::Pod pod(object);
  const std::string_view address = pod.status().pod_ip();
  for (const InstancePtr& instance : last) {
    // The pod may have another address since.
    const bool moved = std::ranges::any_of(
        instance->endpoints, [&](const Endpoint& e) { return e.valid() && e.host() != address; });
    if (!moved) instances.push_back(detail::with_readiness(instance, *ready));
  }
}

std::optional<std::string> PodReader::defect(const api::Object& pod) const {
  StringMap ignored;
  std::string error;
  if (read_annotation(pod, kMetadataAnnotation, ignored, error) &&
      read_annotation(pod, kProtocolsAnnotation, ignored, error)) {
    return std::nullopt;
  }
  return error;
}

}  // namespace lookout::registry::kratos
