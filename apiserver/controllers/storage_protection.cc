
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/finalizers.h"
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

bool uses(const Object& pod, std::string_view claim) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  if (phase == "Succeeded" || phase == "Failed") return false;
  for (const api::Value volume : pod["spec"]["volumes"].elements()) {
    if (volume["persistentVolumeClaim"]["claimName"].as_string() == claim) return true;
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
      if (uses(pod, object.name())) co_return true;
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
    if (!more) break;
    if (!events.empty() && events.back().type == api::EventType::kError) co_return true;
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
  co_return !events.empty() && events.back().type == api::EventType::kError;
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
