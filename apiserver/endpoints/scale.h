// The scale subresource.
#pragma once

#include "apiserver/registry/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The autoscaling/v1 Scale of an object.
api::Object scale_of(const registry::ServedResource& resource, const api::Object& object);

/// The change of an object that a change of its scale makes.
registry::Store::Change scale_change(const registry::ServedResourcePtr& resource,
                                     registry::Store::Change change);

}  // namespace lookout::apiserver::endpoints
