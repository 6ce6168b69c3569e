// ProjectionNode: the implementation of Projection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace lookout::api::detail {

/// How to treat the members of an object (or of the objects in an array).
struct ProjectionNode : std::enable_shared_from_this<ProjectionNode> {
  enum class Action { kKeep, kDrop, kDescend };

  Action action = Action::kDescend;
  bool keep_others = false;  // when descending: whether to keep unlisted members
  std::map<std::string, ProjectionNode, std::less<>> members;

  friend bool operator==(const ProjectionNode& a, const ProjectionNode& b) {
    return a.action == b.action && a.keep_others == b.keep_others && a.members == b.members;
  }
};

}  // namespace lookout::api::detail
