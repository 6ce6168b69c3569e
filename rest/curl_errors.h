// Classifies libcurl's errors.
#pragma once

#include <curl/curl.h>

#include <string_view>

#include "lookout/rest/detail/http_transport.h"

namespace lookout::rest::detail {

/// The kind of error of a transfer that has ended with `code`. `text` is libcurl's message.
TransportError::Kind kind_of(CURLcode code, CURL* easy, std::string_view text);

}  // namespace lookout::rest::detail
