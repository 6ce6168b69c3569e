// Compressed responses.
#pragma once

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Compresses the response to a GET with gzip if the client accepts it and the response has at least
/// 128 KB, as kube-apiserver does. Watches are never compressed.
Awaitable<void> compress(const http::Request& request, http::Response& response);

}  // namespace lookout::apiserver::endpoints
