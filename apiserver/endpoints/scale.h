// The scale subresource.
#pragma once

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The autoscaling/v1 Scale of an object.
api::Object scale_of(const resources::ServedResource& resource, const api::Object& object);

/// The change of an object that a change of its scale makes.
resources::Store::Change scale_change(const resources::ServedResourcePtr& resource,
                                      resources::Store::Change change);

}  // namespace lookout::apiserver::endpoints
