// Validation of custom resources' schemas.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Refuses what kube-apiserver refuses of a schema (apiextensions' structural schemas): parts without a type, list types and keys
/// that do not fit, defaults that the schema itself does not allow, and so on. `path` is where the schema is. `has_status`:
/// the status is a subresource. (Patterns are looked at elsewhere, and rules in CEL are not compiled.)
void validate_schema_rules(api::Value schema, const std::string& path, bool has_status,
                           Causes& causes);

/// Whether a part of the schema has a default.
bool has_defaults(api::Value schema);

/// Whether a part of the schema has CEL rules. (allOf, anyOf, oneOf and not cannot have any.)
bool has_cel_rules(api::Value schema);

/// The unknown formats in a schema, which Kubernetes ignores.
std::vector<std::string> unknown_formats(api::Value schema);

}  // namespace lookout::apiserver::resources
