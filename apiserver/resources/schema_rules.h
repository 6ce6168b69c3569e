// Validation of custom resources' schemas.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Reports the errors that kube-apiserver finds in a schema (apiextensions' structural schemas): parts without
/// a type, unsuitable list types and keys, defaults that the schema does not allow, and so on. `path` is the
/// path of the schema. `has_status`: the status is a subresource. Does not check patterns, and does not compile
/// CEL rules.
void validate_schema_rules(api::Value schema, const std::string& path, bool has_status,
                           Causes& causes);

/// Whether a part of the schema has a default.
bool has_defaults(api::Value schema);

/// Whether a part of the schema has CEL rules. (allOf, anyOf, oneOf and not cannot have any.)
bool has_cel_rules(api::Value schema);

/// The unknown formats in a schema, which Kubernetes ignores.
std::vector<std::string> unknown_formats(api::Value schema);

}  // namespace lookout::apiserver::resources
