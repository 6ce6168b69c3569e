#include "apiserver/auth/role_follower.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::auth {
namespace {

std::string key_of(const resources::ServedResource& resource, const api::Object& object) {
  const std::string name(object.name());
  return resource.type.namespaced ? std::string(object.ns()) + "/" + name : name;
}

}  // namespace

RoleFollower::RoleFollower(const resources::ResourceRegistry& resources, RbacAuthorizer& authorizer)
    : followed_{{{RbacKind::kRole, resources.table()->find(kRbacGroup, "v1", "roles")},
                 {RbacKind::kClusterRole,
                  resources.table()->find(kRbacGroup, "v1", "clusterroles")},
                 {RbacKind::kRoleBinding,
                  resources.table()->find(kRbacGroup, "v1", "rolebindings")},
                 {RbacKind::kClusterRoleBinding,
                  resources.table()->find(kRbacGroup, "v1", "clusterrolebindings")}}},
      authorizer_(authorizer) {}

Awaitable<void> RoleFollower::load() {
  for (const Followed& one : followed_) {
    storage::ListOptions options;
    storage::ListResult list = co_await one.resource->storage->list("", true, std::move(options));
    const std::vector<api::Object> all = co_await storage::read_all(std::move(list));
    for (const api::Object& object : all) authorizer_.put(one.kind, object);
  }
}

Awaitable<void> RoleFollower::follow(RbacKind kind) {
  const Followed& one = followed_[static_cast<std::size_t>(kind)];
  storage::WatchOptions options;
  options.initial_events_end = true;
  const auto watch = co_await one.resource->storage->watch("", true, std::move(options));
  // A previous watch may have missed deletions: remove objects that are not in the state.
  std::unordered_set<std::string> state;
  bool complete = false;
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, storage::Watch::TimePoint::max());
    for (const storage::Event& event : events) {
      if (event.type == api::EventType::kBookmark) {
        if (!complete && event.initial_events_end)
          authorizer_.keep_only(kind, state, event.revision);
        complete = complete || event.initial_events_end;
      } else if (event.type == api::EventType::kDeleted) {
        authorizer_.remove(kind, event.object);
      } else if (event.type != api::EventType::kError) {
        if (!complete) state.insert(key_of(*one.resource, event.object));
        authorizer_.put(kind, event.object);
      }
    }
  }
}

const RoleFollower::Followed* RoleFollower::find(const resources::ServedResource& resource) const {
  if (resource.type.group != kRbacGroup) return nullptr;
  const auto found = std::find_if(followed_.begin(), followed_.end(), [&](const Followed& one) {
    return one.resource->type.plural == resource.type.plural;
  });
  return found == followed_.end() ? nullptr : found;
}

void RoleFollower::written(const resources::ServedResource& resource, const api::Object& object) {
  if (const Followed* one = find(resource)) authorizer_.put(one->kind, object);
}

void RoleFollower::removed(const resources::ServedResource& resource, const api::Object& object) {
  if (const Followed* one = find(resource)) authorizer_.remove(one->kind, object);
}

}  // namespace lookout::apiserver::auth
