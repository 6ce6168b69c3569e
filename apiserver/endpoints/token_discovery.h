// OpenID Connect Discovery, with which other systems verify service account tokens.
#pragma once

#include <optional>
#include <string_view>

#include "apiserver/auth/service_account_tokens.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The response to requests for /.well-known/openid-configuration and /openid/v1/jwks. `url` is the
/// server's URL. Throws api::StatusError (405, 406).
std::optional<http::Response> describe_tokens(const http::Request& request,
                                              const auth::TokenSigner& signer,
                                              std::string_view url);

}  // namespace lookout::apiserver::endpoints
