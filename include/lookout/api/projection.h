// Projection: the fields to keep.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>

#include "lookout/base/attributes.h"

namespace lookout::api {

namespace detail {
struct ProjectionNode;
}

/// A set of fields that a decoder or an informer keeps in memory. The parser skips all other fields
/// and never allocates them. In skipped objects and arrays it checks brackets, quotes and UTF-8
/// only, so the content need not be valid JSON and may exceed the nesting limit.
///
/// Projections always keep the identity of an object (apiVersion, kind, metadata.name, .namespace,
/// .uid, .resourceVersion) and the parts of bookmarks that a watch needs. Dropped fields read as
/// absent; a library built without NDEBUG prints a message to standard error when one of them is
/// read, once per field. Paths are FieldPaths; a path into an array applies to all its elements
/// ("[*]" is optional). Immutable; copies share memory.
///
///     auto projection = Projection::keep(
///         {"metadata.labels", "status.phase", "status.podIP", "spec.containers.ports"});
class Projection {
 public:
  /// Keeps everything.
  Projection() = default;

  /// Keeps these fields with their contents, and the identity. Throws InvalidArgument for a path
  /// that is invalid or contains an index.
  static Projection keep(std::initializer_list<std::string_view> paths);
  /// Keeps everything except these fields. Throws InvalidArgument for a path that is invalid,
  /// contains an index, or belongs to the identity.
  static Projection drop(std::initializer_list<std::string_view> paths);
  /// Drops metadata.managedFields: about half of a typical object, and useless to most programs.
  static Projection without_managed_fields() { return drop({"metadata.managedFields"}); }

  bool keeps_everything() const { return root_ == nullptr; }

  /// For the library.
  const detail::ProjectionNode* root() const LOOKOUT_LIFETIME_BOUND { return root_.get(); }

  /// True if both keep the same fields, even if their paths were written differently.
  friend bool operator==(const Projection& a, const Projection& b);

 private:
  std::shared_ptr<const detail::ProjectionNode> root_;
};

}  // namespace lookout::api
