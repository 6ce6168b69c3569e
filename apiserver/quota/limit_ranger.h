// LimitRanges: the limits for containers, pods and claims of a namespace.
#pragma once

#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::quota {

/// A new pod whose containers have the default requests and limits of `ranges`, with an annotation
/// about them; the same object if there is nothing to add
/// (k8s.io/kubernetes/plugin/pkg/admission/limitranger).
api::Object with_default_resources(const std::vector<api::Object>& ranges, const api::Object& pod);

/// Throws api::StatusError (403) if a new pod, or a new or changed claim, is outside of `ranges`.
/// Other resources pass. `old` is empty for a new object.
void check_limit_ranges(const std::vector<api::Object>& ranges, const api::Resource& type,
                        const api::Object& object, const api::Object& old);

}  // namespace lookout::apiserver::quota
