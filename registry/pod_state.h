// Facts about pods for the registry: the zone label, whether a pod runs and is ready.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/service_instance.h"

namespace lookout::registry::detail {

/// The label with a pod's zone.
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

inline bool pod_is_running(const api::Object& pod) {
  const k8s::core::v1::Pod typed(pod);
  return typed.status().phase() == "Running";
}

/// The pod is ready and not terminating.
inline bool pod_is_ready(const api::Object& pod) {
  if (!pod["metadata"]["deletionTimestamp"].as_string().empty()) return false;
  const k8s::core::v1::Pod typed(pod);
  for (const auto condition : typed.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return false;
}

/// The instance with this readiness.
inline InstancePtr with_readiness(const InstancePtr& instance, bool ready) {
  if (instance->ready == ready) return instance;
  ServiceInstance out = *instance;
  out.ready = ready;
  return std::make_shared<const ServiceInstance>(std::move(out));
}

/// A patch was rejected because the pod's uid has changed: the pod was replaced under the same name,
/// as StatefulSets do.
inline bool pod_was_replaced(const std::exception& refusal) {
  const auto* answer = dynamic_cast<const api::StatusError*>(&refusal);
  return answer != nullptr && api::is_invalid(refusal) &&
         std::ranges::any_of(answer->status().causes,
                             [](const auto& cause) { return cause.field == "metadata.uid"; });
}

}  // namespace lookout::registry::detail
