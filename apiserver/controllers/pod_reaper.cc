
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/watch_events.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/time.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;
using resources::is_deleting;
using resources::Target;

/// Terminating pods.
storage::Predicate being_deleted() {
  storage::FieldRequirement requirement;
  requirement.read = [](const Object& pod, std::string& /*scratch*/) -> std::string_view {
    return is_deleting(pod) ? "yes" : "";
  };
  requirement.value = "yes";
  storage::Predicate predicate;
  predicate.fields.push_back(std::move(requirement));
  return predicate;
}

struct DoomedPod {
  std::string ns;
  std::string name;
  std::string uid;
};

/// The delay for pods without a grace period: their delete request removes them itself, unless it
/// fails.
constexpr std::chrono::seconds kPatience{2};
/// The delay before a retry after a storage error.
constexpr std::chrono::seconds kRetryRemoval{1};
/// A deletionTimestamp has whole seconds, so the grace period may end up to a second later.
constexpr std::chrono::seconds kCutOff{1};

/// When the grace period of a pod ends, on the steady clock.
std::chrono::steady_clock::time_point end_of(const Object& pod) {
  const auto now = std::chrono::system_clock::now();
  const auto end = api::parse_time(pod["metadata"]["deletionTimestamp"].as_string())
                       .value_or(std::chrono::time_point_cast<std::chrono::microseconds>(now));
  const bool has_grace = pod["metadata"]["deletionGracePeriodSeconds"].as_int() > 0;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(end - now) +
         (has_grace ? kCutOff : kPatience);
}

/// False if the pod may still exist.
Awaitable<bool> remove(Context context, resources::ServedResourcePtr pods, DoomedPod pod) {
  resources::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.preconditions.uid = pod.uid;
  Target target{pods, pod.ns, pod.name};
  try {
    co_await context.store.remove(std::move(target), std::move(options));
  } catch (const api::StatusError& e) {
    // The pod was removed concurrently.
    if (api::is_not_found(e) || api::is_conflict(e)) co_return true;
    log::warn("cannot remove pod {}/{}: {}", pod.ns, pod.name, e.what());
    co_return false;
  }
  co_return true;
}

/// True if the watch has expired and a new one must continue.
Awaitable<bool> reap(Context context, resources::ServedResourcePtr pods) {
  storage::WatchOptions options;
  options.predicate = being_deleted();
  const auto watch = co_await pods->storage->watch("", true, std::move(options));
  std::multimap<std::chrono::steady_clock::time_point, DoomedPod> doomed;
  std::vector<storage::Event> events;
  const auto next = [&] {
    return doomed.empty() ? storage::Watch::TimePoint::max() : doomed.begin()->first;
  };
  for (;;) {
    const bool more = co_await watch->next(events, next());
    if (!events.empty() && fell_behind(events.back())) co_return true;
    if (!more) co_return false;
    for (const storage::Event& event : events) {
      if (event.type == api::EventType::kDeleted) continue;
      DoomedPod pod{std::string(event.object.ns()), std::string(event.object.name()),
                    std::string(event.object.uid())};
      doomed.emplace(end_of(event.object), std::move(pod));
    }
    while (!doomed.empty() && doomed.begin()->first <= std::chrono::steady_clock::now()) {
      DoomedPod pod = std::move(doomed.begin()->second);
      doomed.erase(doomed.begin());
      DoomedPod same = pod;
      const bool removed = co_await remove(context, pods, std::move(same));
      if (!removed)
        doomed.emplace(std::chrono::steady_clock::now() + kRetryRemoval, std::move(pod));
    }
  }
}

}  // namespace

Awaitable<void> run_pod_reaper(Context context) {
  const auto pods = context.resources.table()->find("", "v1", "pods");
  for (bool again = true; again;) {
    resources::ServedResourcePtr same = pods;
    again = co_await reap(context, std::move(same));
  }
}

}  // namespace lookout::apiserver::controllers
