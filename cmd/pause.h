// A wait that can be stopped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace lookout::cmd {

/// Waits until that time, or until a stop is requested.
inline void pause_until(const std::stop_token& stop, std::chrono::steady_clock::time_point time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, time, [] { return false; });
}

}  // namespace lookout::cmd
