// sleep_for(): a blocking sleep that can be stopped.
#pragma once

#include <chrono>
#include <stop_token>

#include "lookout/base/clock.h"

namespace lookout {

/// Blocks the calling thread for the given time, or until a stop is requested; returns true if the
/// time has passed. Coroutines use Clock::sleep().
///
///     while (lookout::sleep_for(30s, stop)) report();
bool sleep_for(Clock::Duration duration, std::stop_token stop);

}  // namespace lookout
