// The effects of a custom resource's schema on its objects.
#pragma once

#include <functional>

#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Removes unknown fields (k8s.io/apiextensions-apiserver's pruning); keeps apiVersion, kind and
/// metadata.
void prune(json::Value& object, api::Value schema);

/// Sets the schema's defaults for absent fields.
void set_schema_defaults(json::Value& object, api::Value schema, json::Allocator& allocator);

/// Whether prune() removes anything.
bool has_unknown_fields(api::Value object, api::Value schema);

/// Whether prune() and set_schema_defaults() leave an object unchanged.
bool is_settled(api::Value object, api::Value schema);

/// Calls `visit` with each resource that is embedded in a value.
void for_each_embedded(json::Value& value, api::Value schema,
                       const std::function<void(json::Value& resource)>& visit);

/// Whether a number is an integer that a double represents exactly, up to 2^53 - 1.
bool is_exact_integer(double number);

/// Converts numbers to the form that Go's decoder and encoder produce: 3.0 becomes 3, and integers
/// beyond 64 signed bits become doubles. (Doubles beyond 2^53 are not integers for Kubernetes, and
/// stay doubles.)
void write_numbers(json::Value& value);

/// Validates an object with its schema: types, required fields, enumerations, bounds, lengths,
/// patterns, formats, combinations such as oneOf, and list types, with the API server's messages. (CEL
/// rules are not evaluated.) Errors in values that are unchanged from the old object are ignored; a new
/// object has no old object.
void validate_schema(const api::Object& object, const api::Object& old, api::Value schema,
                     Causes& causes);

/// The same for the status alone.
void validate_status(const api::Object& object, const api::Object& old, api::Value schema,
                     Causes& causes);

/// Checks the bounds of the scale subresource's fields. `spec`: also those in the spec.
void validate_scale(const api::Object& object, const ScalePaths& paths, bool spec, Causes& causes);

/// Like prune() and validate_schema(), for a default, which is a part of an object.
void prune_default(json::Value& value, api::Value schema);
void validate_default(api::Value value, api::Value schema, Causes& causes);

/// Adds the message that CEL rules were not checked because of other errors.
void add_unchecked_rules(api::Value schema, Causes& causes);

}  // namespace lookout::apiserver::resources
