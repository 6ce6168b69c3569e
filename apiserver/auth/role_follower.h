// RoleFollower: updates an RbacAuthorizer from the roles and bindings in the storage.
#pragma once

#include <array>

#include "apiserver/auth/rbac_authorizer.h"
#include "apiserver/resources/resource_registry.h"

namespace lookout::apiserver::auth {

/// Safe to use from many threads.
class RoleFollower {
 public:
  /// Both must outlive it.
  RoleFollower(const resources::ResourceRegistry& resources, RbacAuthorizer& authorizer);

  /// Reads all roles and bindings.
  Awaitable<void> load();
  /// Follows the changes of one kind. Returns when the storage's watch ends.
  Awaitable<void> follow(RbacKind kind);

  /// Applies an object that a request has written or deleted, so that the next request is
  /// authorized with it. Does nothing for other resources.
  void written(const resources::ServedResource& resource, const api::Object& object);
  void removed(const resources::ServedResource& resource, const api::Object& object);

 private:
  struct Followed {
    RbacKind kind;
    resources::ServedResourcePtr resource;
  };
  const Followed* find(const resources::ServedResource& resource) const;

  const std::array<Followed, 4> followed_;
  RbacAuthorizer& authorizer_;
};

}  // namespace lookout::apiserver::auth
