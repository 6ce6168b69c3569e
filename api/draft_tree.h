// DraftTree: a draft's changes, as a tree over the original object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/value.h"

namespace lookout::api::detail {

class DraftTree;

/// A value of a draft. Nodes are created on first access; a node is changed if it or a node below it
/// was written.
struct DraftNode {
  enum class Kind : std::uint8_t {
    kSource,  // `source`, which may be absent
    kObject,  // the members of `source`, overridden by `members`
    kArray,   // `elements`
  };

  DraftTree* tree = nullptr;
  DraftNode* parent = nullptr;  // null for the root and for removed nodes
  Value source;
  Object holder;  // owns `source` if it was written
  Kind kind = Kind::kSource;
  bool is_element = false;      // in the parent's `elements`, not in its `members`
  bool expanded = false;        // `elements` has all of `source`
  bool zero_is_absent = false;  // `source` is a zero that the API server omits
  bool bad_name = false;        // its name is invalid for a member
  std::map<std::string, std::unique_ptr<DraftNode>, std::less<>> members;
  std::vector<std::unique_ptr<DraftNode>> elements;

  bool exists() const { return kind != Kind::kSource || source.exists(); }
};

/// An object, its changes, and its removed parts. A handle to a removed part stays valid; writes to
/// it have no effect.
class DraftTree {
 public:
  explicit DraftTree(Object base);

  DraftNode& root() { return root_; }
  const Object& base() const { return base_; }

  /// The node of a member or element. Does not count as a change.
  DraftNode& member(DraftNode& node, std::string_view name);
  DraftNode* element(DraftNode& node, std::size_t index);
  /// The content of a member. Creates no node.
  Value read(const DraftNode& node, std::string_view name);
  std::size_t size(const DraftNode& node) const;

  /// Writes a value. Converts the node and its parents to the needed kind. Throws InvalidArgument if
  /// one of them has an invalid name.
  void write(DraftNode& node, Object holder, Value value);
  void remove(DraftNode& node);
  void make_object(DraftNode& node);
  DraftNode& append(DraftNode& node);
  /// A new element, which is not in the list until append(): if writing it fails, the list is
  /// unchanged.
  DraftNode& new_element(DraftNode& node);
  void append(DraftNode& node, DraftNode& element);
  void erase(DraftNode& node, std::size_t index);
  void make_array(DraftNode& node);

  /// The names of the existing members, in no particular order. Valid until the next change.
  std::vector<std::string_view> names(const DraftNode& node) const;
  /// The current content as one value; valid as long as the tree.
  Value value(const DraftNode& node);

  /// The object with the changes; the original handle if there are none.
  Object build() const;
  /// A JSON merge patch (RFC 7386) from the original object to build().
  std::string diff() const;
  /// The same for one member of the root.
  std::string diff(std::string_view member) const;
  std::string diff_except(std::string_view member) const;
  bool changed() const;

 private:
  template <class Wanted>
  std::string diff_of_members(Wanted wanted) const;
  void put_aside(DraftNode& node);
  void note_change(DraftNode& node);
  void expand(DraftNode& node);
  std::unique_ptr<DraftNode> make_node(DraftNode& parent, Value source, bool is_element);

  Object base_;
  DraftNode root_;
  std::vector<std::unique_ptr<DraftNode>> removed_;  // and new elements until they are appended
  std::vector<Object> snapshots_;                    // owners of the results of value()
};

}  // namespace lookout::api::detail
