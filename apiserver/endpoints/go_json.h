// What Go's JSON parser says about a text, for messages that must be the API server's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lookout::apiserver::endpoints {

/// "unexpected end of JSON input", "invalid character 'x' looking for beginning of value" ...;
/// nothing if the text is valid JSON.
std::optional<std::string> go_json_error(std::string_view text);

}  // namespace lookout::apiserver::endpoints
