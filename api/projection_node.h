// ProjectionNode: the implementation of Projection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lookout::api::detail {

/// How to treat the members of an object (or of the objects in an array).
struct ProjectionNode : std::enable_shared_from_this<ProjectionNode> {
  enum class Action { kKeep, kDrop, kDescend };

  Action action = Action::kDescend;
  bool keep_others = false;  // when descending: whether to keep unlisted members
  std::map<std::string, ProjectionNode, std::less<>> members;

  /// Whether it keeps the member of this name. `below` becomes the node for the member's content, null
  /// if all of that is kept.
  bool keeps(std::string_view name, const ProjectionNode*& below) const {
    const auto member = members.find(name);
    const bool listed = member != members.end();
    below = listed && member->second.action == Action::kDescend ? &member->second : nullptr;
    return listed ? member->second.action != Action::kDrop : keep_others;
  }

  friend bool operator==(const ProjectionNode& a, const ProjectionNode& b) {
    return a.action == b.action && a.keep_others == b.keep_others && a.members == b.members;
  }
};

}  // namespace lookout::api::detail
