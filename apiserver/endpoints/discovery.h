// Discovery: /api, /apis and the paths below.
#pragma once

#include <optional>
#include <string>

#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Serves /api, /apis, /api/v1, /apis/GROUP and /apis/GROUP/VERSION, the first two also in the
/// aggregated form. nullopt for other paths, groups and versions. `server_address` is the server's
/// "host:port". Throws api::StatusError: 405 for an unsupported method, 406 for an unsupported
/// Accept header.
std::optional<http::Response> discover(const http::Request& request,
                                       const resources::ResourceTable& table,
                                       const std::string& server_address);

}  // namespace lookout::apiserver::endpoints
