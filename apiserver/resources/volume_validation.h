// Validation of the volumes of a pod.
#pragma once

#include <map>
#include <string_view>

#include "apiserver/resources/field.h"

namespace lookout::apiserver::resources {

/// The volumes that containers may use, and whether a claim stands behind each, which makes it fit for
/// a block device.
using Volumes = std::map<std::string_view, bool>;

/// `pod` is the name of the pod, empty in a template. Volumes in which something is wrong are not
/// among the result.
Volumes validate_volumes(const Field& volumes, std::string_view pod);

}  // namespace lookout::apiserver::resources
