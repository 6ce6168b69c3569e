// The escalation check: users may not grant rights that they do not have.
#pragma once

#include "apiserver/auth/authorizer.h"
#include "apiserver/resources/store.h"

namespace lookout::apiserver::auth {

/// Whether the rules below concern writes of the resource.
bool is_guarded(const resources::ServedResource& resource);

/// Checks a write of a role or a binding (k8s.io/kubernetes/pkg/registry/rbac): its rules must not
/// exceed the user's own, unless the user may "escalate" the role, or "bind" the role of the
/// binding. `old` is empty for a creation. Throws api::StatusError: 403, or 404 if a binding's role
/// does not exist.
void check_escalation(const Authorizer& authorizer, const User& user,
                      const resources::Target& target, const api::Object& object,
                      const api::Object& old);

}  // namespace lookout::apiserver::auth
