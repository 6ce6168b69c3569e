// The owner of the fields that a write changes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::resources {

/// Records what `manager` changes from now on in the objects of a resource, or in one of their
/// subresources. `table` says which versions are served.
fields::FieldManager field_manager(std::string manager, std::shared_ptr<const ResourceTable> table,
                                   const ServedResourcePtr& resource, std::string_view subresource);

/// The same for an object of a kind of its own, which nobody keeps in this form: a scale, or what a
/// request asks for.
fields::FieldManager field_manager(std::string manager, const api::GroupVersionKind& kind,
                                   std::string subresource);

}  // namespace lookout::apiserver::resources
