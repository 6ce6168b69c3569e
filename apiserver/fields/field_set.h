// FieldSet: a set of fields of an object, as managedFields keep it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::fields {

/// One step from a value into its content (structured-merge-diff's fieldpath.PathElement).
struct PathElement {
  enum class Kind : std::uint8_t {
    kField,  ///< a member of an object, by its name
    kKey,    ///< an element of a list, by its key fields
    kValue,  ///< an element of a set, by its value
    kIndex   ///< an element of a list, by its position
  };

  Kind kind = Kind::kField;
  /// The name of a field; otherwise compact JSON, which is equal for equal elements: an object of
  /// the key fields in the order of their names, a value, or a number.
  std::string text;

  static PathElement field(std::string_view name) { return {Kind::kField, std::string(name)}; }

  friend bool operator==(const PathElement&, const PathElement&) = default;
  friend auto operator<=>(const PathElement&, const PathElement&) = default;

  /// The element in a readable path: `.spec`, `[name="web"]`, `[="blue"]`, `[3]`.
  std::string to_string() const;
};

/// A tree of path elements, some of which are in the set. A member may have members below it.
/// Sets are equal if they have the same members.
class FieldSet {
 public:
  struct Node;

  /// True if nothing is in the set.
  bool empty() const { return nodes_.empty(); }
  /// Ordered by element. Each node, or something below it, is in the set.
  const std::vector<Node>& nodes() const { return nodes_; }
  std::size_t size() const;

  /// Null if neither the element nor anything below it is in the set.
  const Node* find(const PathElement& element) const;
  bool contains(const std::vector<PathElement>& path) const;

  /// Adds a path. Does nothing for an empty path.
  void insert(const std::vector<PathElement>& path);
  /// Adds an element and the set below it, unless both are empty. Until finish(), which sorts and
  /// merges the elements, call only append().
  void append(PathElement element, bool member, FieldSet below);
  void finish();
  /// Reserves memory for this many elements.
  void reserve(std::size_t elements);

  FieldSet united(const FieldSet& other) const;
  FieldSet intersected(const FieldSet& other) const;
  /// Removes the members of `other`, but not the sets below them.
  FieldSet without(const FieldSet& other) const;
  /// Without the members of `other` and everything below them.
  FieldSet without_below(const FieldSet& other) const;

  /// The readable paths, in order: the members of a level before those below it.
  std::vector<std::string> paths() const;

  friend bool operator==(const FieldSet& a, const FieldSet& b);

 private:
  enum class Below { kStays, kGoes };

  FieldSet subtracted(const FieldSet& other, Below below) const;
  void add_paths(const std::string& prefix, std::vector<std::string>& out) const;

  std::vector<Node> nodes_;
};

struct FieldSet::Node {
  PathElement element;
  bool member = false;
  FieldSet below;

  friend bool operator==(const Node& a, const Node& b) {
    return a.member == b.member && a.element == b.element && a.below == b.below;
  }
};

inline bool operator==(const FieldSet& a, const FieldSet& b) { return a.nodes_ == b.nodes_; }

}  // namespace lookout::apiserver::fields
