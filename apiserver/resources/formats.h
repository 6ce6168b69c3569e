// The formats of texts in the schemas of custom resources.
#pragma once

#include <string_view>

namespace lookout::apiserver::resources {

/// Whether a text has the form that the `format` of a schema asks for, as k8s.io/kube-openapi's
/// strfmt looks at it. Dashes in the name do not count ("date-time" is "datetime"), and a format that
/// Kubernetes does not know asks for nothing.
bool has_format(std::string_view text, std::string_view format);

}  // namespace lookout::apiserver::resources
