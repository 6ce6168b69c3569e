// The locations of objects in the storage.
#pragma once

#include <string_view>

#include "lookout/api/resource.h"

namespace lookout::apiserver::resources {

/// The storage location of a built-in resource's objects: "pods", "services/specs".
std::string_view place_of(const api::ResourceInfo& info);

}  // namespace lookout::apiserver::resources
