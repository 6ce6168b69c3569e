// Waiting until caches show what others had written before.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "controller/cache_core.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::controller::detail {

/// Ends when the caches of these kinds show everything that the server had stored when it was
/// called: it lists their metadata, as of now, and waits for what is missing. Caches that have no
/// complete list yet are left out. Ends early at a stop, and after `timeout` with a warning that
/// names the late caches. Throws nothing.
Awaitable<void> catch_up(std::shared_ptr<const CacheCore> cache,
                         std::vector<std::shared_ptr<const CachedKind>> kinds,
                         std::chrono::milliseconds timeout, std::stop_token stop);

}  // namespace lookout::controller::detail
