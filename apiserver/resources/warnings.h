// Warnings about objects that are valid.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// What kube-apiserver warns the author of an object about: of pods and templates of pods what
/// pod_warnings.h says; of other built-in kinds deprecated fields, labels and annotations, fields
/// without an effect, unusual forms of IP addresses, and the like. `before` is empty for a new
/// object. (A change of the status is another matter.)
std::vector<std::string> warnings_about(const ServedResource& resource, const api::Object& object,
                                        const api::Object& before);

}  // namespace lookout::apiserver::resources
