// JSON as YAML.
#pragma once

#include <string>
#include <string_view>

namespace lookout::api::detail {

/// A JSON text as block YAML that reads back as the same values. The form is that of Go's
/// sigs.k8s.io/yaml, which kubectl and kube-apiserver print: members sorted by name, elements of
/// an array not indented. Throws lookout::Error, which repeats nothing of the text, if it is not
/// JSON or is nested more than 1000 levels deep.
std::string to_yaml(std::string_view json);

}  // namespace lookout::api::detail
