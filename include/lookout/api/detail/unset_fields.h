// Fields that are written even if they are unset.
#pragma once

#include <rapidjson/document.h>

#include <string_view>

namespace lookout::api::detail {

/// Adds the unset fields that an API server writes of objects of a built-in kind, because in Go they
/// have no "omitempty": `"rules": null` of a role, `"lastTransitionTime": null` of a condition. Does
/// nothing with other kinds.
void add_unset_fields(rapidjson::Value& object, std::string_view api_version, std::string_view kind,
                      rapidjson::Document::AllocatorType& allocator);

}  // namespace lookout::api::detail
