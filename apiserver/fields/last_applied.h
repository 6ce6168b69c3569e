// The last-applied annotation of client-side apply, for kubectl's server-side apply.
#pragma once

#include <optional>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// The name of the manager that takes over from client-side apply.
inline constexpr std::string_view kKubectl = "kubectl";

/// The fields that client-side apply has set and that are unchanged: kubectl's server-side apply may
/// take them over without conflicts. Empty if the annotation is missing, malformed or for another
/// version.
std::optional<FieldSet> client_side_fields(const json::Value& live, const FieldSchema& schema);

/// Updates the annotation, if the object has one, with the applied configuration.
void update_last_applied(json::Value& object, const json::Value& config,
                         json::Allocator& allocator);

}  // namespace lookout::apiserver::fields
