// JSON objects of strings, as annotations hold them.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lookout::registry::detail {

using StringMap = std::map<std::string, std::string>;

/// Reads {"key": "value", ...} as Go reads it into a map[string]string: null is an empty map, and
/// as a value an empty string. False if it is anything else; `error` then says what is wrong.
bool parse_string_map(std::string_view json, StringMap& out, std::string& error);

/// As Go writes it: compact, in the order of the keys.
std::string encode_string_map(const StringMap& map);

}  // namespace lookout::registry::detail
