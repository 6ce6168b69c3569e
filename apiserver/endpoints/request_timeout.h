// The parameter `timeout` of a request.
#pragma once

#include "apiserver/endpoints/request_info.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Throws api::StatusError (400) for a `timeout` that is not a duration in Go's syntax, as
/// k8s.io/apiserver's filters.WithRequestDeadline does. Watches, logs and connections to pods are
/// exempt.
void check_timeout(const http::Request& request, const RequestInfo& info);

}  // namespace lookout::apiserver::endpoints
