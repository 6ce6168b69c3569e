// The operations on resources as the paths of an OpenAPI document.
#pragma once

#include "apiserver/openapi/schemas.h"
#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::openapi {

/// Adds the paths of a resource and of its subresources to `paths`, and the schemas that they need.
void add_paths(const resources::ServedResource& resource, Schemas& schemas, json::Value& paths,
               json::Allocator& allocator);

}  // namespace lookout::apiserver::openapi
