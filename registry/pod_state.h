// Facts about pods for the registry: the zone label, whether a pod runs and is ready.
#pragma once

#include "lookout/api/object.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::registry::detail {

/// Where the cluster says that a pod runs.
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

inline bool pod_is_running(const api::Object& pod) {
  const k8s::core::v1::Pod typed(pod);
  return typed.status().phase() == "Running";
}

/// Its Ready condition holds, and it has not been told to go.
inline bool pod_is_ready(const api::Object& pod) {
  if (!pod["metadata"]["deletionTimestamp"].as_string().empty()) return false;
  const k8s::core::v1::Pod typed(pod);
  for (const auto condition : typed.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return false;
}

}  // namespace lookout::registry::detail
