// The changes that a draft holds: a tree over the object that it was made from.
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

/// One value of a draft. A node exists once somebody has asked for it; it counts as changed once
/// something was written to it or below it.
struct DraftNode {
  enum class Kind : std::uint8_t {
    kSource,  // exactly `source`, which may be absent
    kObject,  // the members of `source`, where `members` does not say otherwise
    kArray,   // `elements`
  };

  DraftTree* tree = nullptr;
  DraftNode* parent = nullptr;  // none for the root and for what was removed
  Value source;
  Object holder;  // owns `source` if it was written
  Kind kind = Kind::kSource;
  bool is_element = false;      // of the parent's `elements`, not of its `members`
  bool expanded = false;        // `elements` stands for all of `source`
  bool zero_is_absent = false;  // `source` is a zero that the API server leaves out
  bool bad_name = false;        // no object can have a member of its name
  std::map<std::string, std::unique_ptr<DraftNode>, std::less<>> members;
  std::vector<std::unique_ptr<DraftNode>> elements;

  bool exists() const { return kind != Kind::kSource || source.exists(); }
};

/// An object, its changes, and its removed parts: a handle to a removed part stays valid and
/// changes nothing.
class DraftTree {
 public:
  explicit DraftTree(Object base);

  DraftNode& root() { return root_; }
  const Object& base() const { return base_; }

  /// The node of a member or element. Asking changes nothing.
  DraftNode& member(DraftNode& node, std::string_view name);
  DraftNode* element(DraftNode& node, std::size_t index);
  /// The content of a member. Makes no node.
  Value read(const DraftNode& node, std::string_view name);
  std::size_t size(const DraftNode& node) const;

  /// Writing. A node of another kind becomes one of the kind that is needed; so do its parents.
  /// Throws InvalidArgument if one of them has a name that no object can have.
  void write(DraftNode& node, Object holder, Value value);
  void remove(DraftNode& node);
  void make_object(DraftNode& node);
  DraftNode& append(DraftNode& node);
  /// An element that belongs to the list once it is appended: if it cannot be written, the list
  /// stays as it is.
  DraftNode& new_element(DraftNode& node);
  void append(DraftNode& node, DraftNode& element);
  void erase(DraftNode& node, std::size_t index);
  void make_array(DraftNode& node);

  /// The names of the members that are there, in no particular order. They are good until the next
  /// change.
  std::vector<std::string_view> names(const DraftNode& node) const;
  /// The current content as one value, valid as long as the tree.
  Value value(const DraftNode& node);

  /// The object with the changes; the very same handle if there are none.
  Object build() const;
  /// A JSON merge patch (RFC 7386) that makes the object out of the one that the tree began with.
  std::string diff() const;
  /// The same, of one member of the root.
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
  std::vector<std::unique_ptr<DraftNode>> removed_;  // and new elements before they are appended
  std::vector<Object> snapshots_;                    // what value() has handed out
};

}  // namespace lookout::api::detail
