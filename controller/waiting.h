// Waits of coroutines.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::controller::detail {

/// Until `event` is requested.
inline Awaitable<void> wait_for(std::shared_ptr<Clock> clock, std::stop_token event) {
  while (!event.stop_requested()) co_await clock->sleep(std::chrono::hours(24), event);
}

/// The same until a deadline; false if that came first.
inline Awaitable<bool> wait_until(std::shared_ptr<Clock> clock, std::stop_token event,
                                  Clock::TimePoint deadline) {
  while (!event.stop_requested()) {
    const auto now = clock->now();
    if (now >= deadline) co_return false;
    co_await clock->sleep(deadline - now, event);
  }
  co_return true;
}

/// Runs a function that may block on a thread of its own, and throws what it throws.
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

}  // namespace lookout::controller::detail
