// Warnings about objects that are valid.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// The warnings of kube-apiserver about an object. For pods and templates of pods these are
/// pod_warnings(). Other built-in kinds have warnings about deprecated fields, labels and annotations,
/// about fields without an effect, and about unusual forms of IP addresses. `before` is empty for a
/// new object.
std::vector<std::string> warnings_about(const ServedResource& resource, const api::Object& object,
                                        const api::Object& before);

/// The warnings about a changed status: of unusual forms of IP addresses.
std::vector<std::string> warnings_about_status(const ServedResource& resource,
                                               const api::Object& object);

}  // namespace lookout::apiserver::resources
