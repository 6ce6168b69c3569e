// Calls a function after changes of a resource.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

/// Calls `react` when objects have changed, once for changes that arrive together. Returns when the
/// watch ends. `objects` must outlive it.
inline Awaitable<void> after_changes(Interface& objects, std::function<Awaitable<void>()> react) {
  WatchOptions options;
  const auto watch = co_await objects.watch("", true, std::move(options));
  std::vector<Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, Watch::TimePoint::max());
    if (!events.empty()) co_await react();
  }
}

}  // namespace lookout::apiserver::storage
