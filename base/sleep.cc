#include "lookout/base/sleep.h"

#include <condition_variable>
#include <mutex>

namespace lookout {

bool sleep_for(Clock::Duration duration, std::stop_token stop) {
  // The wait ends at a time that must fit into a Duration.
  const auto end = std::chrono::steady_clock::now() + Clock::limited(duration);
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_until(lock, stop, end, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace lookout
