#include "apiserver/admission/user_admission.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "apiserver/auth/forbidden.h"
#include "apiserver/auth/role_guard.h"
#include "apiserver/auth/user_json.h"
#include "apiserver/pem.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"
#include "lookout/base/base64.h"
#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver::admission {
namespace {

using api::Object;
using Operation = resources::Write::Operation;

constexpr const char* kCertificates = "certificates.k8s.io";
/// The signer of client certificates for the API server.
constexpr const char* kClientSigner = "kubernetes.io/kube-apiserver-client";

/// The request with the user as its requester, overriding the client's values.
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

/// Whether the user may "approve" or "sign" requests for a signer.
bool may_use_signer(const auth::Authorizer& authorizer, const auth::User& user,
                    std::string_view verb, std::string_view signer) {
  auth::Attributes action{std::string(verb)};
  action.group = kCertificates;
  action.resource = "signers";
  action.name = signer;
  if (authorizer.authorize(user, action).allowed) return true;
  // Permission for all signers of the domain.
  action.name = fmt::format("{}/*", signer.substr(0, signer.find('/')));
  return authorizer.authorize(user, action).allowed;
}

/// Whether an update of the status issues a certificate.
bool is_signed(const Object& request, const Object& old) {
  const api::Value now = request["status"];
  const api::Value before = old["status"];
  if (now["certificate"].as_string() != before["certificate"].as_string()) return true;
  const api::Value conditions = now["conditions"];
  const api::Value old_conditions = before["conditions"];
  if (conditions.empty() && old_conditions.empty()) return false;
  return conditions != old_conditions;
}

/// Thrown for malformed certificate requests.
struct BadRequest {
  std::string why;
};

using SigningRequest = std::unique_ptr<X509_REQ, lookout::detail::FreeWith<X509_REQ_free>>;

/// Throws BadRequest.
SigningRequest parse_request(const std::string& pem) {
  const std::vector<PemBlock> blocks = read_pem(pem);
  if (blocks.empty() || blocks.front().name != "CERTIFICATE REQUEST")
    throw BadRequest{"PEM block type must be CERTIFICATE REQUEST"};
  const std::string& data = blocks.front().data;
  const auto* const begin = reinterpret_cast<const unsigned char*>(data.data());
  const unsigned char* next = begin;
  SigningRequest request(d2i_X509_REQ(nullptr, &next, static_cast<long>(data.size())));
  ERR_clear_error();
  if (request == nullptr || next != begin + data.size())
    throw BadRequest{"x509: malformed certificate request"};
  return request;
}

/// The organizations of the subject, which are the groups of the user. Throws BadRequest.
std::vector<std::string> groups_of(const std::string& pem) {
  const SigningRequest request = parse_request(pem);
  const X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) {
      ERR_clear_error();
      throw BadRequest{"x509: malformed certificate request"};
    }
    out.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
  }
  return out;
}

/// Why the request is rejected (CertificateSubjectRestriction); empty if it is allowed.
std::string restriction_of(const Object& request) {
  if (request["spec"]["signerName"].as_string() != kClientSigner) return {};
  try {
    const std::vector<std::string> groups =
        groups_of(decode_base64(request["spec"]["request"].as_string()).value_or(std::string()));
    if (std::find(groups.begin(), groups.end(), "system:masters") == groups.end()) return {};
    return fmt::format("use of {} signer with system:masters group is not allowed", kClientSigner);
  } catch (const BadRequest& e) {
    return fmt::format("failed to parse CSR: {}", e.why);
  }
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
  const bool is_new = write.operation == Operation::kCreate;
  Object object = write.object;
  if (next_.concerns(write.operation))
    object = co_await next_.mutate(std::move(write), std::move(normalize));
  // Overrides webhooks' changes of the requester.
  if (is_new && is_signing_request()) object = with_requester(object, user_);
  co_return object;
}

void UserAdmission::check_signing_request(const resources::Write& write) const {
  const auto refuse = [&](std::string_view why) {
    throw api::StatusError::forbidden(kCertificates, target_.resource->type.plural,
                                      write.object.name(), why);
  };
  const auto demand = [&](std::string_view verb, const Object& request) {
    const std::string_view signer = request["spec"]["signerName"].as_string();
    if (may_use_signer(authorizer_, user_, verb, signer)) return;
    refuse(fmt::format("user not permitted to {} requests with signerName {}", verb,
                       api::detail::quote(signer)));
  };
  if (write.operation == Operation::kCreate) {
    if (const std::string why = restriction_of(write.object); !why.empty()) refuse(why);
  } else if (write.operation == Operation::kUpdate && subresource_ == "approval") {
    demand("approve", write.object);
  } else if (write.operation == Operation::kUpdate && subresource_ == "status" &&
             is_signed(write.object, write.old)) {
    demand("sign", write.old);
  }
}

Awaitable<void> UserAdmission::validate(resources::Write write) {
  if (write.operation == Operation::kCreate && !may_create_) {
    const auth::Attributes action = creation();
    throw auth::forbidden(user_, action, authorizer_.authorize(user_, action).reason);
  }
  if (write.operation != Operation::kDelete && auth::is_guarded(*target_.resource))
    auth::check_escalation(authorizer_, user_, target_, write.object, write.old);
  if (is_signing_request()) check_signing_request(write);
  if (next_.concerns(write.operation)) co_await next_.validate(std::move(write));
}

}  // namespace lookout::apiserver::admission
