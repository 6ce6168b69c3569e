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
/// Like scale_of(), for a client that requests the Scale and would take 0 for "scaled down": also
/// throws api::StatusError (500) if a custom resource has no number of replicas.
api::Object read_scale(const resources::ServedResource& resource, const api::Object& object);

/// The object with the number of replicas of a Scale. Throws api::StatusError if the Scale is
/// invalid or belongs to another object.
api::Object scaled(const resources::ServedResource& resource, const api::Object& object,
                   const api::Object& scale);

/// Converts a change of a Scale to a change of its object. `owner` records the owner of the
/// replicas; null: none is recorded. `applies`: `change` is server-side apply, which records the
/// owner itself. `table` has the other versions of the resource, whose owners are known, too.
resources::Store::Change scale_change(std::shared_ptr<const resources::ResourceTable> table,
                                      const resources::ServedResourcePtr& resource,
                                      resources::Store::Change change,
                                      std::shared_ptr<const fields::FieldManager> owner,
                                      bool applies);

}  // namespace lookout::apiserver::endpoints
