// Warnings about valid pods.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// kube-apiserver's warnings about a pod or an object with a pod template: deprecated labels,
/// annotations and volumes, duplicate ports and variables, and so on. `before` is empty for a new
/// object; updates have warnings only if they increase the generation.
std::vector<std::string> pod_warnings(const ServedResource& resource, const api::Object& object,
                                      const api::Object& before);

/// Warnings about AppArmor annotations of a new pod, which prepare_pod() converts to fields. `written`
/// is the pod that the client sent.
std::vector<std::string> profile_warnings(const ServedResource& resource,
                                          const api::Object& written);

/// Where the objects of a built-in resource have their pod template ("spec.template"); empty if they
/// are pods, nullopt if they have none.
std::optional<std::string_view> pod_template_path(const api::Resource& resource);

/// Why a label of nodes is deprecated; nullopt if it is not.
std::optional<std::string_view> deprecation_of_label(std::string_view label);

}  // namespace lookout::apiserver::resources
