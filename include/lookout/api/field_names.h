// Which names are names of fields in the Kubernetes schema.
#pragma once

#include <string_view>

namespace lookout::api {

/// Whether lookout/api/symbols.h has a constant for that name of a field.
bool is_schema_field(std::string_view name);

}  // namespace lookout::api
