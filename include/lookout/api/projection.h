// Which fields of an object to keep.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>

#include "lookout/base/attributes.h"

namespace lookout::api {

namespace detail {
struct ProjectionNode;
}

/// A set of fields, given to a decoder or an informer to say what is worth memory. The parser steps
/// over all other fields and never allocates them. Objects and arrays that are stepped over are
/// followed by their brackets and quotes only: what is inside need not be valid JSON and may be
/// nested deeper than an object may be; it must be UTF-8.
///
/// The identity of an object (apiVersion, kind, metadata.name, .namespace, .uid, .resourceVersion)
/// is always kept, and so are the parts of bookmarks that a watch needs. Fields that are not kept
/// read as absent; a library built without NDEBUG prints to standard error when one of them is
/// read, once for each field. Paths are FieldPaths; a path into an array applies to every element
/// of it ("[*]" may be written or left out). Immutable; copies share.
///
///     auto projection = Projection::keep(
///         {"metadata.labels", "status.phase", "status.podIP", "spec.containers.ports"});
class Projection {
 public:
  /// Keeps everything.
  Projection() = default;

  /// Keeps these fields, with all that is in them, and the identity. Throws InvalidArgument for
  /// what is no path, or has an index.
  static Projection keep(std::initializer_list<std::string_view> paths);
  /// Keeps everything but these fields. Throws InvalidArgument for what is no path, has an index,
  /// or is part of the identity.
  static Projection drop(std::initializer_list<std::string_view> paths);
  /// Drops metadata.managedFields: about half of a typical object, and of no use to most programs.
  static Projection without_managed_fields() { return drop({"metadata.managedFields"}); }

  bool keeps_everything() const { return root_ == nullptr; }

  /// For the library.
  const detail::ProjectionNode* root() const LOOKOUT_LIFETIME_BOUND { return root_.get(); }

  /// Whether they keep the same fields, however they were written.
  friend bool operator==(const Projection& a, const Projection& b);

 private:
  std::shared_ptr<const detail::ProjectionNode> root_;
};

}  // namespace lookout::api
