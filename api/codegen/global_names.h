// Names that a namespace cannot have beside Lookout and the C library.
#pragma once

#include <string_view>

namespace lookout::codegen {

/// Whether a header that a program with Lookout may include declares something of that name in the
/// global namespace, or `using namespace lookout` would make the name ambiguous.
bool is_global_name(std::string_view name);

}  // namespace lookout::codegen
