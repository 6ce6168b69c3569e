// The formats of texts in the schemas of custom resources.
#pragma once

#include <string_view>

namespace lookout::apiserver::resources {

/// Whether a text has a schema's `format`, like k8s.io/kube-openapi's strfmt. Ignores dashes in the
/// name ("date-time" is "datetime"). Unknown formats accept any text.
bool has_format(std::string_view text, std::string_view format);

/// Whether Kubernetes supports the `format` for this type ("" is a string).
bool is_known_format(std::string_view type, std::string_view format);

}  // namespace lookout::apiserver::resources
