// Operations on values with their types, as in structured-merge-diff (typed.TypedValue): fields are
// found, compared, merged and removed.
//
// Objects are in their mutable form. What the type does not have, because a client of another
// version sent it, belongs to nobody: it is never in a set, and merging and removing keep it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// Compares a value with its type. Returns the messages of structured-merge-diff, each beginning
/// with the path of the field; none if the value fits.
std::vector<std::string> check(const json::Value& value, const FieldSchema& schema);

/// The leaves of a value, and the elements of its lists and maps.
FieldSet field_set(const json::Value& value, const FieldSchema& schema);

/// The fields that differ. Each is in one of the sets.
struct Comparison {
  FieldSet removed;
  FieldSet modified;
  FieldSet added;

  bool same() const { return removed.empty() && modified.empty() && added.empty(); }
};
Comparison compare(const json::Value& before, const json::Value& after, const FieldSchema& schema);

/// Whether two values are equal: numbers by value, members in any order.
bool equal(const json::Value& a, const json::Value& b);

/// `live` with what `config` says, in `allocator`. Lists by keys have the order of `config`, if it
/// changes any.
json::Value merge(const json::Value& live, const json::Value& config, const FieldSchema& schema,
                  json::Allocator& allocator);

/// The value without the members of a set; a copy in `allocator`.
json::Value remove(const json::Value& value, const FieldSet& set, const FieldSchema& schema,
                   json::Allocator& allocator);

/// The set, with every field of a structure that it has something of. (Entries of maps and elements
/// of lists are only in it if they are members.)
FieldSet with_fields(const FieldSet& set, const FieldSchema& schema);

}  // namespace lookout::apiserver::fields
