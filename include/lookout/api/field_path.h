// FieldPath: paths to fields, in kubectl's syntax.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lookout/base/attributes.h"

namespace lookout::api {

/// A parsed path: ".spec.containers[0].image", "metadata.labels['app.kubernetes.io/name']",
/// "status.conditions[*].type".
///
/// Names are separated by dots; the leading dot is optional. A name with characters other than
/// letters, digits, '-', '_', '$' and '/' is quoted in brackets, with a backslash before a quote or
/// backslash. [n] is an array element. [*] stands for every element and works in projections only:
/// Value::at finds nothing through it.
class FieldPath {
 public:
  struct EveryElement {};
  using Step = std::variant<std::string, std::size_t, EveryElement>;

  FieldPath() = default;
  /// Throws InvalidArgument for invalid text; the message names the position of the error.
  explicit FieldPath(std::string_view text);

  const std::vector<Step>& steps() const LOOKOUT_LIFETIME_BOUND { return steps_; }

 private:
  std::vector<Step> steps_;
};

}  // namespace lookout::api
