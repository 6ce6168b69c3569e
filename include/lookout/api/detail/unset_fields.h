// Fields that are unset in Go, and written or not.
#pragma once

#include <rapidjson/document.h>

#include <string_view>

namespace lookout::api::detail {

/// Adds the unset fields that an API server writes of objects of a built-in kind, because in Go they
/// have no "omitempty": `"rules": null` of a role, `"lastTransitionTime": null` of a condition. Does
/// nothing with other kinds.
void add_unset_fields(rapidjson::Value& object, std::string_view api_version, std::string_view kind,
                      rapidjson::Document::AllocatorType& allocator);

/// The same, and makes an empty list what it is after it was stored: null.
void settle_unset_fields(rapidjson::Value& object, std::string_view api_version,
                         std::string_view kind, rapidjson::Document::AllocatorType& allocator);

/// The opposite: takes out what counts as unset in Go and is not written: an empty list, map or text,
/// zero or false in a field that is no pointer and has "omitempty".
void drop_unset_fields(rapidjson::Value& object, std::string_view api_version,
                       std::string_view kind);

}  // namespace lookout::api::detail
