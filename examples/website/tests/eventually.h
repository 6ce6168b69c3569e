// Waits for the effects of a controller.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace website {

/// Polls until `condition` holds; false after a minute.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace website
