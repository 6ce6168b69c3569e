// URIs in HTTP requests.
#pragma once

#include <string_view>

namespace lookout::apiserver::resources {

/// Whether Go's url.ParseRequestURI accepts the text: a URI with a scheme, or an absolute path,
/// without a fragment.
bool is_request_uri(std::string_view text);

}  // namespace lookout::apiserver::resources
