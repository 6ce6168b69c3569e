// JSON objects of strings, as in annotations.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lookout::registry::detail {

using StringMap = std::map<std::string, std::string>;

/// Reads {"key": "value", ...} like Go into a map[string]string: null is an empty map, and a null
/// value an empty string. False for anything else; then `error` is set.
bool parse_string_map(std::string_view json, StringMap& out, std::string& error);

/// In Go's form: compact, sorted by key.
std::string encode_string_map(const StringMap& map);

}  // namespace lookout::registry::detail
