// JSON patches (RFC 6902): application/json-patch+json.
#pragma once

#include <rapidjson/document.h>

#include <cstddef>

#include "lookout/api/error.h"

namespace lookout::api {

/// A patch that is well formed but does not fit the object: a path that is not there, a test that
/// fails.
class PatchError : public Error {
 public:
  using Error::Error;
};

/// The most that a patch may copy in all. A small patch cannot make an object of any size.
inline constexpr std::size_t kMaxPatchCopyBytes = 3u << 20;

/// Changes `target` by the operations of `patch`, one after another; a later one may undo what an
/// earlier one did. `target` is of the document that `allocator` belongs to; nothing of `patch` is
/// referred to afterwards.
///
/// As in the API server (github.com/evanphx/json-patch), an index may be negative, counted from the
/// end of the array, and a test for null holds for what is absent.
///
/// Throws DecodeError if the patch is no list of objects and PatchError if an operation cannot be
/// carried out; `target` is then partly changed.
void apply_json_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                      rapidjson::Document::AllocatorType& allocator);

}  // namespace lookout::api
