// Review resources, which are not stored: TokenReview, SubjectAccessReview and others.
#pragma once

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/authorizer.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The review with its status filled in. Throws api::StatusError for a review that is not valid.
Awaitable<api::Object> answer_review(resources::Target target, api::Object review, auth::User user,
                                     const auth::Authenticator& authenticator,
                                     const auth::Authorizer& authorizer);

}  // namespace lookout::apiserver::endpoints
