// Printing JSON as YAML.
#pragma once

#include <string>
#include <string_view>

namespace lookout::api::detail {

/// Prints a JSON text as block YAML that reads back as the same values. The format is that of Go's
/// sigs.k8s.io/yaml, which kubectl and kube-apiserver use: members sorted by name, array elements
/// not indented. Throws lookout::Error if the text is not JSON or is nested more than 1000 levels
/// deep; the message quotes nothing of the text.
std::string to_yaml(std::string_view json);

}  // namespace lookout::api::detail
