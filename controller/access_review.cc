#include "controller/access_review.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <exception>
#include <string_view>

#include "lookout/base/ascii.h"
#include "lookout/base/detail/log.h"
#include "lookout/k8s/authentication/v1_draft.h"
#include "lookout/k8s/authorization/v1_draft.h"

namespace lookout::controller::detail {
namespace {

using http::Response;
using k8s::authentication::v1::TokenReview;
using k8s::authorization::v1::SubjectAccessReview;

constexpr std::chrono::minutes kUserLifetime{1};
constexpr std::chrono::minutes kAllowedLifetime{5};
constexpr std::chrono::seconds kDeniedLifetime{30};
constexpr std::chrono::seconds kTimeout{10};

/// Empty if there is none.
std::string bearer_token(const http::Request& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view header = base::trim(request.header("authorization"));
  if (base::lower_case(header.substr(0, kScheme.size())) != kScheme) return {};
  const std::string_view token = header.substr(kScheme.size());
  return std::string(token.substr(0, token.find(' ')));
}

std::string hash_of(std::string_view token) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

rest::CallOptions call_options(std::stop_token stop) {
  rest::CallOptions out;
  out.stop = std::move(stop);
  out.timeout = kTimeout;
  return out;
}

Response failure(int status, std::string message) {
  return Response::text(status, std::move(message) + "\n");
}

}  // namespace

AccessReview::AccessReview(rest::Client client, std::shared_ptr<Clock> clock)
    : client_(std::move(client)), clock_(std::move(clock)) {}

Awaitable<std::optional<Response>> AccessReview::refuse(const http::Request& request) {
  constexpr int kUnauthorized = 401;
  constexpr int kForbidden = 403;
  constexpr int kInternal = 500;
  std::string token = bearer_token(request);
  if (token.empty()) co_return failure(kUnauthorized, "Unauthorized");
  std::shared_ptr<const api::Object> user;
  try {
    user = co_await user_of(std::move(token), request.gone);
  } catch (const std::exception& e) {
    log::error("manager: a client of {} cannot be authenticated: {}", request.path, e.what());
    co_return failure(kInternal, "Authentication failed");
  }
  if (!user) co_return failure(kUnauthorized, "Unauthorized");
  const TokenReview authenticated(*user);
  const std::string name(authenticated.status().user().username());
  try {
    const bool allowed =
        co_await may(user, base::lower_case(request.method), request.path, request.gone);
    if (allowed) co_return std::nullopt;
    co_return failure(kForbidden, fmt::format("Authorization denied for user {}", name));
  } catch (const std::exception& e) {
    log::error("manager: user {} cannot be authorized for {}: {}", name, request.path, e.what());
    co_return failure(kInternal, fmt::format("Authorization for user {} failed", name));
  }
}

Awaitable<std::shared_ptr<const api::Object>> AccessReview::user_of(std::string token,
                                                                    std::stop_token stop) {
  std::string key = hash_of(token);
  if (auto known = users_.find(key, clock_->now())) co_return *std::move(known);
  auto review = TokenReview::draft("");
  review.spec().set_token(token);
  const auto reviews = client_.resource<TokenReview>();
  const TokenReview answer =
      co_await reviews.async_create(review, rest::CreateOptions(), call_options(std::move(stop)));
  std::shared_ptr<const api::Object> out;
  if (answer.status().authenticated().value_or(false))
    out = std::make_shared<const api::Object>(answer);
  users_.put(std::move(key), out, clock_->now(), kUserLifetime);
  co_return out;
}

Awaitable<bool> AccessReview::may(std::shared_ptr<const api::Object> user, std::string verb,
                                  std::string path, std::stop_token stop) {
  auto review = SubjectAccessReview::draft("");
  const auto spec = review.spec();
  const TokenReview authenticated(*user);
  const auto who = authenticated.status().user();
  spec.set_user(who.username()).set_uid(who.uid());
  spec["groups"].set(authenticated["status"]["user"]["groups"]);
  spec["extra"].set(authenticated["status"]["user"]["extra"]);
  spec.non_resource_attributes().set_path(path).set_verb(verb);
  const SubjectAccessReview question = review.build();
  std::string key = question.to_json();
  if (const auto known = decisions_.find(key, clock_->now())) co_return *known;
  const auto reviews = client_.resource<SubjectAccessReview>();
  const SubjectAccessReview answer =
      co_await reviews.async_create(question, rest::CreateOptions(), call_options(std::move(stop)));
  const bool allowed = answer.status().allowed();
  const Clock::Duration lifetime = allowed ? Clock::Duration(kAllowedLifetime) : kDeniedLifetime;
  decisions_.put(std::move(key), allowed, clock_->now(), lifetime);
  co_return allowed;
}

}  // namespace lookout::controller::detail
