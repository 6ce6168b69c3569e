// The refusal of a pod by an admission plugin.
#pragma once

#include <string_view>

#include "apiserver/names.h"

namespace lookout::apiserver::resources {

/// A 403. (The name of a pod with a generateName is generated after admission.)
inline StatusError forbidden_pod(const Object& pod, std::string_view why) {
  std::string_view name = pod.name();
  if (name.empty()) name = pod["metadata"]["generateName"].as_string("Unknown");
  return StatusError::forbidden("", "pods", name, why);
}

}  // namespace lookout::apiserver::resources
