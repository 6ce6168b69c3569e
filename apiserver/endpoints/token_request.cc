#include "apiserver/endpoints/token_request.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/unset_fields.h"
#include "lookout/api/time.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::detail::quote;
using resources::Target;
using Seconds = std::chrono::seconds;

constexpr std::int64_t kDefaultSeconds = 3600;
constexpr std::int64_t kLeastSeconds = 600;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;

std::int64_t duration_of(api::Value spec) {
  const std::int64_t seconds = spec["expirationSeconds"].as_int(kDefaultSeconds);
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

/// A request names the account that it is for, or none.
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

}  // namespace

Awaitable<Object> request_token(const resources::Store& store, Target target, Object request,
                                const auth::Authenticator& authenticator,
                                const fields::FieldManager* owner) {
  check_account(request, target);
  const api::Value spec = request["spec"];
  const std::int64_t duration = duration_of(spec);
  const Object account = co_await store.get(target);
  if (!request.uid().empty() && request.uid() != account.uid()) {
    throw StatusError::conflict(
        "authentication.k8s.io", "TokenRequest", target.name,
        fmt::format(
            "the UID in the token request ({}) does not match the UID of the service account "
            "({})",
            request.uid(), account.uid()));
  }
  auth::TokenClaims claims{target.ns, target.name, std::string(account.uid())};
  for (const api::Value audience : spec["audiences"].elements())
    claims.audiences.emplace_back(audience.as_string());
  if (claims.audiences.empty()) claims.audiences.push_back(authenticator.signer().issuer());
  if (const api::Value reference = spec["boundObjectRef"]; reference.is_object())
    co_await bind(store, target, reference, authenticator.objects(), claims);
  const auto now = std::chrono::system_clock::now();
  claims.id = resources::new_uid();
  claims.issued = std::chrono::duration_cast<Seconds>(now.time_since_epoch()).count();
  claims.expires = claims.issued + duration;

  json::Document document = request.to_document();
  Allocator& allocator = document.GetAllocator();
  json::set(json::child(document, "spec", allocator), "expirationSeconds", json::Value(duration),
            allocator);
  if (owner != nullptr) owner->update(document, nullptr, allocator);
  json::Value& metadata = json::child(document, "metadata", allocator);
  json::set(metadata, "name", target.name, allocator);
  json::set(metadata, "namespace", target.ns, allocator);
  const auto micros = [](std::int64_t seconds) {
    return api::Time(std::chrono::duration_cast<api::Time::duration>(Seconds(seconds)));
  };
  json::set(metadata, "uid", resources::new_uid(), allocator);
  json::set(metadata, "creationTimestamp", api::format_time(micros(claims.issued)), allocator);
  json::Value audiences(rapidjson::kArrayType);
  for (const std::string& audience : claims.audiences)
    audiences.PushBack(json::copy_text(audience, allocator), allocator);
  json::set(*json::find(document, "spec"), "audiences", std::move(audiences), allocator);
  json::Value& status = json::child(document, "status", allocator);
  json::set(status, "token", authenticator.signer().sign(claims), allocator);
  json::set(status, "expirationTimestamp", api::format_time(micros(claims.expires)), allocator);
  api::detail::add_unset_fields(document, "authentication.k8s.io/v1", "TokenRequest", allocator);
  co_return Object::from(document);
}

}  // namespace lookout::apiserver::endpoints
