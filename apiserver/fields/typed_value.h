// Operations on typed values, as in structured-merge-diff (typed.TypedValue): find, compare, merge
// and remove fields.
//
// Objects are in their mutable form. Unknown fields, which clients of other versions send, have no
// owner: they are never in a set, and merging and removing keep them.
#pragma once

#include <string>
#include <vector>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

/// Compares a value with its type. Returns the messages of structured-merge-diff, each beginning
/// with the path of the field; none if the value fits.
std::vector<std::string> check(const json::Value& value, const FieldSchema& schema);

/// Whether check_stored() returns nothing.
bool fits(const json::Value& value, const FieldSchema& schema);
/// The same for a stored object, which may repeat elements, and may have unknown fields.
std::vector<std::string> check_stored(const json::Value& value, const FieldSchema& schema);

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

/// `live` merged with `config`, in `allocator`. Keyed lists get the order of `config` if it changes
/// anything.
json::Value merge(const json::Value& live, const json::Value& config, const FieldSchema& schema,
                  json::Allocator& allocator);

/// The value without the members of a set; a copy in `allocator`.
json::Value remove(const json::Value& value, const FieldSet& set, const FieldSchema& schema,
                   json::Allocator& allocator);

/// The set, extended by the structure fields above its members. (Map entries and list elements are
/// included only if they are members.)
FieldSet with_fields(const FieldSet& set, const FieldSchema& schema);

/// The set, where parts of a map or list that the schema makes atomic are replaced by the map or
/// list: the schema may have changed after the set was recorded.
FieldSet with_atomic_fields(const FieldSet& set, const FieldSchema& schema);
/// Whether a FieldsV1 has such parts.
bool has_parts_of_atomic_fields(const json::Value& fields, const FieldSchema& schema);

}  // namespace lookout::apiserver::fields
