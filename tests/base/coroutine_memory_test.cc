// Coroutines that change threads, and the memory that Asio keeps for each thread
// (lookout/base/detail/asio.h).
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <future>

#include "lookout/base/event_loop.h"
#include "tests/support/bounded_wait.h"

namespace lookout {
namespace {

Awaitable<int> same(int n) { co_return n; }

/// Allocates and frees frames before and after it changes threads.
Awaitable<int> change_threads(int n) {
  const auto executor = co_await boost::asio::this_coro::executor;
  int sum = co_await same(n);
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
  sum += co_await same(n);
  co_return sum;
}

Awaitable<void> work(int rounds, std::atomic<long>& total) {
  for (int i = 0; i < rounds; ++i) {
    total += co_await change_threads(1);
    total += co_await same(1);
  }
}

// ThreadSanitizer reports a coroutine that uses the memory of the thread on which it started.
TEST(CoroutineMemoryTest, BelongsToTheThreadThatUsesIt) {
  constexpr int kCoroutines = 16;
  constexpr int kRounds = 200;
  std::atomic<long> total{0};
  std::atomic<int> left{kCoroutines};
  std::promise<void> done;
  std::future<void> ended = done.get_future();
  EventLoop loop(4);
  for (int i = 0; i < kCoroutines; ++i) {
    boost::asio::co_spawn(boost::asio::make_strand(loop.context()), work(kRounds, total),
                          [&](const std::exception_ptr&) {
                            if (--left == 0) done.set_value();
                          });
  }
  test::get(ended);
  EXPECT_EQ(total, kCoroutines * kRounds * 3);
}

}  // namespace
}  // namespace lookout
