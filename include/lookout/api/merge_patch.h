// JSON merge patches (RFC 7396): application/merge-patch+json.
#pragma once

#include <rapidjson/document.h>

namespace lookout::api {

/// The treatment of null members of objects inside a patch's lists. kKeep follows RFC 7396. kDrop
/// follows the API server (github.com/evanphx/json-patch, version 4), which keeps them only where the
/// list replaces an object. Null elements of lists always stay.
enum class NullsInLists { kKeep, kDrop };

/// Applies `patch` to `target`: objects are merged member by member, null removes a member, and
/// every other value replaces the old one. `target` must belong to the document of `allocator`. It
/// keeps no references to `patch`. Throws DecodeError if the patch exceeds the nesting limit of
/// objects.
void apply_merge_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                       rapidjson::Document::AllocatorType& allocator,
                       NullsInLists nulls = NullsInLists::kKeep);

/// Computes the patch that turns `before` into `after`. A merge patch cannot set a member to null
/// or change single elements of an array, so it drops nulls in objects of `after` and replaces
/// changed arrays. Throws DecodeError if a document is nested too deeply.
rapidjson::Document create_merge_patch(const rapidjson::Value& before,
                                       const rapidjson::Value& after);

}  // namespace lookout::api
