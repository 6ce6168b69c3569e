// The priority of new pods, and the classes that say it.
#pragma once

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::resources {

/// A new pod with the priority and the preemption policy of its PriorityClass, or else of the class
/// that is the default, or else without any (k8s.io/kubernetes/plugin/pkg/admission/priority).
/// `classes` are the PriorityClasses. Throws api::StatusError (403) if there is no such class, or
/// if the pod says something else than its class.
Awaitable<api::Object> admit_priority(ServedResourcePtr classes, api::Object pod);

/// Throws api::StatusError (403) if a PriorityClass that is created or changed is a second default.
Awaitable<void> check_only_default(ServedResourcePtr classes, api::Object priority_class,
                                   bool is_new);

}  // namespace lookout::apiserver::resources
