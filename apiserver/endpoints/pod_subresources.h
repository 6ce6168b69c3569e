// Binding pods, and the options of their logs.
#pragma once

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Binds a pod to a node, as schedulers request. Throws api::StatusError.
Awaitable<void> bind_pod(const resources::Store& store, resources::Target pod, api::Object binding,
                         bool dry_run);

/// Validates a request for the log of a pod: throws api::StatusError with 422 for invalid options,
/// and with 400 for an unknown container.
void check_log_options(const http::Request& request, const api::Object& pod);

}  // namespace lookout::apiserver::endpoints
