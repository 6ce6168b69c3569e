// Validation of volume sources.
#pragma once

#include <map>
#include <string_view>

#include "apiserver/resources/field.h"

namespace lookout::apiserver::resources {

struct PodContext;

/// The volumes that containers may use, and whether each is a claim, which may be a block device.
using Volumes = std::map<std::string_view, bool>;

/// Validates the volumes of a pod or a template. Returns the valid ones.
Volumes validate_volumes(const Field& volumes, const PodContext& pod);

inline constexpr const char* kOneVolumeType = "may not specify more than 1 volume type";

// volume_sources.cc
/// A source of a volume, in a pod, that persistent volumes have, too.
void check_shared_source(std::string_view name, const Field& source);
/// The source in the spec of the persistent volume `name`.
void check_persistent_source(const Field& spec, std::string_view name);

}  // namespace lookout::apiserver::resources
