// YAML bodies: requests are converted to JSON first, responses to YAML last.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/http/message.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::apiserver::endpoints {

/// A body in YAML.
struct YamlBody {
  std::string json;
  /// Its repeated_keys().
  std::vector<std::string> repeated;
};
/// Throws api::StatusError (400) if the text is not YAML.
YamlBody read_yaml(std::string_view text);

/// `line 3: key "a" already set in map`, for each repeated key of a map. The line is the value's.
std::vector<std::string> repeated_keys(const YamlNode& node);
/// go-yaml's error for these.
std::string unmarshal_errors(const std::vector<std::string>& repeated);

/// Whether the client prefers YAML.
bool prefers_yaml(const http::Request& request);

/// Converts a JSON response to YAML, after reading it completely. Responses that are nested too deeply
/// stay JSON.
Awaitable<void> turn_into_yaml(http::Response& response);

}  // namespace lookout::apiserver::endpoints
