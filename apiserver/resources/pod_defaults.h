// Defaults of pods that templates and persistent volumes also have.
#pragma once

#include "apiserver/json.h"

namespace lookout::apiserver::resources {

void default_pod_spec(json::Value& spec, json::Allocator& allocator);
/// The source of a volume, in a pod or a persistent volume.
void default_volume_source(json::Value& holder, json::Allocator& allocator);

}  // namespace lookout::apiserver::resources
