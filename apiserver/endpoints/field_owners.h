// The owner of the fields that a request changes.
#pragma once

#include <memory>
#include <string_view>

#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Records what a request changes in the objects of a resource, or in one of their subresources.
/// `table` says which versions are served.
fields::FieldManager field_manager(const http::Request& request,
                                   std::shared_ptr<const resources::ResourceTable> table,
                                   const resources::ServedResourcePtr& resource,
                                   std::string_view subresource);

/// The same for the scale of an object, which has a type of its own.
fields::FieldManager scale_field_manager(const http::Request& request);

}  // namespace lookout::apiserver::endpoints
