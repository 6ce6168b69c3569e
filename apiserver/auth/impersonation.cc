#include "apiserver/auth/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apiserver/auth/forbidden.h"
#include "apiserver/auth/service_account_tokens.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::auth {
namespace {

using api::StatusError;
using api::detail::quote;

constexpr std::string_view kExtra = "impersonate-extra-";
constexpr std::string_view kServiceAccount = "system:serviceaccount:";
constexpr std::string_view kNode = "system:node:";
constexpr const char* kAnonymous = "system:anonymous";
constexpr const char* kMasters = "system:masters";
constexpr const char* kAuthenticationGroup = "authentication.k8s.io";
/// With this many groups or extra values or more, permission for "*" is checked first.
constexpr std::size_t kMany = 4;
/// The number of users whose last mode is cached.
constexpr std::size_t kUsers = 10000;

struct Account {
  std::string ns;
  std::string name;
};

std::optional<Account> account_of(std::string_view user) {
  if (!user.starts_with(kServiceAccount)) return std::nullopt;
  const auto parts = base::split(user.substr(kServiceAccount.size()), ':');
  if (parts.size() != 2 || !api::validation::check_dns1123_label(parts[0]).empty() ||
      !api::validation::check_dns1123_subdomain(parts[1]).empty())
    return std::nullopt;
  return Account{std::string(parts[0]), std::string(parts[1])};
}

/// The name of a node, if the user is one; otherwise empty.
std::string node_of(std::string_view user) {
  if (!user.starts_with(kNode)) return {};
  const std::string_view name = user.substr(kNode.size());
  return api::validation::check_dns1123_subdomain(name).empty() ? std::string(name) : std::string();
}

std::map<std::string, std::vector<std::string>> extra_of(const http::Request& request) {
  std::map<std::string, std::vector<std::string>> extra;
  for (auto header = request.headers.lower_bound(kExtra);
       header != request.headers.end() && header->first.starts_with(kExtra); ++header) {
    const std::string_view escaped = std::string_view(header->first).substr(kExtra.size());
    // Two headers may have the same decoded key.
    auto& values = extra[http::percent_decode(escaped, false).value_or(std::string(escaped))];
    for (std::string& value : request.header_values(header->first))
      values.push_back(std::move(value));
  }
  return extra;
}

/// The user that the headers name, without implied groups.
std::optional<User> wanted_user(const http::Request& request) {
  User user{std::string(request.header("impersonate-user"))};
  user.uid = request.header("impersonate-uid");
  user.groups = request.header_values("impersonate-group");
  user.extra = extra_of(request);
  if (!user.name.empty()) return user;
  if (user.uid.empty() && user.groups.empty() && user.extra.empty()) return std::nullopt;
  throw StatusError::bad_request(
      "requested to impersonate a group, a UID or extra information without impersonating a user");
}

bool is_in(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool has_name_only(const User& user) {
  return user.uid.empty() && user.groups.empty() && user.extra.empty();
}

/// Why a constrained mode does not allow this extra information; empty if it does.
std::string problem_of(const std::map<std::string, std::vector<std::string>>& extra) {
  for (const auto& [key, values] : extra) {
    if (key.empty()) return "impersonating the empty string key in extra is not allowed";
    const std::size_t slash = key.find('/');
    const bool has_domain = slash != std::string::npos && slash + 1 < key.size() &&
                            api::validation::check_dns1123_subdomain(key.substr(0, slash)).empty();
    if (!has_domain) {
      return fmt::format(
          "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: "
          "must "
          "be a domain-prefixed path (such as \"acme.io/foo\")",
          quote(key));
    }
    if (key != base::lower_case(key)) {
      return fmt::format("impersonating a non-lowercase key in extra is not allowed: {}",
                         quote(key));
    }
    if (values.empty()) return "impersonating empty values in extra is not allowed";
    if (is_in(values, "")) return "impersonating the empty string value in extra is not allowed";
  }
  return {};
}

bool is_large(const std::map<std::string, std::vector<std::string>>& extra) {
  std::size_t values = 0;
  for (const auto& entry : extra) values += entry.second.size();
  return extra.size() >= kMany || values >= kMany;
}

// ------------------------------------------------------------------------------------------- Ways

constexpr std::string_view kOwnNode = "associated-node";

bool is_associated_node(const User& wanted, const User& user) {
  const std::string node = node_of(wanted.name);
  if (node.empty() || !has_name_only(wanted) || !account_of(user.name)) return false;
  const auto own = user.extra.find("authentication.kubernetes.io/node-name");
  return own != user.extra.end() && own->second == std::vector<std::string>{node};
}

bool is_any_node(const User& wanted, const User& /*user*/) {
  return has_name_only(wanted) && !node_of(wanted.name).empty();
}

bool is_account(const User& wanted, const User& /*user*/) {
  return has_name_only(wanted) && account_of(wanted.name);
}

bool is_other_user(const User& wanted, const User& /*user*/) {
  return node_of(wanted.name).empty() && !account_of(wanted.name);
}

bool is_anybody(const User& /*wanted*/, const User& /*user*/) { return true; }

/// A mode of impersonation.
struct Mode {
  /// Empty: the verb is "impersonate", and allows everything.
  std::string_view name;
  bool (*concerns)(const User& wanted, const User& user);

  bool is_constrained() const { return !name.empty(); }
  std::string verb() const {
    return is_constrained() ? fmt::format("impersonate:{}", name) : std::string("impersonate");
  }
};

/// In the order in which they are tried.
constexpr std::array<Mode, 5> kModes = {{{kOwnNode, is_associated_node},
                                         {"arbitrary-node", is_any_node},
                                         {"serviceaccount", is_account},
                                         {"user-info", is_other_user},
                                         {"", is_anybody}}};

/// The checks of a mode for a request.
class Check {
 public:
  Check(const Authorizer& authorizer, const Mode& mode, const User& user, const User& wanted)
      : authorizer_(authorizer), mode_(mode), user_(user), wanted_(wanted) {}

  /// Returns the impersonated user with its implied groups. Throws api::StatusError (403).
  User run(const Attributes& action) const {
    if (mode_.is_constrained()) {
      Attributes on = action;
      on.verb = fmt::format("impersonate-on:{}:{}", mode_.name, action.verb);
      demand(on);
    }
    User out = wanted_;
    check_name(out);
    if (!wanted_.uid.empty()) demand(acting(kAuthenticationGroup, "uids", wanted_.uid));
    check_groups();
    check_extra();
    if (out.name == kAnonymous) {
      ensure_group(out, kUnauthenticated);
    } else if (!is_in(out.groups, kUnauthenticated)) {
      ensure_group(out, kAuthenticated);
    }
    return out;
  }

 private:
  Attributes acting(std::string group, std::string resource, std::string name) const {
    Attributes action{mode_.verb()};
    action.group = std::move(group);
    action.resource = std::move(resource);
    action.name = std::move(name);
    return action;
  }
  /// The API group of users, groups, service accounts and nodes.
  std::string group_of_users() const { return mode_.is_constrained() ? kAuthenticationGroup : ""; }

  bool may(const Attributes& action) const { return authorizer_.authorize(user_, action).allowed; }
  void demand(const Attributes& action) const {
    const Decision decision = authorizer_.authorize(user_, action);
    if (!decision.allowed) throw forbidden(user_, action, decision.reason);
  }

  void check_name(User& out) const {
    Attributes action = acting(group_of_users(), "users", wanted_.name);
    if (const std::string node = node_of(wanted_.name); mode_.is_constrained() && !node.empty()) {
      action.resource = "nodes";
      // A user who may impersonate its own node may do so on every node.
      action.name = mode_.name == kOwnNode ? "*" : node;
      out.groups = {"system:nodes"};
    }
    if (const auto account = account_of(wanted_.name)) {
      action.resource = "serviceaccounts";
      action.ns = account->ns;
      action.name = account->name;
      if (wanted_.groups.empty()) out.groups = groups_of_account(account->ns);
    }
    demand(action);
  }

  void check_groups() const {
    const auto& groups = wanted_.groups;
    if (groups.empty()) return;
    Attributes action = acting(group_of_users(), "groups", "");
    if (mode_.is_constrained()) {
      if (is_in(groups, ""))
        throw forbidden(user_, action, "impersonating the empty string group is not allowed");
      if (is_in(groups, kMasters)) {
        action.name = kMasters;
        throw forbidden(user_, action, "impersonating the system:masters group is not allowed");
      }
      action.name = "*";
      if (groups.size() >= kMany && may(action)) return;
    }
    for (const std::string& group : groups) {
      action.name = group;
      demand(action);
    }
  }

  void check_extra() const {
    const auto& extra = wanted_.extra;
    if (extra.empty()) return;
    Attributes action = acting(kAuthenticationGroup, "userextras", "");
    if (mode_.is_constrained()) {
      if (const std::string why = problem_of(extra); !why.empty())
        throw forbidden(user_, action, why);
      action.subresource = "*";
      action.name = "*";
      if (is_large(extra) && may(action)) return;
    }
    for (const auto& [key, values] : extra) {
      action.subresource = key;
      for (const std::string& value : values) {
        action.name = value;
        demand(action);
      }
    }
  }

  static void ensure_group(User& user, const char* group) {
    if (!is_in(user.groups, group)) user.groups.emplace_back(group);
  }

  const Authorizer& authorizer_;
  const Mode& mode_;
  const User& user_;
  const User& wanted_;
};

}  // namespace

std::vector<std::string> implied_groups(const std::string& user) {
  const auto account = account_of(user);
  return account ? groups_of_account(account->ns) : std::vector<std::string>();
}

std::optional<Impersonated> Impersonator::impersonate(const User& user, const Attributes& action,
                                                      const http::Request& request) const {
  const std::optional<User> wanted = wanted_user(request);
  if (!wanted) return std::nullopt;
  std::optional<StatusError> refusal;
  const auto attempt = [&](std::size_t index) -> std::optional<Impersonated> {
    const Mode& mode = kModes[index];
    if (!mode.concerns(*wanted, user)) return std::nullopt;
    try {
      User acting = Check(authorizer_, mode, user, *wanted).run(action);
      return Impersonated{std::move(acting), mode.is_constrained() ? mode.verb() : std::string()};
    } catch (const StatusError& e) {
      if (!refusal) refusal = e;
      return std::nullopt;
    }
  };
  const std::optional<std::size_t> last = last_mode(user.name);
  if (last) {
    if (auto found = attempt(*last)) return found;
  }
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    if (i == last) continue;
    if (auto found = attempt(i)) {
      remember(user.name, i);
      return found;
    }
  }
  // The last mode applies to all users, so `refusal` is set.
  throw StatusError(*refusal);
}

std::optional<std::size_t> Impersonator::last_mode(const std::string& user) const {
  const std::lock_guard lock(mutex_);
  const auto found = last_.find(user);
  return found == last_.end() ? std::nullopt : std::optional(found->second);
}

void Impersonator::remember(const std::string& user, std::size_t mode) const {
  const std::lock_guard lock(mutex_);
  if (last_.size() >= kUsers) last_.clear();
  last_.insert_or_assign(user, mode);
}

}  // namespace lookout::apiserver::auth
