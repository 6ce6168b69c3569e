// A description of the API for clients that check objects before they send them.
#pragma once

#include <optional>

#include "apiserver/http/message.h"
#include "apiserver/registry/served_resource.h"

namespace lookout::apiserver::endpoints {

/// Answers /openapi/v2, as JSON or in gnostic's protobuf encoding: that there is an API, without
/// its types, so that clients leave checking to the server. Nothing for other paths.
std::optional<http::Response> describe(const http::Request& request);

}  // namespace lookout::apiserver::endpoints
