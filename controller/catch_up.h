// catch_up(): waits until caches show earlier writes of others.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "controller/cache_core.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::controller::detail {

/// Waits until the caches of these kinds show everything that the server has stored at the time of the
/// call: lists their metadata and waits for missing changes. Ignores caches without a complete list.
/// Ends early at a stop, and after `timeout` with a warning that names the late caches. Does not throw.
Awaitable<void> catch_up(std::shared_ptr<const CacheCore> cache,
                         std::vector<std::shared_ptr<const CachedKind>> kinds,
                         std::chrono::milliseconds timeout, std::stop_token stop);

}  // namespace lookout::controller::detail
