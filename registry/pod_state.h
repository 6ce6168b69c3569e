// What all pods say of themselves.
#pragma once

#include "lookout/api/core/v1.h"
#include "lookout/api/object.h"

namespace lookout::registry::detail {

/// Where the cluster says that a pod runs.
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

inline bool pod_is_running(const api::Object& pod) {
  return core::v1::Pod(pod).status().phase() == "Running";
}

/// Its Ready condition holds, and it has not been told to go.
inline bool pod_is_ready(const api::Object& pod) {
  if (!pod["metadata"]["deletionTimestamp"].as_string().empty()) return false;
  for (const auto condition : core::v1::Pod(pod).status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return false;
}

}  // namespace lookout::registry::detail
