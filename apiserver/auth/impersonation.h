// Acting as somebody else.
#pragma once

#include <optional>

#include "apiserver/auth/user.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::auth {

/// Whom a request wants to be taken for, by its Impersonate-User, -Group, -Uid and -Extra- headers
/// (k8s.io/apiserver/pkg/endpoints/filters/impersonation); nothing if it has none. Throws
/// api::StatusError (400) for groups and such without a user.
std::optional<User> impersonated(const http::Request& request);

}  // namespace lookout::apiserver::auth
