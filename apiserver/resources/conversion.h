// Between the versions of built-in resources that share their objects.
#pragma once

#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// events.k8s.io/v1 and the Event of the core group, as which all events are stored.
api::Object core_event(const api::Object& event);
api::Object new_event(const api::Object& event);

/// autoscaling/v1 and v2, as which all autoscalers are stored. What v1 cannot say goes into
/// annotations in Kubernetes; here only the CPU target is carried over, and other metrics are kept
/// as long as nobody writes the object in v1.
api::Object autoscaler_v2(const api::Object& autoscaler);
api::Object autoscaler_v1(const api::Object& autoscaler);

}  // namespace lookout::apiserver::resources
