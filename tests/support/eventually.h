// Polling.
#pragma once

#include <chrono>
#include <thread>

namespace lookout::test {

/// Polls until `condition` holds; false after `time`. Prefer to wait for an event where there is
/// one.
template <class Condition>
bool eventually(Condition condition, std::chrono::seconds time = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace lookout::test
