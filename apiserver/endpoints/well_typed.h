// A fast check whether an object fits its built-in type. Most do, and need no
// find_decoding_problems().
#pragma once

#include <string_view>

#include "lookout/api/detail/type_table.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// True if all fields of the object are fields of the type, with values that Go's decoder accepts.
/// False is inconclusive, as some values are not checked.
bool is_well_typed(const api::Object& object, api::detail::Type type);

/// The same for an object decoded from `json`, which must not have repeated keys.
bool is_well_typed(const api::Object& object, std::string_view json, api::detail::Type type);

}  // namespace lookout::apiserver::endpoints
