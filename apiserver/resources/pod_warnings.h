// Warnings about pods that are valid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// What kube-apiserver warns the author of a pod, or of an object with a template of pods, about:
/// deprecated labels, annotations and volumes, ports and variables that are defined twice, and the
/// like. `before` is empty for a new object; a change warns if it makes a new generation.
std::vector<std::string> pod_warnings(const ServedResource& resource, const api::Object& object,
                                      const api::Object& before);

/// Warnings about AppArmor annotations of a new pod, which prepare_pod() turns into fields. `written` is the pod
/// as the client sent it.
std::vector<std::string> profile_warnings(const ServedResource& resource,
                                          const api::Object& written);

/// Why a label of nodes should not be used any more.
std::optional<std::string_view> deprecation_of_label(std::string_view label);

}  // namespace lookout::apiserver::resources
