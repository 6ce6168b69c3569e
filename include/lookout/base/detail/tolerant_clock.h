// A clock of the program may throw: tolerant() makes it safe.
#pragma once

#include <memory>
#include <stop_token>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::detail {

/// The same clock, but one that does not throw: while it would, its time stands still, and its sleeps
/// are those of the machine's clock. Exceptions are logged. Otherwise they would end the threads and
/// the coroutines that ask for the time. Null: the machine's clock.
std::shared_ptr<Clock> tolerant(std::shared_ptr<Clock> clock);

/// Waits until `event` is requested, also if the clock throws: the caller may own what still runs, such
/// as a thread.
Awaitable<void> wait_for(std::shared_ptr<Clock> clock, std::stop_token event);

}  // namespace lookout::detail
