// Validation of where volumes come from.
#pragma once

#include <map>
#include <string_view>

#include "apiserver/resources/field.h"

namespace lookout::apiserver::resources {

struct PodContext;

/// The volumes that containers may use, and whether a claim stands behind each, which makes it fit for
/// a block device.
using Volumes = std::map<std::string_view, bool>;

/// The volumes of a pod or a template. Those in which something is wrong are not among the result.
Volumes validate_volumes(const Field& volumes, const PodContext& pod);

// volume_sources.cc
/// A source of a volume, in a pod, that persistent volumes have, too.
void check_shared_source(std::string_view name, const Field& source);
/// The source in the spec of the persistent volume `name`.
void check_persistent_source(const Field& spec, std::string_view name);

}  // namespace lookout::apiserver::resources
