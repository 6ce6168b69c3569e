// Amounts of resources by name, and what pods ask for.
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

/// The amounts in an object such as {"cpu": "500m"}; what is no quantity is left out.
ResourceList resource_list(api::Value amounts);

/// Adds each amount to the one of the same name.
void add(ResourceList& to, const ResourceList& more);

/// The `part` ("requests" or "limits") of all containers of a pod: their sum, or the amount that the
/// init containers need, whichever is larger. With the pod's status, a container that is being
/// resized counts for the larger of what it asks for and what it has.
ResourceList resources_of_containers(api::Value spec, std::string_view part,
                                     api::Value status = {});

/// The whole pod's `part`: that of its containers; what the pod says itself comes first.
ResourceList pod_resources(api::Value spec, std::string_view part, api::Value status = {});

}  // namespace lookout::apiserver::quota
