// Fields that lists and watches may select by.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/fields.h"

namespace lookout::apiserver::resources {

/// Sets the selectable fields of a built-in resource, as in Kubernetes' registry.
void add_selectable_fields(ServedResource& resource);

/// Sets the selectable fields of a custom resource (selectableFields: ".spec.color").
void add_selectable_fields(ServedResource& resource, const std::vector<std::string>& json_paths);

/// The requirements of a field selector as the storage compares them. Throws api::StatusError (400)
/// for a field that the resource does not support.
std::vector<storage::FieldRequirement> field_requirements(const ServedResource& resource,
                                                          const api::fields::Selector& selector);

}  // namespace lookout::apiserver::resources
