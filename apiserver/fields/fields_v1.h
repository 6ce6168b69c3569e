// FieldsV1: the JSON form of a set of fields.
#pragma once

#include <optional>

#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// Deeper sets are rejected; objects cannot be nested deeper either.
inline constexpr int kMaxFieldDepth = 1000;

/// Parses `{"f:spec":{"f:replicas":{}}}`. Empty if the value is malformed. Ignores members of unknown
/// kinds, as Kubernetes does.
std::optional<FieldSet> parse_fields_v1(const json::Value& value);

/// The JSON form; its text is in `allocator`.
json::Value to_fields_v1(const FieldSet& set, json::Allocator& allocator);

/// Whether a value is in the canonical form of to_fields_v1().
bool is_written_fields_v1(const json::Value& value);

/// Whether all members of a set are in FieldsV1, and whether none is.
bool has_all(const json::Value& fields, const FieldSet& set);
bool has_none(const json::Value& fields, const FieldSet& set);

/// The JSON text of a scalar, or of an object of scalars. Equal values have equal text: members are
/// in the order of their names, and whole numbers have no fraction.
std::string canonical_json(const json::Value& value);

}  // namespace lookout::apiserver::fields
