// Bodies in YAML: what clients send in it is read as JSON, and what they want in it is turned into it
// at the end.
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
  /// repeated_keys() of it.
  std::vector<std::string> repeated;
};
/// Throws api::StatusError (400) if the text is no YAML.
YamlBody read_yaml(std::string_view text);

/// `line 3: key "a" already set in map`, for each key that a map has once more. The line is the
/// value's.
std::vector<std::string> repeated_keys(const YamlNode& node);
/// go-yaml's error for these.
std::string unmarshal_errors(const std::vector<std::string>& repeated);

/// Whether YAML is the form that the client likes best. Watches are not to be had in it.
bool prefers_yaml(const http::Request& request);

/// Makes YAML of an answer in JSON, which it reads to its end first. What is nested too deeply for
/// YAML stays JSON.
Awaitable<void> turn_into_yaml(http::Response& response);

}  // namespace lookout::apiserver::endpoints
