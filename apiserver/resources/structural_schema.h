// The effects of a custom resource's schema on its objects.
#pragma once

#include <functional>

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

/// Whether prune() takes something out of an object.
bool has_unknown_fields(api::Value object, api::Value schema);

/// Whether prune() and set_schema_defaults() leave an object as it is.
bool is_settled(api::Value object, api::Value schema);

/// Calls `visit` with each resource that is embedded in a value.
void for_each_embedded(json::Value& value, api::Value schema,
                       const std::function<void(json::Value& resource)>& visit);

/// Whether it is an integer that a double holds with all of its digits, up to 2^53 - 1.
bool is_exact_integer(double number);

/// Gives numbers the form that Go's decoder and encoder leave them in: 3.0 is 3, and what is beyond
/// the 64 bits of a signed integer is a double. (A double beyond 2^53 is no integer to Kubernetes,
/// and stays a double.)
void write_numbers(json::Value& value);

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
