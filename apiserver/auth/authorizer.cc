#include "apiserver/auth/authorizer.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lookout::apiserver::auth {

Decision AllowAuthenticated::authorize(const User& user, const Attributes& action) const {
  if (!user.is_anonymous()) return {true};
  constexpr std::array<std::string_view, 4> kPublic = {"/healthz", "/livez", "/readyz", "/version"};
  const std::string_view path = action.path;
  const bool is_public = std::any_of(kPublic.begin(), kPublic.end(), [&](std::string_view known) {
    return path.starts_with(known) && (path.size() == known.size() || path[known.size()] == '/');
  });
  return {!action.is_resource_request && is_public};
}

Authorizer::Rules AllowAuthenticated::rules_for(const User& user, const std::string& /*ns*/) const {
  if (user.is_anonymous()) return {};
  return {{{{"*"}, {"*"}, {"*"}}, {{"*"}, {}, {}, {}, {"*"}}}};
}

}  // namespace lookout::apiserver::auth
