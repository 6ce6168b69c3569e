// OpenID Connect Discovery, with which others verify the tokens of service accounts.
#pragma once

#include <optional>
#include <string_view>

#include "apiserver/auth/service_account_tokens.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The answer if the request is for /.well-known/openid-configuration or /openid/v1/jwks. `url` is
/// where the server is. Throws api::StatusError (405, 406).
std::optional<http::Response> describe_tokens(const http::Request& request,
                                              const auth::TokenSigner& signer,
                                              std::string_view url);

}  // namespace lookout::apiserver::endpoints
