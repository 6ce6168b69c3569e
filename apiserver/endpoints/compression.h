// Compressed answers.
#pragma once

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Compresses the answer to a GET with gzip if the client takes that and the answer has at least
/// 128 KB, as kube-apiserver does. Watches are never compressed.
Awaitable<void> compress(const http::Request& request, http::Response& response);

}  // namespace lookout::apiserver::endpoints
