// The syntax errors of Go's encoding/json.
#pragma once

#include <string>
#include <string_view>

namespace lookout::apiserver::endpoints {

/// The first syntax error, such as "invalid character '}' looking for beginning of value"; empty if
/// the text is one JSON value.
std::string json_syntax_error(std::string_view text);

}  // namespace lookout::apiserver::endpoints
