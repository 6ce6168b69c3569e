// The schemas of custom resources, from their definitions.
#pragma once

#include <string>

#include "apiserver/openapi/schemas.h"
#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::openapi {

/// "com.example.stable.v1.CronTab".
std::string custom_schema_name(const api::GroupVersionKind& gvk);

/// Adds the schemas of a custom resource and of its list, unless they exist. Returns a reference to the
/// former. Omits parts that v2 does not support.
json::Value add_custom_schema(const resources::ServedResource& resource, Schemas& schemas,
                              json::Allocator& allocator);

}  // namespace lookout::apiserver::openapi
