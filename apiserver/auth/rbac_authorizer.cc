#include "apiserver/auth/rbac_authorizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::auth {
namespace {

using api::detail::quote;

/// The number of uids of deleted objects to remember, so that late events do not add the objects
/// again.
constexpr std::size_t kBuried = 4096;

constexpr std::string_view kPrivileged = "system:masters";

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string account_name(const std::string& ns, const std::string& name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

std::string key_of(const api::Object& object) {
  if (object.ns().empty()) return std::string(object.name());
  return fmt::format("{}/{}", object.ns(), object.name());
}

/// Joins errors like k8s.io/apimachinery/pkg/util/errors.Aggregate, which omits duplicates.
std::string join_errors(const std::vector<std::string>& errors) {
  std::vector<std::string> unique;
  for (const std::string& error : errors) {
    if (!contains(unique, error)) unique.push_back(error);
  }
  if (unique.size() == 1) return unique[0];
  return fmt::format("[{}]", fmt::join(unique, ", "));
}

}  // namespace

Decision RbacAuthorizer::authorize(const User& user, const Attributes& action) const {
  if (contains(user.groups, kPrivileged)) return {true};
  const std::shared_lock lock(mutex_);
  Decision decision;
  const auto errors = visit(user, action.ns, [&](const Binding& binding, const PolicyRules& rules) {
    decision.allowed = std::any_of(rules.begin(), rules.end(),
                                   [&](const PolicyRule& rule) { return allows(rule, action); });
    if (decision.allowed)
      decision.reason = fmt::format("RBAC: allowed by {}", describe(binding, user));
    return !decision.allowed;
  });
  if (!decision.allowed && !errors.empty())
    decision.reason = fmt::format("RBAC: {}", join_errors(errors));
  return decision;
}

Authorizer::Rules RbacAuthorizer::rules_for(const User& user, const std::string& ns) const {
  const std::shared_lock lock(mutex_);
  Rules out;
  const auto errors = visit(user, ns, [&](const Binding& /*binding*/, const PolicyRules& rules) {
    out.rules.insert(out.rules.end(), rules.begin(), rules.end());
    return true;
  });
  if (!errors.empty()) out.error = join_errors(errors);
  return out;
}

std::optional<PolicyRules> RbacAuthorizer::role(const std::string& ns,
                                                const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const Role* found = find_role(ns.empty() ? "ClusterRole" : "Role", ns, name);
  if (found == nullptr) return std::nullopt;
  return found->rules;
}

std::vector<std::string> RbacAuthorizer::visit(const User& user, const std::string& ns,
                                               const Visit& visit) const {
  std::vector<std::string> errors;
  const auto visit_scope = [&](const std::string& scope) {
    for (const Binding* binding : bindings_of(user, scope)) {
      const Role* role = find_role(binding->role_kind, scope, binding->role_name);
      if (role == nullptr) {
        errors.push_back(fmt::format("{}.rbac.authorization.k8s.io {} not found",
                                     binding->role_kind == "Role" ? "role" : "clusterrole",
                                     quote(binding->role_name)));
      } else if (!visit(*binding, role->rules)) {
        return false;
      }
    }
    return true;
  };
  if (visit_scope({}) && !ns.empty()) visit_scope(ns);
  return errors;
}

std::vector<const RbacAuthorizer::Binding*> RbacAuthorizer::bindings_of(
    const User& user, const std::string& scope) const {
  std::vector<const Binding*> found;
  const auto bindings = scopes_.find(scope);
  if (bindings == scopes_.end()) return found;
  const auto add = [&](const std::string& subject) {
    const auto place = bindings->second.find(subject);
    if (place == bindings->second.end()) return;
    for (const auto& [name, binding] : place->second) found.push_back(binding);
  };
  add("u:" + user.name);
  for (const std::string& group : user.groups) add("g:" + group);
  std::sort(found.begin(), found.end(),
            [](const Binding* a, const Binding* b) { return a->name < b->name; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

const RbacAuthorizer::Role* RbacAuthorizer::find_role(const std::string& kind,
                                                      const std::string& ns,
                                                      const std::string& name) const {
  const bool in_namespace = kind == "Role";
  const auto& roles = in_namespace ? roles_ : cluster_roles_;
  const auto found = roles.find(in_namespace ? fmt::format("{}/{}", ns, name) : name);
  return found == roles.end() ? nullptr : &found->second;
}

void RbacAuthorizer::put(RbacKind kind, const api::Object& object) {
  const std::string key = key_of(object);
  const std::unique_lock lock(mutex_);
  if (dead_.contains(std::string(object.uid()))) return;
  if (kind == RbacKind::kRole || kind == RbacKind::kClusterRole) {
    Role& role = (kind == RbacKind::kRole ? roles_ : cluster_roles_)[key];
    if (!is_new(role.identity, object)) return;
    role = {identity_of(object), rules_of(object)};
    return;
  }
  Binding& binding = bindings_[key];
  if (!is_new(binding.identity, object)) return;
  unlink(binding);
  const api::Value role = object["roleRef"];
  binding = {identity_of(object),
             std::string(object.ns()),
             std::string(object.name()),
             std::string(role["kind"].as_string()),
             std::string(role["name"].as_string()),
             {}};
  for (const api::Value subject : object["subjects"].elements()) {
    binding.subjects.push_back({std::string(subject["kind"].as_string()),
                                std::string(subject["name"].as_string()),
                                std::string(subject["namespace"].as_string())});
  }
  link(binding);
}

void RbacAuthorizer::remove(RbacKind kind, const api::Object& object) {
  const std::string key = key_of(object);
  const std::string uid(object.uid());
  const std::unique_lock lock(mutex_);
  bury(uid);
  if (kind == RbacKind::kRole || kind == RbacKind::kClusterRole) {
    auto& roles = kind == RbacKind::kRole ? roles_ : cluster_roles_;
    const auto role = roles.find(key);
    if (role != roles.end() && role->second.identity.uid == uid) roles.erase(role);
    return;
  }
  const auto binding = bindings_.find(key);
  if (binding != bindings_.end() && binding->second.identity.uid == uid) erase_binding(binding);
}

void RbacAuthorizer::keep_only(RbacKind kind, const std::unordered_set<std::string>& keys,
                               std::uint64_t revision) {
  const auto is_gone = [&](const std::string& key, const Identity& identity) {
    return identity.revision <= revision && !keys.contains(key);
  };
  const std::unique_lock lock(mutex_);
  if (kind == RbacKind::kRole || kind == RbacKind::kClusterRole) {
    std::erase_if(kind == RbacKind::kRole ? roles_ : cluster_roles_,
                  [&](const auto& role) { return is_gone(role.first, role.second.identity); });
    return;
  }
  const bool in_namespace = kind == RbacKind::kRoleBinding;
  for (auto binding = bindings_.begin(); binding != bindings_.end();) {
    const auto next = std::next(binding);
    if (in_namespace != binding->second.ns.empty() &&
        is_gone(binding->first, binding->second.identity))
      erase_binding(binding);
    binding = next;
  }
}

void RbacAuthorizer::erase_binding(std::unordered_map<std::string, Binding>::iterator binding) {
  unlink(binding->second);
  bindings_.erase(binding);
}

bool RbacAuthorizer::is_new(const Identity& present, const api::Object& object) const {
  return identity_of(object).revision > present.revision;
}

void RbacAuthorizer::link(const Binding& binding) {
  Scope& scope = scopes_[binding.ns];
  for (const Subject& subject : binding.subjects) {
    const std::string key = key_of_subject(subject, binding.ns);
    if (!key.empty()) scope[key][binding.name] = &binding;
  }
}

void RbacAuthorizer::unlink(const Binding& binding) {
  const auto scope = scopes_.find(binding.ns);
  if (scope == scopes_.end()) return;
  for (const Subject& subject : binding.subjects) {
    const auto bindings = scope->second.find(key_of_subject(subject, binding.ns));
    if (bindings == scope->second.end()) continue;
    bindings->second.erase(binding.name);
    if (bindings->second.empty()) scope->second.erase(bindings);
  }
  if (scope->second.empty()) scopes_.erase(scope);
}

void RbacAuthorizer::bury(const std::string& uid) {
  if (uid.empty() || !dead_.insert(uid).second) return;
  buried_.push_back(uid);
  if (buried_.size() <= kBuried) return;
  dead_.erase(buried_.front());
  buried_.pop_front();
}

RbacAuthorizer::Identity RbacAuthorizer::identity_of(const api::Object& object) {
  const auto revision = api::detail::parse_int(object.resource_version()).value_or(0);
  return {static_cast<std::uint64_t>(revision), std::string(object.uid())};
}

std::string RbacAuthorizer::key_of_subject(const Subject& subject, const std::string& ns) {
  if (subject.kind == "User") return "u:" + subject.name;
  if (subject.kind == "Group") return "g:" + subject.name;
  if (subject.kind != "ServiceAccount") return {};
  const std::string& home = subject.ns.empty() ? ns : subject.ns;
  return home.empty() ? std::string() : "u:" + account_name(home, subject.name);
}

bool RbacAuthorizer::applies(const Subject& subject, const std::string& ns, const User& user) {
  const std::string key = key_of_subject(subject, ns);
  if (key.starts_with("u:")) return key.substr(2) == user.name;
  return key.starts_with("g:") && contains(user.groups, key.substr(2));
}

std::string RbacAuthorizer::describe(const Binding& binding, const User& user) {
  const auto subject =
      std::find_if(binding.subjects.begin(), binding.subjects.end(),
                   [&](const Subject& one) { return applies(one, binding.ns, user); });
  std::string name = subject->name;
  if (subject->kind == "ServiceAccount")
    name += "/" + (subject->ns.empty() ? binding.ns : subject->ns);
  const bool in_namespace = !binding.ns.empty();
  return fmt::format("{} {} of {} {} to {} {}", in_namespace ? "RoleBinding" : "ClusterRoleBinding",
                     quote(in_namespace ? binding.name + "/" + binding.ns : binding.name),
                     binding.role_kind, quote(binding.role_name), subject->kind, quote(name));
}

}  // namespace lookout::apiserver::auth
