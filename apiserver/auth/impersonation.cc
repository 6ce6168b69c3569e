#include "apiserver/auth/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lookout/api/status.h"

namespace lookout::apiserver::auth {
namespace {

constexpr std::string_view kExtra = "impersonate-extra-";
constexpr std::string_view kServiceAccount = "system:serviceaccount:";
constexpr const char* kAnonymous = "system:anonymous";
constexpr const char* kAuthenticated = "system:authenticated";
constexpr const char* kUnauthenticated = "system:unauthenticated";

/// The groups of a service account; none if the name is none of one.
std::vector<std::string> groups_of_account(std::string_view user) {
  if (!user.starts_with(kServiceAccount)) return {};
  user.remove_prefix(kServiceAccount.size());
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == user.size()) return {};
  return {"system:serviceaccounts",
          fmt::format("system:serviceaccounts:{}", user.substr(0, colon))};
}

}  // namespace

std::optional<User> impersonated(const http::Request& request) {
  User user{std::string(request.header("impersonate-user"))};
  user.uid = request.header("impersonate-uid");
  user.groups = request.header_values("impersonate-group");
  for (auto header = request.headers.lower_bound(kExtra);
       header != request.headers.end() && header->first.starts_with(kExtra); ++header) {
    const std::string_view escaped = std::string_view(header->first).substr(kExtra.size());
    std::string key = http::percent_decode(escaped, false).value_or(std::string(escaped));
    user.extra.insert_or_assign(std::move(key), request.header_values(header->first));
  }
  if (user.name.empty()) {
    if (user.uid.empty() && user.groups.empty() && user.extra.empty()) return std::nullopt;
    throw api::StatusError::bad_request(
        "requested to impersonate a group, a UID or extra information without impersonating a "
        "user");
  }
  if (user.groups.empty()) user.groups = groups_of_account(user.name);
  const char* own = user.name == kAnonymous ? kUnauthenticated : kAuthenticated;
  const bool has_one =
      std::any_of(user.groups.begin(), user.groups.end(), [&](const std::string& group) {
        return group == kUnauthenticated || (group == kAuthenticated && own == kAuthenticated);
      });
  if (!has_one) user.groups.emplace_back(own);
  return user;
}

}  // namespace lookout::apiserver::auth
