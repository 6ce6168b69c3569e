// A JSON rule that is checked separately from the parser.
#pragma once

#include <cstddef>
#include <string_view>

namespace lookout {

/// The position of the first control character inside a JSON string, which RFC 8259 forbids; npos
/// if there is none. (RapidJSON with SSE2 misses some of them, depending on their alignment in
/// memory.) The result is unspecified for text that is not JSON.
std::size_t find_control_character(std::string_view json);

}  // namespace lookout
