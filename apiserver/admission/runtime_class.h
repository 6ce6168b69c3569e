// Fields that a RuntimeClass adds to the pods that name it (k8s.io/kubernetes/plugin/pkg/admission/runtimeclass).
#pragma once

#include "lookout/api/object.h"

namespace lookout::apiserver::admission {

/// A new pod with the overhead, the node selector and the tolerations of its class. Throws
/// api::StatusError (403) if the class is empty, because there is none of this name, or if the pod
/// says something else than its class.
api::Object with_runtime_class(const api::Object& pod, const api::Object& runtime_class);

/// Throws api::StatusError (403) if the overhead of a pod is not that of its class, which is empty
/// if the pod names none, or one that does not exist.
void check_runtime_class(const api::Object& pod, const api::Object& runtime_class);

}  // namespace lookout::apiserver::admission
