// Resources in custom resources (x-kubernetes-embedded-resource).
#pragma once

#include <string>

#include "apiserver/json.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Checks the apiVersion, kind and metadata of an embedded resource, which is at `path`, by the rules
/// for every object. A name is not required.
void check_embedded(api::Value resource, const std::string& path, Causes& causes);

}  // namespace lookout::apiserver::resources
