// Runs coroutines concurrently.
#pragma once

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lookout/base/event_loop.h"

namespace lookout::apiserver::controllers {

/// A `limit` for many writes, each of which may be slow.
inline constexpr std::size_t kWritesAtOnce = 16;

/// Runs a coroutine for each of `count` items, at most `limit` concurrently, on this coroutine's
/// executor. Returns when all have ended. After an exception, starts no more, and rethrows the first
/// one. Forwards cancellation.
inline Awaitable<void> run_beside(std::size_t count, std::size_t limit,
                                  std::function<Awaitable<void>(std::size_t)> make) {
  struct Shared {
    std::size_t count;
    std::size_t next = 0;
    std::function<Awaitable<void>(std::size_t)> make;
  };
  const auto shared = std::make_shared<Shared>(Shared{count, 0, std::move(make)});
  const auto work = [](std::shared_ptr<Shared> all) -> Awaitable<void> {
    while (all->next < all->count) {
      try {
        co_await all->make(all->next++);
      } catch (...) {
        all->next = all->count;
        throw;
      }
    }
  };
  const auto executor = co_await boost::asio::this_coro::executor;
  using Operation = decltype(boost::asio::co_spawn(executor, work(shared), boost::asio::deferred));
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < std::min(count, limit); ++i)
    operations.push_back(boost::asio::co_spawn(executor, work(shared), boost::asio::deferred));
  if (operations.empty()) co_return;
  auto group = boost::asio::experimental::make_parallel_group(std::move(operations));
  const auto [order, failures] = co_await group.async_wait(
      boost::asio::experimental::wait_for_all(), boost::asio::use_awaitable);
  for (const std::size_t index : order) {
    if (failures[index]) std::rethrow_exception(failures[index]);
  }
}

}  // namespace lookout::apiserver::controllers
