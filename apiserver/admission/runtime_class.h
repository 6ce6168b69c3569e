// Fields that a RuntimeClass adds to its pods
// (k8s.io/kubernetes/plugin/pkg/admission/runtimeclass).
#pragma once

#include "lookout/api/object.h"

namespace lookout::apiserver::admission {

/// Adds the overhead, the node selector and the tolerations of its class to a new pod.
/// `runtime_class` is empty if no class has the pod's class name. Throws api::StatusError (403) if
/// it is empty, or if the pod contradicts its class.
api::Object with_runtime_class(const api::Object& pod, const api::Object& runtime_class);

/// Throws api::StatusError (403) if a pod's class does not exist, or if its overhead differs from
/// that of its class. `runtime_class` is empty if the pod names no class, or one that does not
/// exist.
void check_runtime_class(const api::Object& pod, const api::Object& runtime_class);

}  // namespace lookout::apiserver::admission
