#include "api/draft_tree.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/error.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::api::detail {
namespace {

/// The member name of a value that is stored in its own object.
constexpr std::string_view kAlone = "v";

bool is_there(Value value) { return value.exists() && !value.is_null(); }

bool value_differs(Value now, Value base) {
  return is_there(now) != is_there(base) || (is_there(now) && now != base);
}

/// Writes the merge patch from `base` to `now`, which differ.
void encode_value_diff(FlatWriter& writer, Value now, Value base) {
  if (!is_there(now)) return writer.null();
  if (!now.is_object() || !base.is_object()) return writer.value(now);
  writer.begin_object();
  for (const auto& [name, member] : base.members()) {
    if (!is_there(member) || is_there(now[name])) continue;
    writer.key(name);
    writer.null();
  }
  for (const auto& [name, member] : now.members()) {
    const Value before = base[name];
    if (!value_differs(member, before)) continue;
    writer.key(name);
    encode_value_diff(writer, member, before);
  }
  writer.end_object();
}

void encode(FlatWriter& writer, const DraftNode& node) {
  switch (node.kind) {
    case DraftNode::Kind::kSource:
      if (node.source.exists()) {
        writer.value(node.source);
      } else {
        writer.null();
      }
      return;
    case DraftNode::Kind::kObject:
      writer.begin_object();
      for (const auto& [name, member] : node.source.members()) {
        if (node.members.contains(name)) continue;
        writer.key(name);
        writer.value(member);
      }
      for (const auto& [name, member] : node.members) {
        if (!member->exists()) continue;
        writer.key(name);
        encode(writer, *member);
      }
      writer.end_object();
      return;
    case DraftNode::Kind::kArray:
      writer.begin_array();
      for (const auto& element : node.elements) {
        // An appended element without content is an empty object.
        if (element->exists()) {
          encode(writer, *element);
        } else {
          writer.empty_object();
        }
      }
      writer.end_array();
      return;
  }
}

/// An object whose only member is the node's current content.
Object built_alone(const DraftNode& node) {
  FlatWriter writer;
  writer.begin_object();
  writer.key(kAlone);
  encode(writer, node);
  writer.end_object();
  return writer.finish();
}

/// Whether all members that the node does not list are those of `base`.
bool inherits(const DraftNode& node, Value base) {
  return node.kind == DraftNode::Kind::kObject && node.source.data() == base.data();
}

bool is_other(const DraftNode& node, Value base);

bool element_is_other(const DraftNode& element, Value base) {
  // As in encode().
  if (!element.exists()) return !base.is_object() || !base.empty();
  return is_other(element, base);
}

/// Whether the node differs from `base`. In a list, unlike in a merge patch, null differs from an
/// absent member, but a zero that the API server omits does not.
bool is_other(const DraftNode& node, Value base) {
  switch (node.kind) {
    case DraftNode::Kind::kSource:
      if (node.zero_is_absent && !is_there(base)) return false;
      return node.source != base;
    case DraftNode::Kind::kArray: {
      if (!base.is_array()) return true;
      auto element = node.elements.begin();
      for (const Value before : base.elements()) {
        if (element == node.elements.end() || element_is_other(**element, before)) return true;
        ++element;
      }
      return element != node.elements.end();
    }
    case DraftNode::Kind::kObject:
      break;
  }
  if (!base.is_object()) return true;
  for (const auto& [name, member] : node.members) {
    if (is_other(*member, base[name])) return true;
  }
  if (inherits(node, base)) return false;
  for (const auto& [name, member] : node.source.members()) {
    if (!node.members.contains(name) && member != base[name]) return true;
  }
  for (const auto& [name, member] : base.members()) {
    if (!node.members.contains(name) && !node.source[name].exists()) return true;
  }
  return false;
}

void check_names(const DraftNode& node) {
  for (const DraftNode* at = &node; at != nullptr; at = at->parent) {
    if (at->bad_name) throw InvalidArgument("the name of a member is not UTF-8");
  }
}

bool differs(const DraftNode& node, Value base) {
  if (node.kind == DraftNode::Kind::kSource) {
    if (node.zero_is_absent && !is_there(base)) return false;
    return node.source.data() != base.data() && value_differs(node.source, base);
  }
  if (!is_there(base)) return true;
  if (inherits(node, base)) {
    return std::any_of(node.members.begin(), node.members.end(), [&](const auto& member) {
      return differs(*member.second, base[member.first]);
    });
  }
  return is_other(node, base);
}

/// Writes the merge patch from `base` to the node, which differs from it.
void encode_diff(FlatWriter& writer, const DraftNode& node, Value base) {
  if (node.kind == DraftNode::Kind::kSource) return encode_value_diff(writer, node.source, base);
  if (!base.is_object() || node.kind == DraftNode::Kind::kArray) return encode(writer, node);
  if (!inherits(node, base)) {
    const Object now = built_alone(node);
    return encode_value_diff(writer, now[kAlone], base);
  }
  writer.begin_object();
  for (const auto& [name, member] : node.members) {
    const Value before = base[name];
    if (!differs(*member, before)) continue;
    writer.key(name);
    encode_diff(writer, *member, before);
  }
  writer.end_object();
}

}  // namespace

DraftTree::DraftTree(Object base) : base_(std::move(base)) {
  root_.tree = this;
  root_.source = base_.body();
  if (!base_) root_.kind = DraftNode::Kind::kObject;
}

std::unique_ptr<DraftNode> DraftTree::make_node(DraftNode& parent, Value source, bool is_element) {
  auto node = std::make_unique<DraftNode>();
  node->tree = this;
  node->parent = &parent;
  node->source = source;
  node->is_element = is_element;
  return node;
}

DraftNode& DraftTree::member(DraftNode& node, std::string_view name) {
  const auto found = node.members.find(name);
  if (found != node.members.end()) return *found->second;
  const Value source = node.kind == DraftNode::Kind::kArray ? Value{} : node.source[name];
  auto made = make_node(node, source, false);
  made->bad_name = find_invalid_utf8(name) != std::string_view::npos;
  return *node.members.emplace(std::string(name), std::move(made)).first->second;
}

void DraftTree::expand(DraftNode& node) {
  if (node.expanded) return;
  node.expanded = true;
  for (const Value element : node.source.elements())
    node.elements.push_back(make_node(node, element, true));
}

DraftNode* DraftTree::element(DraftNode& node, std::size_t index) {
  if (node.kind == DraftNode::Kind::kObject) return nullptr;
  expand(node);
  return index < node.elements.size() ? node.elements[index].get() : nullptr;
}

Value DraftTree::read(const DraftNode& node, std::string_view name) {
  const auto found = node.members.find(name);
  if (found != node.members.end()) return value(*found->second);
  return node.kind == DraftNode::Kind::kArray ? Value{} : node.source[name];
}

std::size_t DraftTree::size(const DraftNode& node) const {
  switch (node.kind) {
    case DraftNode::Kind::kSource:
      return node.source.size();
    case DraftNode::Kind::kObject:
      return names(node).size();
    case DraftNode::Kind::kArray:
      break;
  }
  return node.elements.size();
}

void DraftTree::put_aside(DraftNode& node) {
  for (auto& [name, member] : node.members) {
    member->parent = nullptr;
    removed_.push_back(std::move(member));
  }
  node.members.clear();
  for (auto& element : node.elements) {
    element->parent = nullptr;
    removed_.push_back(std::move(element));
  }
  node.elements.clear();
  node.expanded = false;
}

void DraftTree::note_change(DraftNode& node) {
  if (node.parent == nullptr) return;
  if (node.is_element) {
    make_array(*node.parent);
  } else {
    make_object(*node.parent);
  }
}

void DraftTree::write(DraftNode& node, Object holder, Value value) {
  if (&node == &root_ && !value.is_object()) throw InvalidArgument("a draft must stay an object");
  check_names(node);
  put_aside(node);
  node.kind = DraftNode::Kind::kSource;
  node.zero_is_absent = false;
  node.holder = std::move(holder);
  node.source = value;
  note_change(node);
}

void DraftTree::remove(DraftNode& node) {
  if (node.exists()) write(node, {}, {});
}

void DraftTree::make_object(DraftNode& node) {
  if (node.kind == DraftNode::Kind::kObject) return;
  for (auto& element : node.elements) {
    element->parent = nullptr;
    removed_.push_back(std::move(element));
  }
  node.elements.clear();
  node.expanded = false;
  if (!node.source.is_object()) node.source = {};
  node.kind = DraftNode::Kind::kObject;
  note_change(node);
}

void DraftTree::make_array(DraftNode& node) {
  if (node.kind == DraftNode::Kind::kArray) return;
  if (&node == &root_) throw InvalidArgument("a draft is an object and has no elements");
  if (!node.source.is_array() || node.kind == DraftNode::Kind::kObject) {
    put_aside(node);
    node.source = {};
    node.kind = DraftNode::Kind::kSource;
  }
  expand(node);
  node.kind = DraftNode::Kind::kArray;
  note_change(node);
}

DraftNode& DraftTree::append(DraftNode& node) {
  check_names(node);
  make_array(node);
  node.elements.push_back(make_node(node, {}, true));
  return *node.elements.back();
}

DraftNode& DraftTree::new_element(DraftNode& node) {
  removed_.push_back(make_node(node, {}, true));
  removed_.back()->parent = nullptr;
  return *removed_.back();
}

void DraftTree::append(DraftNode& node, DraftNode& element) {
  check_names(node);
  make_array(node);
  const auto at = std::find_if(removed_.rbegin(), removed_.rend(),
                               [&](const auto& each) { return each.get() == &element; });
  element.parent = &node;
  node.elements.push_back(std::move(*at));
  removed_.erase(std::next(at).base());
}

void DraftTree::erase(DraftNode& node, std::size_t index) {
  if (element(node, index) == nullptr) return;
  make_array(node);
  auto& erased = node.elements[index];
  erased->parent = nullptr;
  removed_.push_back(std::move(erased));
  node.elements.erase(node.elements.begin() + static_cast<std::ptrdiff_t>(index));
}

std::vector<std::string_view> DraftTree::names(const DraftNode& node) const {
  std::vector<std::string_view> out;
  if (node.kind == DraftNode::Kind::kArray) return out;
  const bool changed = node.kind == DraftNode::Kind::kObject;
  for (const auto& [name, member] : node.source.members()) {
    if (!changed || !node.members.contains(name)) out.push_back(name);
  }
  if (!changed) return out;
  for (const auto& [name, member] : node.members) {
    if (member->exists()) out.push_back(name);
  }
  return out;
}

Value DraftTree::value(const DraftNode& node) {
  if (node.kind == DraftNode::Kind::kSource) return node.source;
  snapshots_.push_back(built_alone(node));
  return snapshots_.back()[kAlone];
}

bool DraftTree::changed() const { return !base_ || differs(root_, base_.body()); }

Object DraftTree::build() const {
  if (!changed()) return base_;
  FlatWriter& writer = FlatWriter::of_this_thread();
  encode(writer, root_);
  return writer.finish();
}

std::string DraftTree::diff() const {
  if (!changed()) return "{}";
  FlatWriter& writer = FlatWriter::of_this_thread();
  encode_diff(writer, root_, base_.body());
  return writer.finish().to_json();
}

template <class Wanted>
std::string DraftTree::diff_of_members(Wanted wanted) const {
  const bool by_members = !base_ || inherits(root_, base_.body());
  const Object now = by_members ? Object() : build();
  FlatWriter& writer = FlatWriter::of_this_thread();  // which build() uses, too
  writer.begin_object();
  if (by_members) {
    for (const auto& [name, member] : root_.members) {
      const Value before = base_[name];
      if (!wanted(name) || !differs(*member, before)) continue;
      writer.key(name);
      encode_diff(writer, *member, before);
    }
  } else {
    // The whole object was replaced.
    const auto add = [&](std::string_view name) {
      if (!wanted(name) || !value_differs(now[name], base_[name])) return;
      writer.key(name);
      encode_value_diff(writer, now[name], base_[name]);
    };
    for (const auto& [name, member] : base_.body().members()) {
      if (!now.body().contains(name)) add(name);
    }
    for (const auto& [name, member] : now.body().members()) add(name);
  }
  writer.end_object();
  return writer.finish().to_json();
}

std::string DraftTree::diff(std::string_view name) const {
  return diff_of_members([&](std::string_view each) { return each == name; });
}

std::string DraftTree::diff_except(std::string_view name) const {
  return diff_of_members([&](std::string_view each) { return each != name; });
}

}  // namespace lookout::api::detail
