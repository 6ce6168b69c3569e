// Asking a server until something is so.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace lookout::cmd {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// Calls `is_done` at once and then again and again, with pauses that grow to a second, until it returns
/// true. Returns false if it still does not at the deadline.
template <class IsDone>
bool poll_until(const Deadline& deadline, IsDone is_done) {
  constexpr std::chrono::milliseconds kFirst{50};
  constexpr std::chrono::milliseconds kLongest{1000};
  for (std::chrono::milliseconds pause = kFirst;; pause = std::min(2 * pause, kLongest)) {
    if (is_done()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (deadline && now >= *deadline) return false;
    std::this_thread::sleep_until(deadline ? std::min(*deadline, now + pause) : now + pause);
  }
}

}  // namespace lookout::cmd
