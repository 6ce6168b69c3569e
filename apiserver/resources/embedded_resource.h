// Resources inside of custom resources (x-kubernetes-embedded-resource).
#pragma once

#include <string>

#include "apiserver/json.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The apiVersion, kind and metadata of an embedded resource, which is at `path`, follow the rules of
/// every object, but it needs no name.
void check_embedded(api::Value resource, const std::string& path, Causes& causes);

}  // namespace lookout::apiserver::resources
