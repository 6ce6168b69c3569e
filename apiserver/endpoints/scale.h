// The scale subresource.
#pragma once

#include <memory>

#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The autoscaling/v1 Scale of an object. Throws api::StatusError (500) for a custom resource whose
/// number of replicas is not an integer.
api::Object scale_of(const resources::ServedResource& resource, const api::Object& object);
/// The same for a client that asks for it, which takes 0 for "scaled down": throws api::StatusError
/// (500) also if a custom resource does not say how many.
api::Object read_scale(const resources::ServedResource& resource, const api::Object& object);

/// The object with the number of replicas of a scale. Throws api::StatusError for a scale that is
/// none of this object.
api::Object scaled(const resources::ServedResource& resource, const api::Object& object,
                   const api::Object& scale);

/// The change of an object that a change of its scale makes. `owner` records who changes the number
/// of replicas, unless the change, which is server-side apply then, has done so; null where nobody
/// does.
resources::Store::Change scale_change(const resources::ServedResourcePtr& resource,
                                      resources::Store::Change change,
                                      std::shared_ptr<const fields::FieldManager> owner,
                                      bool applies);

}  // namespace lookout::apiserver::endpoints
