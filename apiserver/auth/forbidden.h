// The 403 of an action that is not allowed.
#pragma once

#include <string>

#include "apiserver/auth/policy_rule.h"
#include "apiserver/auth/user.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::auth {

/// With kube-apiserver's message: User "ann" cannot list resource "pods" in API group "" in the
/// namespace "shop", and the reason if there is one.
api::StatusError forbidden(const User& user, const Attributes& action, const std::string& reason);

}  // namespace lookout::apiserver::auth
