// Amounts of resources by name, and the requests of pods.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::quota {

/// corev1.ResourceList.
using ResourceList = std::map<std::string, api::Quantity, std::less<>>;

/// The amounts in an object such as {"cpu": "500m"}, without invalid quantities.
ResourceList resource_list(api::Value amounts);

/// Adds each amount to the one of the same name.
void add(ResourceList& to, const ResourceList& more);

/// The `part` ("requests" or "limits") of all containers of a pod: their sum, or the amount that the
/// init containers need, whichever is larger. With the pod's status, a container during a resize
/// counts with the larger of the requested and the current amounts.
ResourceList resources_of_containers(api::Value spec, std::string_view part,
                                     api::Value status = {});

/// The whole pod's `part`: that of its containers, overridden by pod-level resources.
ResourceList pod_resources(api::Value spec, std::string_view part, api::Value status = {});

}  // namespace lookout::apiserver::quota
