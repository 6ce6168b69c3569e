// The annotation of client-side apply, as far as server-side apply of kubectl deals with it.
#pragma once

#include <optional>
#include <string>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// The name of the manager that takes over from client-side apply.
inline constexpr std::string_view kKubectl = "kubectl";

/// The fields that client-side apply has set and nobody has changed since: server-side apply of
/// kubectl may take them from anybody. Empty without an annotation, or with one that is for another
/// version or cannot be read.
std::optional<FieldSet> client_side_fields(const json::Value& live, const FieldSchema& schema);

/// Makes the annotation, if the object has one, say what has been applied last.
void update_last_applied(json::Value& object, const json::Value& config,
                         json::Allocator& allocator);

}  // namespace lookout::apiserver::fields
