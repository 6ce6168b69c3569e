// Cacheable responses.
#pragma once

#include <string>

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Sets the ETag of a response. A client that has this version gets a 304 without a body.
void set_etag(const http::Request& request, const std::string& hash, http::Response& response);

}  // namespace lookout::apiserver::endpoints
