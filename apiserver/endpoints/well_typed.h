// Whether an object fits its built-in type, which most do: find_decoding_problems() has less to do.
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
