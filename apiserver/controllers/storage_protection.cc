
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

/// How often to check an object that is in use.
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

/// Whether the claim belongs to an ephemeral volume of the pod.
bool is_made_for(const Object& claim, const Object& pod) {
  for (const api::Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].as_bool()) return owner["uid"].as_string() == pod.uid();
  }
  return false;
}

/// Like podUsesPVC of kube-controller-manager. A kubelet starts no pod with a terminating claim, so
/// only scheduled pods use a claim, until they are deleted, in any phase.
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

/// Whether `matches` is true of an object under the prefix.
template <class Matches>
Awaitable<bool> any_of(Context context, std::string plural, std::string prefix, Matches matches) {
  const auto resource = context.resources.table()->find("", "v1", plural);
  storage::ListOptions options;
  storage::ListResult list =
      co_await resource->storage->list(std::move(prefix), true, std::move(options));
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, 100);
    if (!more) co_return false;
    if (std::any_of(some.begin(), some.end(), matches)) co_return true;
  }
}

/// Whether a volume or a claim requests or uses the class.
bool names_class(const Object& object, std::string_view name) {
  const api::Value status = object["status"];
  return object["spec"]["volumeAttributesClassName"].as_string() == name ||
         status["currentVolumeAttributesClassName"].as_string() == name ||
         status["modifyVolumeStatus"]["targetVolumeAttributesClassName"].as_string() == name;
}

Awaitable<bool> is_in_use(Context context, std::string plural, Object object) {
  if (plural == "persistentvolumes") co_return object["status"]["phase"].as_string() == "Bound";
  if (plural == "persistentvolumeclaims") {
    std::string prefix = std::string(object.ns()) + "/";
    const auto uses_it = [&](const Object& pod) { return uses(pod, object); };
    co_return co_await any_of(context, "pods", std::move(prefix), uses_it);
  }
  const auto names_it = [&](const Object& one) { return names_class(one, object.name()); };
  for (const char* users : {"persistentvolumeclaims", "persistentvolumes"}) {
    std::string of(users);
    std::string everywhere;
    const bool used = co_await any_of(context, std::move(of), std::move(everywhere), names_it);
    if (used) co_return true;
  }
  co_return false;
}

/// Removes the finalizer unless the object is in use. Returns true if the object must be checked
/// again.
Awaitable<bool> let_go(Context context, resources::ServedResourcePtr resource, Object object,
                       std::string finalizer) {
  std::string plural = resource->type.plural;
  Object same_object = object;
  const bool in_use = co_await is_in_use(context, std::move(plural), std::move(same_object));
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

/// True if the watch has expired and a new one must continue.
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

Awaitable<void> run(Context context, std::string group, std::string plural, std::string finalizer) {
  const auto resource = context.resources.table()->find(group, "v1", plural);
  for (bool again = true; again;) {
    resources::ServedResourcePtr same = resource;
    std::string name = finalizer;
    again = co_await protect(context, std::move(same), std::move(name));
  }
}

}  // namespace

Awaitable<void> run_claim_protection(Context context) {
  return run(context, "", "persistentvolumeclaims", "kubernetes.io/pvc-protection");
}

Awaitable<void> run_volume_protection(Context context) {
  return run(context, "", "persistentvolumes", "kubernetes.io/pv-protection");
}

Awaitable<void> run_attributes_class_protection(Context context) {
  return run(context, "storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection");
}

}  // namespace lookout::apiserver::controllers
