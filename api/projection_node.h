// The inside of a Projection.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace lookout::api::detail {

/// What to do with the members of an object value (or of the object values in an array).
struct ProjectionNode {
  enum class Action { kKeep, kDrop, kDescend };

  Action action = Action::kDescend;
  bool keep_others = false;  // when descending: whether members that are not listed are kept
  std::map<std::string, ProjectionNode, std::less<>> members;
};

}  // namespace lookout::api::detail
