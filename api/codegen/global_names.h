// Names that are not available for namespaces.
#pragma once

#include <string_view>

namespace lookout::codegen {

/// Whether a header that is used with Lookout may declare the name in the global namespace, or
/// `using namespace lookout` would make the name ambiguous.
bool is_global_name(std::string_view name);

}  // namespace lookout::codegen
