// Whether an object fits its built-in type, which most do: find_decoding_problems() has less to do.
#pragma once

#include <string_view>

#include "lookout/api/detail/type_table.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// True if all fields of the object are fields of the type, with values that Go's decoder takes.
/// False does not say that a field is wrong: some values are not looked at closely.
bool is_well_typed(const api::Object& object, api::detail::Type type);

/// The same for an object that was decoded from `json`, in which no key may be there twice.
bool is_well_typed(const api::Object& object, std::string_view json, api::detail::Type type);

}  // namespace lookout::apiserver::endpoints
