// Helpers for waiting coroutines.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "lookout/base/clock.h"
#include "lookout/base/detail/tolerant_clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::controller::detail {

/// The end of a time limit. Limits that no clock can represent become ten years.
inline Clock::TimePoint end_of(std::chrono::milliseconds limit, Clock::TimePoint now) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365 * 10);
  return now + std::clamp(limit, std::chrono::milliseconds(0), kLongest);
}

/// A time limit for caches and sources; as in controller-runtime, 0 means the default.
inline std::chrono::milliseconds sync_limit(std::chrono::milliseconds given) {
  return given == std::chrono::milliseconds(0) ? std::chrono::minutes(2) : given;
}

using lookout::detail::wait_for;

/// wait_for() with a deadline; returns false if it came first.
inline Awaitable<bool> wait_until(std::shared_ptr<Clock> clock, std::stop_token event,
                                  Clock::TimePoint deadline) {
  while (!event.stop_requested()) {
    const auto now = clock->now();
    if (now >= deadline) co_return false;
    co_await clock->sleep(deadline - now, event);
  }
  co_return true;
}

/// Runs `task` to its end. If Asio cancels the caller, only calls `on_cancel` (if set), because unwinding
/// would abandon work that the task has started.
Awaitable<void> uncancelled(Awaitable<void> task, std::function<void()> on_cancel = {});

/// The same for a task with a stop token: a cancellation requests its stop.
Awaitable<void> cancel_as_stop(std::function<Awaitable<void>(std::stop_token)> run,
                               std::stop_token stop);

/// Runs a blocking function on its own thread and rethrows its exceptions.
inline Awaitable<void> on_thread(std::shared_ptr<Clock> clock, std::function<void()> function) {
  std::stop_source returned;
  std::exception_ptr error;
  {
    const std::jthread thread([&] {
      try {
        function();
      } catch (...) {
        error = std::current_exception();
      }
      returned.request_stop();
    });
    co_await wait_for(clock, returned.get_token());
  }
  if (error) std::rethrow_exception(error);
}

/// Runs `work` on several threads until all have returned. If a thread cannot be created, calls `give_up`,
/// after which `work` must return, and throws.
template <class Thread = std::jthread>
void run_on_threads(unsigned count, const std::function<void()>& work,
                    const std::function<void()>& give_up) {
  std::vector<Thread> threads;
  threads.reserve(count);
  try {
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (...) {
    give_up();
    throw;
  }
}

}  // namespace lookout::controller::detail
