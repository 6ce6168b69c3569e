// URIs as they stand in HTTP requests.
#pragma once

#include <string_view>

namespace lookout::apiserver::resources {

/// Whether Go's url.ParseRequestURI takes the text: a URI with a scheme, or a path from the root,
/// without a fragment.
bool is_request_uri(std::string_view text);

}  // namespace lookout::apiserver::resources
