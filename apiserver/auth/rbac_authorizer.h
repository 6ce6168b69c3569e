// RbacAuthorizer: decides by roles and their bindings.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "apiserver/auth/authorizer.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::auth {

/// The kinds of objects that grant permissions.
enum class RbacKind { kRole, kClusterRole, kRoleBinding, kClusterRoleBinding };

/// Role-based access control (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac) over an index in
/// memory. Members of system:masters may do everything.
///
/// Changes may arrive more than once and in any order, from a watch and from the writing requests:
/// the newest state of an object wins, and deleted objects do not reappear.
class RbacAuthorizer : public Authorizer {
 public:
  Decision authorize(const User& user, const Attributes& action) const override;
  Rules rules_for(const User& user, const std::string& ns) const override;
  std::optional<PolicyRules> role(const std::string& ns, const std::string& name) const override;

  /// An object that was created or changed.
  void put(RbacKind kind, const api::Object& object);
  /// An object that was deleted.
  void remove(RbacKind kind, const api::Object& object);
  /// Sets the complete state of a kind at a revision: removes all objects whose keys
  /// ("namespace/name", or "name") are not in `keys`, unless they were written later.
  void keep_only(RbacKind kind, const std::unordered_set<std::string>& keys,
                 std::uint64_t revision);

 private:
  struct Identity {
    std::uint64_t revision = 0;
    std::string uid;
  };
  struct Role {
    Identity identity;
    PolicyRules rules;
  };
  struct Subject {
    std::string kind;
    std::string name;
    std::string ns;
  };
  struct Binding {
    Identity identity;
    std::string ns;
    std::string name;
    std::string role_kind;
    std::string role_name;
    std::vector<Subject> subjects;
  };
  /// Bindings by name.
  using Bindings = std::map<std::string_view, const Binding*>;
  /// Bindings of one namespace by subject: "u:ann", "g:dev".
  using Scope = std::unordered_map<std::string, Bindings>;

  /// Receives the rules of one binding; returns false to stop.
  using Visit = std::function<bool(const Binding& binding, const PolicyRules& rules)>;
  /// Visits the bindings that apply to a user. Returns the roles that are missing, as errors.
  std::vector<std::string> visit(const User& user, const std::string& ns, const Visit& visit) const;
  std::vector<const Binding*> bindings_of(const User& user, const std::string& scope) const;

  const Role* find_role(const std::string& kind, const std::string& ns,
                        const std::string& name) const;
  bool is_new(const Identity& present, const api::Object& object) const;
  void link(const Binding& binding);
  void unlink(const Binding& binding);
  void bury(const std::string& uid);
  void erase_binding(std::unordered_map<std::string, Binding>::iterator binding);

  static Identity identity_of(const api::Object& object);
  static std::string key_of_subject(const Subject& subject, const std::string& ns);
  static bool applies(const Subject& subject, const std::string& ns, const User& user);
  static std::string describe(const Binding& binding, const User& user);

  mutable std::shared_mutex mutex_;
  /// By key; all guarded by mutex_.
  std::unordered_map<std::string, Role> roles_;
  std::unordered_map<std::string, Role> cluster_roles_;
  std::unordered_map<std::string, Binding> bindings_;  // cluster-scoped ones have no '/' in the key
  std::unordered_map<std::string, Scope> scopes_;      // by namespace; "" is the cluster
  /// The uids of the last deleted objects.
  std::deque<std::string> buried_;
  std::unordered_set<std::string> dead_;
};

}  // namespace lookout::apiserver::auth
