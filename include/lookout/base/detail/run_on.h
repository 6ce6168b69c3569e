// run_on(): runs a coroutine on another executor and waits for it.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "lookout/base/event_loop.h"

namespace lookout::detail {

/// Runs `task` on `executor` (one thread, or a strand); the caller may run on any executor. When
/// Asio cancels the caller, it also cancels the task.
///
/// A safe replacement for co_spawn() with use_awaitable. Before Boost 1.84, co_spawn() posts a
/// pointer to a cancellation signal that the caller owns; if the task ends meanwhile, the pointer
/// dangles (chriskohlhoff/asio#1332).
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
    // Either may outlive the other.
    const auto result = std::make_shared<std::optional<T>>();
    co_await run_on_void(std::move(executor), keep_result(std::move(task), result));
    co_return *std::move(*result);
  }
}

}  // namespace lookout::detail
