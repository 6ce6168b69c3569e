// Conversions between the versions of built-in resources that share their objects.
#pragma once

#include "apiserver/json.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Converts between events.k8s.io/v1 and the Event of the core group, in whose form all events are
/// stored.
api::Object core_event(const api::Object& event);
api::Object new_event(const api::Object& event);

/// Converts between autoscaling/v1 and v2. All autoscalers are stored as v2. In v1, annotations
/// hold data without a field.
api::Object autoscaler_v2(const api::Object& autoscaler);
api::Object autoscaler_v1(const api::Object& autoscaler);

/// Removes these annotations. Returns whether there was one.
bool drop_autoscaler_annotations(json::Value& autoscaler);

/// Whether an annotation of an autoscaler in v1 has metrics.
bool has_annotated_metrics(json::Value& autoscaler, json::Allocator& allocator);

}  // namespace lookout::apiserver::resources
