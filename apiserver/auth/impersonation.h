// Acting as somebody else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/auth/authorizer.h"
#include "apiserver/auth/user.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::auth {

/// Whom a request wants to be taken for, by its Impersonate-User, -Group, -Uid and -Extra- headers
/// (k8s.io/apiserver/pkg/endpoints/filters/impersonation); nothing if it has none. Throws
/// api::StatusError (400) for groups and such without a user.
std::optional<User> impersonated(const http::Request& request);

/// The groups that a user is in because of the name: those of a service account, or none.
std::vector<std::string> implied_groups(const std::string& user);

/// Throws api::StatusError (403) unless `user` may impersonate what the headers name: the user or
/// service account, each group, each value of extra information, and the UID.
void check_impersonation(const Authorizer& authorizer, const User& user,
                         const http::Request& request);

}  // namespace lookout::apiserver::auth
