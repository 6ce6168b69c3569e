// The field names of the Kubernetes schema.
#pragma once

#include <string_view>

namespace lookout::api {

/// True if lookout/api/symbols.h has a constant for this field name.
bool is_schema_field(std::string_view name);

}  // namespace lookout::api
