// run_on(): a coroutine on another executor, for a coroutine that waits for it.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "lookout/base/event_loop.h"

namespace lookout::detail {

/// Runs `task` on `executor` (one thread, or a strand), whatever the waiting coroutine runs on. When
/// Asio cancels that one, it cancels the task, too, at any time.
///
/// co_spawn() with use_awaitable, but safe: before Boost 1.84 that posts a pointer to a signal that
/// the waiting coroutine owns. If the task ends meanwhile, the signal is gone
/// (chriskohlhoff/asio#1332).
Awaitable<void> run_on_void(boost::asio::any_io_executor executor, Awaitable<void> task);

template <class T>
Awaitable<void> keep_result(Awaitable<T> task, std::shared_ptr<std::optional<T>> result) {
  result->emplace(co_await std::move(task));
}

template <class T>
Awaitable<T> run_on(boost::asio::any_io_executor executor, Awaitable<T> task) {
  if constexpr (std::is_void_v<T>) {
    co_await run_on_void(std::move(executor), std::move(task));
  } else {
    // Both may outlive the other.
    const auto result = std::make_shared<std::optional<T>>();
    co_await run_on_void(std::move(executor), keep_result(std::move(task), result));
    co_return *std::move(*result);
  }
}

}  // namespace lookout::detail
