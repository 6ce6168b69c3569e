// A rule of JSON that is checked apart from the parser.
#pragma once

#include <cstddef>
#include <string_view>

namespace lookout {

/// Where a string of the JSON text holds a control character as such, which RFC 8259 forbids; npos
/// if none does. (RapidJSON with SSE2 overlooks some of them, depending on where in memory they
/// are.) Of a text that is no JSON it says something or other.
std::size_t find_control_character(std::string_view json);

}  // namespace lookout
