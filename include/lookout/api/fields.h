// Field selectors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/field_path.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

/// Field selectors with the syntax and the semantics of k8s.io/apimachinery/pkg/fields.
namespace lookout::api::fields {

/// One comparison: `field` is a path such as "metadata.name" or "status.phase".
struct Requirement {
  std::string field;
  std::string value;
  bool equal = true;  // false: "!="

  friend bool operator==(const Requirement&, const Requirement&) = default;
};

/// A conjunction of comparisons. The default-constructed one matches everything. Immutable; safe to
/// use from many threads.
class Selector {
 public:
  Selector() = default;
  explicit Selector(std::vector<Requirement> requirements);

  /// Compares the fields of the object. Absent fields, objects, arrays and invalid paths count as
  /// "". A server decides which fields its clients may select by. Allocates nothing, except for
  /// numbers and booleans, which are compared as text.
  bool matches(const Object& object) const;

  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const LOOKOUT_LIFETIME_BOUND {
    return requirements_;
  }

  /// The canonical text; parse() reads it back.
  std::string to_string() const;
  /// An implicit conversion for options: `pods.list({.field_selector = selector})`.
  operator std::string() const { return to_string(); }  // NOLINT(google-explicit-constructor)

 private:
  /// The location of a field: the encoded names on the path to it or, for a path with indexes, the
  /// path itself.
  struct Location {
    std::vector<std::string> encoded_keys;
    FieldPath path;
  };

  std::vector<Requirement> requirements_;
  std::vector<Location> locations_;
};

/// Parses "metadata.name=web,status.phase!=Running". A backslash escapes '\\', ',' and '=' in
/// values. As in Kubernetes, the terms are sorted by their text and empty terms are ignored. Throws
/// SelectorError.
Selector parse(std::string_view text);

/// Escapes a value so that parse() restores it.
std::string escape_value(std::string_view value);

}  // namespace lookout::api::fields
