// The wait that a server requests (Retry-After).
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>

#include "lookout/api/status.h"
#include "lookout/base/clock.h"

namespace lookout::cache {

/// The longest Retry-After that a watch respects.
inline constexpr std::chrono::minutes kLongestWait{2};

/// The requested wait, at most kLongestWait; 0 if there is none.
inline Clock::Duration wait_asked_for(const std::exception& e) {
  const auto asked = api::suggests_client_delay(e);
  return asked ? std::min<Clock::Duration>(*asked, kLongestWait) : Clock::Duration{};
}

}  // namespace lookout::cache
