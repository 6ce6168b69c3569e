// Fields that are unset in Go, and whether JSON contains them.
#pragma once

#include <rapidjson/document.h>

#include <string_view>

namespace lookout::api::detail {

/// Adds the unset fields that an API server writes because their Go type lacks "omitempty":
/// `"rules": null` in a role, `"lastTransitionTime": null` in a condition. Built-in kinds only; other
/// kinds stay unchanged.
void add_unset_fields(rapidjson::Value& object, std::string_view api_version, std::string_view kind,
                      rapidjson::Document::AllocatorType& allocator);

/// The same, and replaces empty lists with null, as storing them does.
void settle_unset_fields(rapidjson::Value& object, std::string_view api_version,
                         std::string_view kind, rapidjson::Document::AllocatorType& allocator);

/// The opposite: removes values that Go omits: an empty list, map or string, zero or false in a
/// non-pointer field with "omitempty".
void drop_unset_fields(rapidjson::Value& object, std::string_view api_version,
                       std::string_view kind);

}  // namespace lookout::api::detail
