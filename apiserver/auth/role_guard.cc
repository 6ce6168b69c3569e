#include "apiserver/auth/role_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::auth {
namespace {

using api::detail::quote;
using resources::Target;

/// True if a change affects only metadata that the garbage collector changes.
bool changes_owners_only(const Object& object, const Object& old) {
  if (!old) return false;
  json::Document document = object.to_document();
  const json::Document before = old.to_document();
  auto& metadata = json::child(document, "metadata", document.GetAllocator());
  const json::Value* present = json::find(before, "metadata");
  for (const char* field : {"ownerReferences", "finalizers", "managedFields"})
    json::take(metadata, *present, field, document.GetAllocator());
  return static_cast<const json::Value&>(document) == before;
}

bool may(const Authorizer& authorizer, const User& user, const char* verb, const Target& target,
         std::string resource, std::string name) {
  Attributes action{verb};
  action.group = kRbacGroup;
  action.resource = std::move(resource);
  action.ns = target.ns;
  action.name = std::move(name);
  return authorizer.authorize(user, action).allowed;
}

std::string excess_of(const Authorizer& authorizer, const User& user, const std::string& ns,
                      const PolicyRules& wanted) {
  const Authorizer::Rules own = authorizer.rules_for(user, ns);
  const PolicyRules missing = missing_rules(own.rules, wanted);
  if (missing.empty()) return {};
  std::vector<std::string> groups;
  groups.reserve(user.groups.size());
  for (const std::string& group : user.groups) groups.push_back(quote(group));
  std::string text = fmt::format(
      "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
      quote(user.name), fmt::join(groups, " "), describe(missing));
  if (!own.error.empty()) text += fmt::format("; resolution errors: [{}]", own.error);
  return text;
}

void refuse(const Target& target, const Object& object, const std::string& why) {
  throw StatusError::forbidden(kRbacGroup, target.resource->type.plural, object.name(), why);
}

void check_role(const Authorizer& authorizer, const User& user, const Target& target,
                const Object& object, const Object& old) {
  const std::string& plural = target.resource->type.plural;
  // A request that creates a role has no name, even if the object has one.
  if (may(authorizer, user, "escalate", target, plural, target.name)) return;
  const std::string excess = excess_of(authorizer, user, target.ns, rules_of(object));
  if (!excess.empty()) refuse(target, object, excess);
  if (!object["aggregationRule"].exists() && !old["aggregationRule"].exists()) return;
  const PolicyRules everything{{{"*"}, {"*"}, {"*"}}, {{"*"}, {}, {}, {}, {"*"}}};
  if (!excess_of(authorizer, user, target.ns, everything).empty())
    refuse(target, object, "must have cluster-admin privileges to use an aggregationRule");
}

void check_binding(const Authorizer& authorizer, const User& user, const Target& target,
                   const Object& object) {
  const bool in_namespace = object["roleRef"]["kind"].as_string() == "Role";
  const std::string name(object["roleRef"]["name"].as_string());
  const char* plural = in_namespace ? "roles" : "clusterroles";
  if (may(authorizer, user, "bind", target, plural, name)) return;
  const auto rules = authorizer.role(in_namespace ? target.ns : std::string(), name);
  if (!rules) throw StatusError::not_found(kRbacGroup, plural, name);
  const std::string excess = excess_of(authorizer, user, target.ns, *rules);
  if (!excess.empty()) refuse(target, object, excess);
}

}  // namespace

bool is_guarded(const resources::ServedResource& resource) {
  return resource.type.group == kRbacGroup;
}

void check_escalation(const Authorizer& authorizer, const User& user, const Target& target,
                      const Object& object, const Object& old) {
  const bool privileged =
      std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end();
  if (privileged || changes_owners_only(object, old)) return;
  if (object["roleRef"].exists()) {
    check_binding(authorizer, user, target, object);
  } else {
    check_role(authorizer, user, target, object, old);
  }
}

}  // namespace lookout::apiserver::auth
