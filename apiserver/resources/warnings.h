// Warnings about valid objects.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// kube-apiserver's warnings about an object. For pods and pod templates, these are pod_warnings().
/// Other built-in kinds have warnings about deprecated fields, labels and annotations, fields without
/// an effect, and non-canonical IP addresses. `before` is empty for a new object.
std::vector<std::string> warnings_about(const ServedResource& resource, const api::Object& object,
                                        const api::Object& before);

/// The warnings about a changed status: non-canonical IP addresses.
std::vector<std::string> warnings_about_status(const ServedResource& resource,
                                               const api::Object& object);

}  // namespace lookout::apiserver::resources
