// Resources that are asked and not kept: who is this, may they do that.
#pragma once

#include "apiserver/auth/authenticator.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The review with its status filled in. Everybody who has identified themselves may do everything.
api::Object answer_review(const resources::ServedResource& resource, const api::Object& review,
                          const auth::User& user, const auth::Authenticator& authenticator);

}  // namespace lookout::apiserver::endpoints
