// JSON patches (RFC 6902): application/json-patch+json.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>

#include "lookout/api/error.h"

namespace lookout::api {

/// A well-formed patch that does not fit the object: a path does not exist, or a test fails.
class PatchError : public Error {
 public:
  using Error::Error;
};

/// The most bytes that a patch may copy in total. It keeps a small patch from creating a huge
/// object.
inline constexpr std::size_t kMaxPatchCopyBytes = 3u << 20;

/// Applies the operations of `patch` to `target` in order; a later operation may undo an earlier
/// one. `target` must belong to the document of `allocator`. It keeps no references to `patch`.
///
/// As in the API server (github.com/evanphx/json-patch, version 4), a negative index counts from the
/// end of the array, and an absent member of an object is like null: "replace" adds it, "copy" copies
/// a null, and a test for null succeeds. The only operations on the whole target are "test" and
/// "replace" with an object or an array.
///
/// Throws DecodeError if the patch is not a list of complete operations, and PatchError if an
/// operation fails; `target` is then partly changed.
void apply_json_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                      rapidjson::Document::AllocatorType& allocator);

}  // namespace lookout::api
