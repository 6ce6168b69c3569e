// A description of the API for clients that want to know its types.
#pragma once

#include <memory>
#include <optional>

#include "apiserver/openapi/documents.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Answers /openapi/v2, as JSON or in gnostic's protobuf encoding, /openapi/v3 and what is below
/// it, as JSON. Nothing for other paths.
std::optional<http::Response> describe(const http::Request& request, openapi::Documents& documents);

}  // namespace lookout::apiserver::endpoints
