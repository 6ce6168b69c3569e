#include "apiserver/auth/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "apiserver/auth/forbidden.h"
#include "apiserver/auth/service_account_tokens.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::auth {
namespace {

constexpr std::string_view kExtra = "impersonate-extra-";
constexpr std::string_view kServiceAccount = "system:serviceaccount:";
constexpr const char* kAnonymous = "system:anonymous";
constexpr const char* kUnauthenticated = "system:unauthenticated";

struct Account {
  std::string ns;
  std::string name;
};

std::optional<Account> account_of(std::string_view user) {
  if (!user.starts_with(kServiceAccount)) return std::nullopt;
  user.remove_prefix(kServiceAccount.size());
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == user.size())
    return std::nullopt;
  return Account{std::string(user.substr(0, colon)), std::string(user.substr(colon + 1))};
}

std::map<std::string, std::vector<std::string>> extra_of(const http::Request& request) {
  std::map<std::string, std::vector<std::string>> extra;
  for (auto header = request.headers.lower_bound(kExtra);
       header != request.headers.end() && header->first.starts_with(kExtra); ++header) {
    const std::string_view escaped = std::string_view(header->first).substr(kExtra.size());
    std::string key = http::percent_decode(escaped, false).value_or(std::string(escaped));
    extra.insert_or_assign(std::move(key), request.header_values(header->first));
  }
  return extra;
}

Attributes action_on(std::string group, std::string resource, std::string name) {
  Attributes action{"impersonate"};
  action.group = std::move(group);
  action.resource = std::move(resource);
  action.name = std::move(name);
  return action;
}

}  // namespace

std::vector<std::string> implied_groups(const std::string& user) {
  const auto account = account_of(user);
  return account ? groups_of_account(account->ns) : std::vector<std::string>();
}

std::optional<User> impersonated(const http::Request& request) {
  User user{std::string(request.header("impersonate-user"))};
  user.uid = request.header("impersonate-uid");
  user.groups = request.header_values("impersonate-group");
  user.extra = extra_of(request);
  if (user.name.empty()) {
    if (user.uid.empty() && user.groups.empty() && user.extra.empty()) return std::nullopt;
    throw api::StatusError::bad_request(
        "requested to impersonate a group, a UID or extra information without impersonating a "
        "user");
  }
  if (user.groups.empty()) user.groups = implied_groups(user.name);
  const char* own = user.name == kAnonymous ? kUnauthenticated : kAuthenticated;
  const bool has_one =
      std::any_of(user.groups.begin(), user.groups.end(), [&](const std::string& group) {
        return group == kUnauthenticated || (group == kAuthenticated && own == kAuthenticated);
      });
  if (!has_one) user.groups.emplace_back(own);
  return user;
}

void check_impersonation(const Authorizer& authorizer, const User& user,
                         const http::Request& request) {
  constexpr const char* kGroup = "authentication.k8s.io";
  const auto check = [&](const Attributes& action) {
    const Decision decision = authorizer.authorize(user, action);
    if (!decision.allowed) throw forbidden(user, action, decision.reason);
  };
  const std::string name(request.header("impersonate-user"));
  if (const auto account = account_of(name)) {
    Attributes action = action_on("", "serviceaccounts", account->name);
    action.ns = account->ns;
    check(action);
  } else {
    check(action_on("", "users", name));
  }
  for (std::string& group : request.header_values("impersonate-group"))
    check(action_on("", "groups", std::move(group)));
  for (auto& [key, values] : extra_of(request)) {
    for (const std::string& value : values) {
      Attributes action = action_on(kGroup, "userextras", value);
      action.subresource = key;
      check(action);
    }
  }
  if (const std::string_view uid = request.header("impersonate-uid"); !uid.empty())
    check(action_on(kGroup, "uids", std::string(uid)));
}

}  // namespace lookout::apiserver::auth
