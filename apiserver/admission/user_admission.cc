#include "apiserver/admission/user_admission.h"

#include <fmt/format.h>

#include <utility>

#include "apiserver/auth/forbidden.h"
#include "apiserver/auth/role_guard.h"
#include "apiserver/auth/user_json.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {
namespace {

using api::Object;
using Operation = resources::Write::Operation;

constexpr const char* kCertificates = "certificates.k8s.io";

/// The request with its requester, whatever the client says of that.
Object with_requester(const Object& request, const auth::User& user) {
  json::Document document = request.to_document();
  auto& allocator = document.GetAllocator();
  json::Value& spec = json::child(document, "spec", allocator);
  for (const char* field : {"username", "uid", "groups", "extra"}) json::erase(spec, field);
  json::Value info = auth::user_json(user, allocator);
  for (auto& member : info.GetObject())
    json::set(spec, json::text_of(member.name), std::move(member.value), allocator);
  return Object::from(document);
}

bool may_approve(const auth::Authorizer& authorizer, const auth::User& user,
                 std::string_view signer) {
  auth::Attributes action{"approve"};
  action.group = kCertificates;
  action.resource = "signers";
  action.name = signer;
  if (authorizer.authorize(user, action).allowed) return true;
  // All signers of a domain.
  action.name = fmt::format("{}/*", signer.substr(0, signer.find('/')));
  return authorizer.authorize(user, action).allowed;
}

}  // namespace

UserAdmission::UserAdmission(resources::Admission& next, const auth::Authorizer& authorizer,
                             const auth::User& user, resources::Target target,
                             std::string subresource, std::string_view verb)
    : next_(next),
      authorizer_(authorizer),
      user_(user),
      target_(std::move(target)),
      subresource_(std::move(subresource)) {
  if ((verb == "update" || verb == "patch") && subresource_.empty())
    may_create_ = authorizer_.authorize(user_, creation()).allowed;
}

auth::Attributes UserAdmission::creation() const {
  const api::Resource& type = target_.resource->type;
  auth::Attributes action{"create"};
  action.group = type.group;
  action.resource = type.plural;
  action.ns = target_.ns;
  action.name = target_.name;
  return action;
}

bool UserAdmission::is_signing_request() const {
  const api::Resource& type = target_.resource->type;
  return type.group == kCertificates && type.plural == "certificatesigningrequests";
}

bool UserAdmission::concerns(Operation operation) const {
  if (operation == Operation::kCreate && !may_create_) return true;
  if (operation != Operation::kDelete &&
      (auth::is_guarded(*target_.resource) || is_signing_request()))
    return true;
  return next_.concerns(operation);
}

Awaitable<Object> UserAdmission::mutate(resources::Write write, Normalize normalize) {
  if (is_signing_request() && write.operation == Operation::kCreate)
    write.object = with_requester(write.object, user_);
  const Object object = write.object;
  if (!next_.concerns(write.operation)) co_return object;
  co_return co_await next_.mutate(std::move(write), std::move(normalize));
}

Awaitable<void> UserAdmission::validate(resources::Write write) {
  if (write.operation == Operation::kCreate && !may_create_) {
    const auth::Attributes action = creation();
    throw auth::forbidden(user_, action, authorizer_.authorize(user_, action).reason);
  }
  if (write.operation != Operation::kDelete && auth::is_guarded(*target_.resource))
    auth::check_escalation(authorizer_, user_, target_, write.object, write.old);
  if (is_signing_request() && subresource_ == "approval") {
    const std::string_view signer = write.object["spec"]["signerName"].as_string();
    if (!may_approve(authorizer_, user_, signer)) {
      throw api::StatusError::forbidden(
          kCertificates, target_.resource->type.plural, write.object.name(),
          fmt::format("user not permitted to approve requests with signerName {}",
                      api::detail::quote(signer)));
    }
  }
  if (next_.concerns(write.operation)) co_await next_.validate(std::move(write));
}

}  // namespace lookout::apiserver::admission
