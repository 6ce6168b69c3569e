// Tokens for service accounts.
#pragma once

#include "apiserver/auth/authenticator.h"
#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Answers a TokenRequest for the service account `target`
/// (k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage). Its fields belong to `owner`, if
/// not null. As in kube-apiserver, mutating webhooks receive the request before the account's name
/// and the audiences are filled in, and validating webhooks afterwards. Throws api::StatusError.
Awaitable<api::Object> request_token(const resources::Store& store, resources::Target target,
                                     api::Object request, const auth::Authenticator& authenticator,
                                     const fields::FieldManager* owner,
                                     resources::Admission& admission);

}  // namespace lookout::apiserver::endpoints
