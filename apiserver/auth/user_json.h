// A user as authentication.k8s.io/v1 UserInfo.
#pragma once

#include "apiserver/auth/user.h"
#include "apiserver/json.h"

namespace lookout::apiserver::auth {

/// {"username": ..., "uid": ..., "groups": [...], "extra": {...}}, without empty members.
json::Value user_json(const User& user, json::Allocator& allocator);

}  // namespace lookout::apiserver::auth
