// Fields that lists and watches may select by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/fields.h"

namespace lookout::apiserver::resources {

/// Gives a built-in resource its fields: those that its Kubernetes registry supports.
void add_selectable_fields(ServedResource& resource);

/// Gives a custom resource the fields of its definition (selectableFields: ".spec.color").
void add_selectable_fields(ServedResource& resource, const std::vector<std::string>& json_paths);

/// The requirements of a field selector as the storage compares them. Throws api::StatusError (400)
/// for a field that the resource does not support.
std::vector<storage::FieldRequirement> field_requirements(const ServedResource& resource,
                                                          const api::fields::Selector& selector);

}  // namespace lookout::apiserver::resources
