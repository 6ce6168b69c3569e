// The OpenAPI endpoints.
#pragma once

#include <optional>

#include "apiserver/openapi/documents.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Serves /openapi/v2 as JSON or in gnostic's protobuf encoding, and /openapi/v3 and the paths below
/// it as JSON. nullopt for other paths.
std::optional<http::Response> describe(const http::Request& request, openapi::Documents& documents);

}  // namespace lookout::apiserver::endpoints
