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

  /// Compares the fields of the object; an absent field, an object and an array count as "", and so
  /// does what is no FieldPath. Which fields a server lets clients select by is the server's
  /// business. Allocates nothing (other than for fields that are numbers or booleans, which are
  /// compared as text).
  bool matches(const Object& object) const;

  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const LOOKOUT_LIFETIME_BOUND {
    return requirements_;
  }

  /// The canonical text; parse() reads it back.
  std::string to_string() const;
  /// The same, where text is wanted: `pods.list({.field_selector = selector})`.
  operator std::string() const { return to_string(); }  // NOLINT(google-explicit-constructor)

 private:
  /// Where a field is: the names on the way to it as objects store them, or, for a path with
  /// indexes, the path.
  struct Location {
    std::vector<std::string> encoded_keys;
    FieldPath path;
  };

  std::vector<Requirement> requirements_;
  std::vector<Location> locations_;
};

/// Reads "metadata.name=web,status.phase!=Running"; '\\', ',' and '=' in values are escaped by a
/// backslash. As in Kubernetes the terms come out sorted by their text, and empty terms do not
/// count. Throws SelectorError.
Selector parse(std::string_view text);

/// The value as parse() reads it back.
std::string escape_value(std::string_view value);

}  // namespace lookout::api::fields
