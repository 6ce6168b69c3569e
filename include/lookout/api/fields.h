// Field selectors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/field_path.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"

/// Field selectors with the syntax and the semantics of k8s.io/apimachinery/pkg/fields.
namespace lookout::api::fields {

/// One comparison: `field` is a path such as "metadata.name" or "status.phase".
struct Requirement {
  std::string field;
  std::string value;
  bool equal = true;  // false: "!="
};

/// A conjunction of comparisons. The default-constructed one matches everything. Immutable; safe to
/// use from many threads.
class Selector {
 public:
  Selector() = default;
  explicit Selector(std::vector<Requirement> requirements);

  /// Compares the fields of the object, absent ones as "". Which fields a server lets clients
  /// select by is the server's business. Allocates nothing (other than for fields that are numbers
  /// or booleans, which are compared as text).
  bool matches(const Object& object) const;

  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }

  /// The canonical text; parse() reads it back.
  std::string to_string() const;

 private:
  std::vector<Requirement> requirements_;
  std::vector<FieldPath> paths_;
};

/// Reads "metadata.name=web,status.phase!=Running"; '\\', ',' and '=' in values are escaped by a
/// backslash. Throws SelectorError.
Selector parse(std::string_view text);

/// As parse() does with a value.
std::string escape_value(std::string_view value);

}  // namespace lookout::api::fields
