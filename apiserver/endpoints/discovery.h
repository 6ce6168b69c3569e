// Discovery: /api, /apis and the paths below.
#pragma once

#include <optional>
#include <string>

#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Answers /api, /apis, /api/v1, /apis/GROUP and /apis/GROUP/VERSION, the first two also in the
/// aggregated form; nothing for other paths and for groups and versions that are not served.
/// `server_address` is the "host:port" under which the server is known.
std::optional<http::Response> discover(const http::Request& request,
                                       const resources::ResourceTable& table,
                                       const std::string& server_address);

}  // namespace lookout::apiserver::endpoints
