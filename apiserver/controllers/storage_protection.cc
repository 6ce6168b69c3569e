
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/finalizers.h"
#include "apiserver/controllers/watch_events.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;
using resources::is_deleting;
using resources::Target;

/// How often somebody who is in use is looked at again.
constexpr std::chrono::seconds kPause{1};

storage::Predicate waiting_for(std::string finalizer) {
  storage::FieldRequirement requirement;
  requirement.read = [finalizer = std::move(finalizer)](const Object& object,
                                                        std::string&) -> std::string_view {
    return is_deleting(object) && has_finalizer(object, finalizer) ? "yes" : "";
  };
  requirement.value = "yes";
  storage::Predicate predicate;
  predicate.fields.push_back(std::move(requirement));
  return predicate;
}

/// Whether the claim was made for an ephemeral volume of the pod.
bool is_made_for(const Object& claim, const Object& pod) {
  for (const api::Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].as_bool()) return owner["uid"].as_string() == pod.uid();
  }
  return false;
}

/// As podUsesPVC of kube-controller-manager. A kubelet begins no pod with a claim that is being
/// deleted, so only pods that have a node count: until they are gone, whatever their phase.
bool uses(const Object& pod, const Object& claim) {
  if (pod["spec"]["nodeName"].as_string().empty()) return false;
  const api::Value grace = pod["metadata"]["deletionGracePeriodSeconds"];
  const bool shut_down = is_deleting(pod) && grace.exists() && grace.as_int() == 0;
  for (const api::Value volume : pod["spec"]["volumes"].elements()) {
    if (volume["persistentVolumeClaim"]["claimName"].as_string() == claim.name()) return true;
    if (shut_down || !volume["ephemeral"].exists()) continue;
    const std::string name = std::string(pod.name()).append("-").append(volume["name"].as_string());
    if (name == claim.name() && is_made_for(claim, pod)) return true;
  }
  return false;
}

Awaitable<bool> is_in_use(Context context, const Object& object) {
  if (object.ns().empty()) co_return object["status"]["phase"].as_string() == "Bound";
  const auto pods = context.resources.table()->find("", "v1", "pods");
  storage::ListOptions options;
  storage::ListResult list =
      co_await pods->storage->list(std::string(object.ns()) + "/", true, std::move(options));
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, 100);
    if (!more) break;
    for (const Object& pod : some) {
      if (uses(pod, object)) co_return true;
    }
  }
  co_return false;
}

/// True if the object may be there still.
Awaitable<bool> let_go(Context context, resources::ServedResourcePtr resource, Object object,
                       std::string finalizer) {
  const bool in_use = co_await is_in_use(context, object);
  if (in_use) co_return true;
  Target target{resource, std::string(object.ns()), std::string(object.name())};
  storage::Preconditions same;
  same.uid = std::string(object.uid());
  resources::Store::Change change = [finalizer](const Object& present) {
    return present ? without_finalizer(present, finalizer) : present;
  };
  try {
    co_await context.store.update(std::move(target), std::move(change), resources::Part::kMain,
                                  std::move(same));
  } catch (const api::StatusError& e) {
    if (api::is_not_found(e) || api::is_conflict(e)) co_return false;
    log::warn("cannot remove the finalizer of {} {}: {}", resource->type.kind, object.key(),
              e.what());
    co_return true;
  }
  co_return false;
}

/// True if the watch fell behind, and another one has to go on.
Awaitable<bool> protect(Context context, resources::ServedResourcePtr resource,
                        std::string finalizer) {
  storage::WatchOptions options;
  options.predicate = waiting_for(finalizer);
  const auto watch = co_await resource->storage->watch("", true, std::move(options));
  std::map<std::string, Object> waiting;
  std::vector<storage::Event> events;
  const auto next = [&] {
    return waiting.empty() ? storage::Watch::TimePoint::max()
                           : std::chrono::steady_clock::now() + kPause;
  };
  for (;;) {
    const bool more = co_await watch->next(events, next());
    if (!events.empty() && fell_behind(events.back())) co_return true;
    if (!more) co_return false;
    for (const storage::Event& event : events) {
      const std::string key(event.object.key());
      if (event.type == api::EventType::kDeleted) {
        waiting.erase(key);
      } else {
        waiting.insert_or_assign(key, event.object);
      }
    }
    const std::map<std::string, Object> now = waiting;
    for (const auto& [key, object] : now) {
      resources::ServedResourcePtr same = resource;
      Object one = object;
      std::string name = finalizer;
      const bool stays = co_await let_go(context, std::move(same), std::move(one), std::move(name));
      if (!stays) waiting.erase(key);
    }
  }
}

Awaitable<void> run(Context context, std::string plural, std::string finalizer) {
  const auto resource = context.resources.table()->find("", "v1", plural);
  for (bool again = true; again;) {
    resources::ServedResourcePtr same = resource;
    std::string name = finalizer;
    again = co_await protect(context, std::move(same), std::move(name));
  }
}

}  // namespace

Awaitable<void> run_claim_protection(Context context) {
  return run(context, "persistentvolumeclaims", "kubernetes.io/pvc-protection");
}

Awaitable<void> run_volume_protection(Context context) {
  return run(context, "persistentvolumes", "kubernetes.io/pv-protection");
}

}  // namespace lookout::apiserver::controllers
