// JSON merge patches (RFC 7396): application/merge-patch+json.
#pragma once

#include <rapidjson/document.h>

namespace lookout::api {

/// Changes `target` by `patch`: objects are merged member by member, null removes a member,
/// everything else replaces what was there. `target` is of the document that `allocator` belongs
/// to; nothing of `patch` is referred to afterwards. Throws DecodeError if the patch is nested
/// deeper than an object may be.
void apply_merge_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                       rapidjson::Document::AllocatorType& allocator);

/// The patch that makes `after` of `before`. A merge patch cannot set a member to null or change
/// single elements of an array: nulls in objects of `after` come out as absent, changed arrays are
/// replaced whole. Throws DecodeError for what is nested too deeply.
rapidjson::Document create_merge_patch(const rapidjson::Value& before,
                                       const rapidjson::Value& after);

}  // namespace lookout::api
