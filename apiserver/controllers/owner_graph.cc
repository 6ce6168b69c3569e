#include "apiserver/controllers/owner_graph.h"

#include <utility>

namespace lookout::apiserver::controllers {

using api::Value;

void OwnerGraph::set(const Reference& reference, const api::Object& object) {
  const Value owners = object["metadata"]["ownerReferences"];
  const auto present = nodes_.find(reference.uid);
  if (owners.empty()) {
    if (present != nodes_.end()) erase(reference.uid);
    return;
  }
  if (present != nodes_.end()) erase(reference.uid);
  Node node{reference, {}};
  for (const Value owner : owners.elements()) {
    const std::string uid(owner["uid"].as_string());
    if (uid.empty()) continue;
    node.owners[uid] = owner["blockOwnerDeletion"].as_bool();
    dependents_[uid].insert(reference.uid);
  }
  nodes_.emplace(reference.uid, std::move(node));
}

void OwnerGraph::erase(std::string_view uid) {
  const auto node = nodes_.find(uid);
  if (node == nodes_.end()) return;
  for (const auto& [owner, blocks] : node->second.owners) {
    const auto of_owner = dependents_.find(owner);
    if (of_owner == dependents_.end()) continue;
    of_owner->second.erase(node->first);
    if (of_owner->second.empty()) dependents_.erase(of_owner);
  }
  nodes_.erase(node);
}

bool OwnerGraph::has_dependents(std::string_view owner_uid) const {
  return dependents_.contains(owner_uid);
}

std::vector<Reference> OwnerGraph::dependents(std::string_view owner_uid) const {
  std::vector<Reference> out;
  const auto found = dependents_.find(owner_uid);
  if (found == dependents_.end()) return out;
  for (const std::string& uid : found->second) out.push_back(nodes_.at(uid).reference);
  return out;
}

std::vector<std::string> OwnerGraph::owners(std::string_view uid) const {
  std::vector<std::string> out;
  const auto node = nodes_.find(uid);
  if (node == nodes_.end()) return out;
  for (const auto& [owner, blocks] : node->second.owners) out.push_back(owner);
  return out;
}

std::vector<Reference> OwnerGraph::all() const {
  std::vector<Reference> out;
  out.reserve(nodes_.size());
  for (const auto& [uid, node] : nodes_) out.push_back(node.reference);
  return out;
}

bool OwnerGraph::has_blocking_dependents(std::string_view owner_uid) const {
  const auto found = dependents_.find(owner_uid);
  if (found == dependents_.end()) return false;
  for (const std::string& uid : found->second) {
    if (nodes_.at(uid).owners.find(owner_uid)->second) return true;
  }
  return false;
}

}  // namespace lookout::apiserver::controllers
