// The admission plugin ServiceAccount (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount).
#pragma once

#include <string>

#include "apiserver/resources/admission.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// A new pod with a service account ("default" if it names none), with a volume that has the account's
/// token, unless the pod or the account opts out, and with the account's imagePullSecrets if it has
/// none. `accounts` are the service accounts. Throws api::StatusError (403) if the account does not
/// exist, or as check_service_account(). An account "default" may be about to be created: waits up to
/// two seconds for it.
Awaitable<api::Object> admit_service_account(ServedResourcePtr accounts, std::string ns,
                                             api::Object pod);

/// Throws api::StatusError (403) if the account of a new pod does not exist, or if the pod has secrets
/// that the account does not name, although it has the annotation
/// kubernetes.io/enforce-mountable-secrets. A mirror pod must have no account and no secrets.
Awaitable<void> check_service_account(ServedResourcePtr accounts, std::string ns, api::Object pod);

/// The admission of a request that changes the ephemeral containers of a pod: checks their secrets
/// after the next admission. Lives as long as one request.
class EphemeralSecrets final : public Admission {
 public:
  /// `next` may be null; otherwise it must outlive this.
  EphemeralSecrets(ServedResourcePtr accounts, std::string ns, Admission* next);

  bool concerns(Write::Operation operation) const override;
  Awaitable<api::Object> mutate(Write write, Normalize normalize) override;
  Awaitable<void> validate(Write write) override;

 private:
  const ServedResourcePtr accounts_;
  const std::string ns_;
  Admission* const next_;
};

}  // namespace lookout::apiserver::resources
