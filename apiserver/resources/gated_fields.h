// Fields of pods whose feature gates are disabled by default in Kubernetes 1.36.
#pragma once

#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::resources {

/// Removes such fields from a pod or a pod template, as kube-apiserver does before validation, unless
/// `old` uses them. `old` is the object before the change; null for a new object.
void drop_gated_fields(const ServedResource& resource, json::Value& object, const json::Value* old);

}  // namespace lookout::apiserver::resources
