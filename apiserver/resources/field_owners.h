// FieldManagers for the writes of a resource.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::resources {

/// Records the changes of `manager` in the objects of a resource or its subresource. `table` has the
/// served versions.
fields::FieldManager field_manager(std::string manager, std::shared_ptr<const ResourceTable> table,
                                   const ServedResourcePtr& resource, std::string_view subresource);

/// The same for an object of a different kind that is not stored in this form, such as a Scale or a
/// TokenRequest.
fields::FieldManager field_manager(std::string manager, const api::GroupVersionKind& kind,
                                   std::string subresource);

}  // namespace lookout::apiserver::resources
