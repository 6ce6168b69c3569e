// The effects of a custom resource's schema on its objects.
#pragma once

#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Takes out what the schema does not know (k8s.io/apiextensions-apiserver's pruning); apiVersion,
/// kind and metadata stay.
void prune(json::Value& object, api::Value schema);

/// Fills in what the client left out and the schema has a default for.
void set_schema_defaults(json::Value& object, api::Value schema, json::Allocator& allocator);

/// Compares an object with its schema: types, required fields, enumerations, bounds, lengths,
/// patterns, formats, combinations such as oneOf, and what the list types say, with the API
/// server's messages. (Rules in CEL are not looked at.) What was so in the old object may stay as it
/// is; a new object has none.
void validate_schema(const api::Object& object, const api::Object& old, api::Value schema,
                     Causes& causes);

/// The same for the status alone.
void validate_status(const api::Object& object, const api::Object& old, api::Value schema,
                     Causes& causes);

/// Compares the numbers in the fields of the scale subresource with their bounds. `spec`: also those
/// of the specification.
void validate_scale(const api::Object& object, const ScalePaths& paths, bool spec, Causes& causes);

/// The same for a default, which is a part of an object.
void prune_default(json::Value& value, api::Value schema);
void validate_default(api::Value value, api::Value schema, Causes& causes);

}  // namespace lookout::apiserver::resources
