// Authorizer: decides what a user may do.
#pragma once

#include <optional>
#include <string>

#include "apiserver/auth/policy_rule.h"
#include "apiserver/auth/user.h"

namespace lookout::apiserver::auth {

struct Decision {
  bool allowed = false;
  /// kube-apiserver's reason, or empty: the binding that allows the action, or the roles that are
  /// missing.
  std::string reason = {};
};

/// Safe to use from many threads.
class Authorizer {
 public:
  virtual ~Authorizer() = default;

  virtual Decision authorize(const User& user, const Attributes& action) const = 0;

  struct Rules {
    PolicyRules rules = {};
    /// The missing roles of bindings, with kube-apiserver's message.
    std::string error = {};
  };
  /// The rules that apply to a user in a namespace, or in the whole cluster if it is empty.
  virtual Rules rules_for(const User& user, const std::string& ns) const = 0;

  /// The rules of a Role, or of a ClusterRole if `ns` is empty; nullopt if there is none.
  virtual std::optional<PolicyRules> role(const std::string& ns, const std::string& name) const = 0;
};

/// Allows everything to authenticated users, and health checks and the version to all users.
class AllowAuthenticated : public Authorizer {
 public:
  Decision authorize(const User& user, const Attributes& action) const override;
  Rules rules_for(const User& user, const std::string& ns) const override;
  std::optional<PolicyRules> role(const std::string& /*ns*/,
                                  const std::string& /*name*/) const override {
    return std::nullopt;
  }
};

}  // namespace lookout::apiserver::auth
