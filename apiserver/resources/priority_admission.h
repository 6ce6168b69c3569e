// The priority of new pods, from PriorityClasses.
#pragma once

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::resources {

/// A new pod with the priority and the preemption policy of its PriorityClass, or of the default class
/// if it has none (k8s.io/kubernetes/plugin/pkg/admission/priority). `classes` are the
/// PriorityClasses. Throws api::StatusError (403) if the class does not exist, or if the pod's values
/// differ from those of its class.
Awaitable<api::Object> admit_priority(ServedResourcePtr classes, api::Object pod);

/// Throws api::StatusError (403) if a PriorityClass that is created or changed is a second default.
Awaitable<void> check_only_default(ServedResourcePtr classes, api::Object priority_class,
                                   bool is_new);

}  // namespace lookout::apiserver::resources
