#include "apiserver/endpoints/token_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kConfiguration = "/.well-known/openid-configuration";
constexpr std::string_view kKeys = "/openid/v1/jwks";

void check_accepted(const http::Request& request, std::string_view type) {
  const std::string_view header = request.header("accept");
  if (header.empty()) return;
  const std::vector<MediaRange> ranges = parse_accept(header);
  const auto fits = [&](const MediaRange& range) {
    return range.type == type || range.type == "application/*" || range.type == "*/*";
  };
  if (std::any_of(ranges.begin(), ranges.end(), fits)) return;
  api::Status status;
  status.code = 406;
  status.reason = api::reason::kNotAcceptable;
  status.message = fmt::format("406: Not Acceptable\n\nAvailable representations: {}", type);
  throw api::StatusError(std::move(status));
}

}  // namespace

std::optional<http::Response> describe_tokens(const http::Request& request,
                                              const auth::TokenSigner& signer,
                                              std::string_view url) {
  std::string_view path = request.path;
  if (path.ends_with('/')) path.remove_suffix(1);
  const bool keys = path == kKeys;
  if (!keys && path != kConfiguration) return std::nullopt;
  if (request.method != "GET") {
    throw api::StatusError::generic(405, "", "", "", "", "", 0, false);
  }
  http::Response response;
  response.content_type = keys ? "application/jwk-set+json" : "application/json";
  check_accepted(request, response.content_type);
  response.headers.emplace_back("Cache-Control", "public, max-age=3600");
  response.body =
      keys ? fmt::format(R"({{"keys":[{}]}})", signer.public_key())
           : fmt::format(R"({{"issuer":{},"jwks_uri":"{}{}",)"
                         R"("response_types_supported":["id_token"],)"
                         R"("subject_types_supported":["public"],)"
                         R"("id_token_signing_alg_values_supported":["{}"]}})",
                         api::detail::quote(signer.issuer()), url, kKeys, signer.algorithm());
  return response;
}

}  // namespace lookout::apiserver::endpoints
