#include "apiserver/fields/field_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "apiserver/json.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::fields {
namespace {

using Node = FieldSet::Node;

bool before(const Node& node, const PathElement& element) { return node.element < element; }

/// A scalar as Go prints it.
std::string printed(const json::Value& value) {
  return value.IsString() ? api::detail::quote(json::text_of(value)) : json::to_json(value);
}

/// Orders elements as in managedFields: numbers by value.
bool shown_before(const Node* a, const Node* b) {
  const PathElement& x = a->element;
  const PathElement& y = b->element;
  if (x.kind != y.kind || x.kind == PathElement::Kind::kField) return x < y;
  json::Document left;
  json::Document right;
  json::parse_json(x.text, left);
  json::parse_json(y.text, right);
  const auto less = [](const json::Value& one, const json::Value& other) {
    if (one.IsNumber() && other.IsNumber()) return one.GetDouble() < other.GetDouble();
    if (one.IsString() && other.IsString()) return json::text_of(one) < json::text_of(other);
    return one.IsNumber() && !other.IsNumber();
  };
  if (!left.IsObject() || !right.IsObject()) return less(left, right);
  auto other = right.MemberBegin();
  for (const auto& member : left.GetObject()) {
    if (other == right.MemberEnd()) return false;
    if (member.name != other->name) return json::text_of(member.name) < json::text_of(other->name);
    if (less(member.value, other->value)) return true;
    if (less(other->value, member.value)) return false;
    ++other;
  }
  return other != right.MemberEnd();
}

}  // namespace

std::string PathElement::to_string() const {
  if (kind == Kind::kField) return "." + text;
  if (kind == Kind::kIndex) return fmt::format("[{}]", text);
  json::Document parsed;
  json::parse_json(text, parsed);
  if (kind == Kind::kValue) return fmt::format("[={}]", printed(parsed));
  std::vector<std::string> keys;
  if (parsed.IsObject()) {
    for (const auto& member : parsed.GetObject())
      keys.push_back(fmt::format("{}={}", json::text_of(member.name), printed(member.value)));
  }
  return fmt::format("[{}]", fmt::join(keys, ","));
}

std::size_t FieldSet::size() const {
  std::size_t count = 0;
  for (const Node& node : nodes_) count += (node.member ? 1 : 0) + node.below.size();
  return count;
}

const Node* FieldSet::find(const PathElement& element) const {
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), element, before);
  return at != nodes_.end() && at->element == element ? &*at : nullptr;
}

bool FieldSet::contains(const std::vector<PathElement>& path) const {
  const FieldSet* level = this;
  const Node* node = nullptr;
  for (const PathElement& element : path) {
    node = level->find(element);
    if (node == nullptr) return false;
    level = &node->below;
  }
  return node != nullptr && node->member;
}

void FieldSet::insert(const std::vector<PathElement>& path) {
  FieldSet* level = this;
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto at = std::lower_bound(level->nodes_.begin(), level->nodes_.end(), path[i], before);
    if (at == level->nodes_.end() || at->element != path[i])
      at = level->nodes_.insert(at, Node{path[i], false, {}});
    if (i + 1 == path.size()) at->member = true;
    level = &at->below;
  }
}

void FieldSet::append(PathElement element, bool member, FieldSet below) {
  if (!member && below.empty()) return;
  nodes_.push_back({std::move(element), member, std::move(below)});
}

void FieldSet::reserve(std::size_t elements) { nodes_.reserve(elements); }

void FieldSet::finish() {
  const auto not_after = [](const Node& a, const Node& b) { return a.element >= b.element; };
  if (std::adjacent_find(nodes_.begin(), nodes_.end(), not_after) == nodes_.end()) return;
  std::sort(nodes_.begin(), nodes_.end(),
            [](const Node& a, const Node& b) { return a.element < b.element; });
  std::vector<Node> out;
  out.reserve(nodes_.size());
  bool repeated = false;
  for (Node& node : nodes_) {
    if (out.empty() || out.back().element != node.element) {
      if (repeated) out.back().below.finish();
      repeated = false;
      out.push_back(std::move(node));
      continue;
    }
    repeated = true;
    out.back().member = out.back().member || node.member;
    std::move(node.below.nodes_.begin(), node.below.nodes_.end(),
              std::back_inserter(out.back().below.nodes_));
  }
  if (repeated) out.back().below.finish();
  nodes_ = std::move(out);
}

FieldSet FieldSet::united(const FieldSet& other) const {
  FieldSet out;
  out.nodes_.reserve(nodes_.size() + other.nodes_.size());
  auto a = nodes_.begin();
  auto b = other.nodes_.begin();
  while (a != nodes_.end() && b != other.nodes_.end()) {
    if (a->element == b->element) {
      out.nodes_.push_back({a->element, a->member || b->member, a->below.united(b->below)});
      ++a;
      ++b;
    } else {
      out.nodes_.push_back(a->element < b->element ? *a++ : *b++);
    }
  }
  out.nodes_.insert(out.nodes_.end(), a, nodes_.end());
  out.nodes_.insert(out.nodes_.end(), b, other.nodes_.end());
  return out;
}

FieldSet FieldSet::intersected(const FieldSet& other) const {
  FieldSet out;
  for (const Node& node : nodes_) {
    if (const Node* match = other.find(node.element)) {
      out.append(node.element, node.member && match->member, node.below.intersected(match->below));
    }
  }
  return out;
}

FieldSet FieldSet::subtracted(const FieldSet& other, Below below) const {
  FieldSet out;
  out.nodes_.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    const Node* match = other.find(node.element);
    if (match == nullptr) {
      out.nodes_.push_back(node);
    } else if (!match->member || below == Below::kStays) {
      out.append(node.element, node.member && !match->member,
                 node.below.subtracted(match->below, below));
    }
  }
  return out;
}

FieldSet FieldSet::without(const FieldSet& other) const { return subtracted(other, Below::kStays); }

FieldSet FieldSet::without_below(const FieldSet& other) const {
  return subtracted(other, Below::kGoes);
}

std::vector<std::string> FieldSet::paths() const {
  std::vector<std::string> out;
  add_paths("", out);
  return out;
}

void FieldSet::add_paths(const std::string& prefix, std::vector<std::string>& out) const {
  std::vector<const Node*> shown;
  shown.reserve(nodes_.size());
  for (const Node& node : nodes_) shown.push_back(&node);
  std::sort(shown.begin(), shown.end(), shown_before);
  for (const Node* node : shown) {
    if (node->member) out.push_back(prefix + node->element.to_string());
  }
  for (const Node* node : shown) node->below.add_paths(prefix + node->element.to_string(), out);
}

}  // namespace lookout::apiserver::fields
