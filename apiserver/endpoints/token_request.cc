#include "apiserver/endpoints/token_request.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/texts.h"
#include "lookout/api/detail/unset_fields.h"
#include "lookout/api/time.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::detail::quote;
using resources::Target;
using Operation = resources::Write::Operation;
using Seconds = std::chrono::seconds;

constexpr std::int64_t kDefaultSeconds = 3600;
constexpr std::int64_t kLeastSeconds = 600;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;
/// The lifetime in seconds that kubelets request for tokens in pod volumes. Such tokens are valid
/// longer, for programs that read them only once (--service-account-extend-token-expiration).
constexpr std::int64_t kDurationOfVolumes = 3607;
constexpr std::int64_t kLongest = 365 * 24 * 3600;

std::int64_t duration_of(api::Value spec) {
  const std::int64_t seconds = spec["expirationSeconds"].as_int();
  const char* why = seconds < kLeastSeconds  ? "may not specify a duration less than 10 minutes"
                    : seconds > kMostSeconds ? "may not specify a duration larger than 2^32 seconds"
                                             : nullptr;
  if (why != nullptr) {
    throw StatusError::invalid(
        "authentication.k8s.io", "TokenRequest", "",
        {{"FieldValueInvalid", fmt::format("Invalid value: {}: {}", seconds, why),
          "spec.expirationSeconds"}});
  }
  return seconds;
}

/// Throws api::StatusError (422) if the request names another account.
void check_account(const Object& request, const Target& account) {
  std::vector<api::StatusCause> causes;
  const auto check = [&](const char* field, std::string_view given, std::string_view expected,
                         std::string_view what) {
    if (given.empty() || given == expected) return;
    causes.push_back(api::validation::invalid(
        field, given, fmt::format("must match the service account {} if specified", what)));
  };
  check("metadata.name", request.name(), account.name, "name");
  check("metadata.namespace", request.ns(), account.ns, "namespace");
  if (causes.empty()) return;
  throw StatusError::invalid("authentication.k8s.io", "TokenRequest", account.name,
                             std::move(causes));
}

/// Fills in the object that the token is bound to.
Awaitable<void> bind(const resources::Store& store, const Target& account, api::Value reference,
                     const auth::TokenObjects& objects, auth::TokenClaims& claims) {
  const std::string kind(reference["kind"].as_string());
  const std::string name(reference["name"].as_string());
  const std::string_view version = reference["apiVersion"].as_string();
  Target target;
  if (version == "v1" && kind == "Pod") target.resource = objects.pods;
  if (version == "v1" && kind == "Secret") target.resource = objects.secrets;
  if (version == "v1" && kind == "Node") target.resource = objects.nodes;
  if (target.resource == nullptr) {
    throw StatusError::bad_request(
        fmt::format("cannot bind token to object of type {}, Kind={}", version, kind));
  }
  if (target.resource->type.namespaced) target.ns = account.ns;
  target.name = name;
  const Object object = co_await store.get(target);
  if (kind == "Pod") {
    const std::string_view own = object["spec"]["serviceAccountName"].as_string();
    if (own != account.name) {
      throw StatusError::bad_request(
          fmt::format("cannot bind token for serviceaccount {} to pod running with different "
                      "serviceaccount name.",
                      quote(account.name)));
    }
    claims.node.name = object["spec"]["nodeName"].as_string();
  }
  const std::string_view uid = reference["uid"].as_string();
  if (!uid.empty() && uid != object.uid()) {
    throw StatusError::conflict(
        "", kind, name,
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. "
                    "The object might have been deleted and then recreated",
                    uid));
  }
  claims.bound = {kind, name, std::string(object.uid())};
  if (claims.node.name.empty()) co_return;
  const Object node = co_await objects.nodes->storage->get(claims.node.name);
  claims.node = {"Node", claims.node.name, std::string(node.uid())};
}

/// The request with the default duration, which kube-apiserver's decoder sets.
Object with_duration(const Object& request) {
  if (request["spec"]["expirationSeconds"].is_number()) return request;
  json::Document document = request.to_document();
  Allocator& allocator = document.GetAllocator();
  json::set(json::child(document, "spec", allocator), "expirationSeconds",
            json::Value(kDefaultSeconds), allocator);
  return Object::from(document);
}

Object owned(const Object& request, const fields::FieldManager* owner) {
  if (owner == nullptr) return request;
  json::Document document = request.to_document();
  owner->update(document, nullptr, document.GetAllocator());
  return Object::from(document);
}

void check_uid(const Object& request, const Object& account) {
  if (request.uid().empty() || request.uid() == account.uid()) return;
  throw StatusError::conflict(
      "authentication.k8s.io", "TokenRequest", account.name(),
      fmt::format("the UID in the token request ({}) does not match the UID of the service account "
                  "({})",
                  request.uid(), account.uid()));
}

/// The request with its defaults: the account and the audience.
Object completed(const Object& request, const Object& account, const std::string& issuer,
                 std::chrono::sys_seconds now) {
  json::Document document = request.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value& metadata = json::child(document, "metadata", allocator);
  json::set(metadata, "name", account.name(), allocator);
  json::set(metadata, "namespace", account.ns(), allocator);
  json::set(metadata, "uid", account.uid(), allocator);
  json::set(metadata, "creationTimestamp", api::format_time(now), allocator);
  if (request["spec"]["audiences"].empty()) {
    json::Value audiences(rapidjson::kArrayType);
    audiences.PushBack(json::copy_text(issuer, allocator), allocator);
    json::set(json::child(document, "spec", allocator), "audiences", std::move(audiences),
              allocator);
  }
  json::erase(document, "status");
  return Object::from(document);
}

}  // namespace

Awaitable<Object> request_token(const resources::Store& store, Target target, Object request,
                                const auth::Authenticator& authenticator,
                                const fields::FieldManager* owner,
                                resources::Admission& admission) {
  request = owned(with_duration(request), owner);
  resources::Write creation{Operation::kCreate, request, Object()};
  request = co_await admission.mutate(std::move(creation), with_duration);
  check_account(request, target);
  const Object account = co_await store.get(target);
  check_uid(request, account);
  const std::string& issuer = authenticator.signer().issuer();
  const auto now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  request = completed(request, account, issuer, now);
  const std::int64_t duration = duration_of(request["spec"]);
  resources::Write same{Operation::kCreate, request, Object()};
  co_await admission.validate(std::move(same));

  auth::TokenClaims claims{target.ns, target.name, std::string(account.uid())};
  claims.audiences = api::detail::texts_of(request["spec"]["audiences"]);
  if (const api::Value reference = request["spec"]["boundObjectRef"]; reference.is_object())
    co_await bind(store, target, reference, authenticator.objects(), claims);
  claims.id = resources::new_uid();
  claims.issued = now.time_since_epoch().count();
  claims.expires = claims.issued + duration;
  const bool is_for_us = claims.audiences == std::vector<std::string>{issuer};
  if (claims.bound.kind == "Pod" && duration == kDurationOfVolumes && is_for_us) {
    claims.warn_after = claims.expires;
    claims.expires = claims.issued + kLongest;
  }

  json::Document document = request.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value& status = json::child(document, "status", allocator);
  json::set(status, "token", authenticator.signer().sign(claims), allocator);
  json::set(status, "expirationTimestamp", api::format_time(now + Seconds(duration)), allocator);
  api::detail::add_unset_fields(document, "authentication.k8s.io/v1", "TokenRequest", allocator);
  co_return Object::from(document);
}

}  // namespace lookout::apiserver::endpoints
