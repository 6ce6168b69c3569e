#include "lookout/api/projection.h"

#include <fmt/format.h>

#include <array>

#include "api/projection_node.h"
#include "lookout/api/error.h"
#include "lookout/api/field_path.h"

namespace lookout::api {
namespace {

using detail::ProjectionNode;

constexpr std::array<std::string_view, 7> kIdentity = {
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.annotations['k8s.io/initial-events-end']"};

/// Adds a path and its nodes.
void add(ProjectionNode& root, std::string_view text, ProjectionNode::Action action) {
  const FieldPath path(text);
  if (path.steps().empty()) throw InvalidArgument("projection: an empty path");
  ProjectionNode* node = &root;
  for (const auto& step : path.steps()) {
    if (std::holds_alternative<std::size_t>(step)) {
      throw InvalidArgument(
          fmt::format("projection \"{}\": single elements of an array cannot be chosen", text));
    }
    const auto* name = std::get_if<std::string>(&step);
    if (name == nullptr) continue;
    if (node->action != ProjectionNode::Action::kDescend) return;  // a shorter path covers this one
    auto [it, inserted] = node->members.try_emplace(*name);
    if (inserted) it->second.keep_others = root.keep_others;
    node = &it->second;
  }
  node->action = action;
  node->members.clear();
}

bool keeps_everything(const ProjectionNode* root) {
  return root == nullptr || (root->keep_others && root->members.empty());
}

}  // namespace

Projection Projection::keep(std::initializer_list<std::string_view> paths) {
  auto root = std::make_shared<ProjectionNode>();
  for (const auto path : paths) add(*root, path, ProjectionNode::Action::kKeep);
  for (const auto path : kIdentity) add(*root, path, ProjectionNode::Action::kKeep);
  Projection out;
  out.root_ = std::move(root);
  return out;
}

Projection Projection::drop(std::initializer_list<std::string_view> paths) {
  auto root = std::make_shared<ProjectionNode>();
  root->keep_others = true;
  for (const auto path : paths) add(*root, path, ProjectionNode::Action::kDrop);
  const auto dropped = [&](std::initializer_list<std::string_view> names) {
    const ProjectionNode* node = root.get();
    for (const auto name : names) {
      const auto it = node->members.find(name);
      if (it == node->members.end()) return false;
      node = &it->second;
      if (node->action == ProjectionNode::Action::kDrop) return true;
    }
    return false;
  };
  for (const auto field : {"name", "namespace", "uid", "resourceVersion"}) {
    if (dropped({"metadata", field}))
      throw InvalidArgument(fmt::format("projection: metadata.{} is always kept", field));
  }
  if (dropped({"kind"}) || dropped({"apiVersion"}))
    throw InvalidArgument("projection: kind and apiVersion are always kept");
  Projection out;
  out.root_ = std::move(root);
  return out;
}

bool operator==(const Projection& a, const Projection& b) {
  if (a.root_ == b.root_) return true;
  if (keeps_everything(a.root()) || keeps_everything(b.root()))
    return keeps_everything(a.root()) && keeps_everything(b.root());
  return *a.root_ == *b.root_;
}

}  // namespace lookout::api
