// How long a server asks to wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>

#include "lookout/api/status.h"
#include "lookout/base/clock.h"

namespace lookout::cache {

/// No Retry-After of a server keeps a watch waiting longer.
inline constexpr std::chrono::minutes kLongestWait{2};

/// The time that the server asks to wait, within reason; 0 if it does not ask.
inline Clock::Duration wait_asked_for(const std::exception& e) {
  const auto asked = api::suggests_client_delay(e);
  return asked ? std::min<Clock::Duration>(*asked, kLongestWait) : Clock::Duration{};
}

}  // namespace lookout::cache
