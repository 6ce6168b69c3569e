// UserAdmission: the built-in admission that depends on the user of a request.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/auth/authorizer.h"
#include "apiserver/resources/admission.h"

namespace lookout::apiserver::admission {

/// Checks writes of roles and bindings; sets the requester of CertificateSigningRequests, checks the
/// permissions to approve and sign them, and rejects requests for system:masters; rejects updates and
/// patches that create an object without the permission "create". Then calls the next admission.
/// Lives as long as one request.
class UserAdmission : public resources::Admission {
 public:
  /// All must outlive it. `verb` is the verb of the request.
  UserAdmission(resources::Admission& next, const auth::Authorizer& authorizer,
                const auth::User& user, resources::Target target, std::string subresource,
                std::string_view verb);

  bool concerns(resources::Write::Operation operation) const override;
  Awaitable<api::Object> mutate(resources::Write write, Normalize normalize) override;
  Awaitable<void> validate(resources::Write write) override;

 private:
  bool is_signing_request() const;
  /// The plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
  void check_signing_request(const resources::Write& write) const;
  auth::Attributes creation() const;

  resources::Admission& next_;
  const auth::Authorizer& authorizer_;
  const auth::User& user_;
  const resources::Target target_;
  const std::string subresource_;
  /// False if the request is not a "create", and the user may not create.
  bool may_create_ = true;
};

}  // namespace lookout::apiserver::admission
