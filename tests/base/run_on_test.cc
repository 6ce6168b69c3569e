#include "lookout/base/detail/run_on.h"

#include <gtest/gtest.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace lookout {
namespace {

namespace asio = boost::asio;
using detail::run_on;

Awaitable<bool> cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  co_return state.cancelled() != asio::cancellation_type::none;
}

asio::any_io_executor any(asio::io_context& context) { return context.get_executor(); }

/// Yields, and returns whether it was cancelled in the meantime. Move-only.
Awaitable<std::unique_ptr<bool>> look_around() {
  co_await asio::this_coro::throw_if_cancelled(false);
  for (int i = 0; i < 3; ++i) co_await asio::post(asio::use_awaitable);
  const bool was = co_await cancelled();
  co_return std::make_unique<bool>(was);
}

Awaitable<void> fail() {
  co_await asio::post(asio::use_awaitable);
  throw std::runtime_error("failed");
}

/// Two contexts that run under a test's control.
class RunOnTest : public testing::Test {
 protected:
  using Waiter = std::function<Awaitable<void>()>;

  /// Starts a coroutine on the waiters' context.
  void start(Waiter waiter) {
    waiter_ = std::move(waiter);  // the coroutine's frame refers to it
    asio::co_spawn(waiters_, waiter_(),
                   asio::bind_cancellation_slot(
                       signal_.slot(), [this](const std::exception_ptr&) { ended_ = true; }));
    run(waiters_);
  }
  /// Cancels the waiter when its context runs.
  void cancel_soon() {
    asio::post(waiters_, [this] { signal_.emit(asio::cancellation_type::terminal); });
  }
  static bool run(asio::io_context& context) {
    context.restart();
    return context.poll() > 0;
  }
  void run_all() {
    for (bool more = true; more;) {
      const bool ran = run(tasks_);
      more = run(waiters_) || ran;
    }
  }

  Waiter waiter_;
  asio::cancellation_signal signal_;
  asio::io_context waiters_;
  asio::io_context tasks_;
  bool ended_ = false;
};

TEST_F(RunOnTest, ReturnsTheResultToTheWaitersContext) {
  std::optional<bool> was_cancelled;
  bool threw = false;
  bool here = false;
  start([&]() -> Awaitable<void> {
    const auto result = co_await run_on(any(tasks_), look_around());
    was_cancelled = *result;
    try {
      co_await run_on(any(tasks_), fail());
    } catch (const std::runtime_error&) {
      threw = true;
    }
    here = waiters_.get_executor().running_in_this_thread();
  });
  EXPECT_FALSE(was_cancelled) << "the task runs on its own context";
  run_all();
  EXPECT_EQ(was_cancelled, false);
  EXPECT_TRUE(threw);
  EXPECT_TRUE(here);
  EXPECT_TRUE(ended_);
}

TEST_F(RunOnTest, CancelsTheTaskWithTheWaiter) {
  std::optional<bool> was_cancelled;
  start([&]() -> Awaitable<void> {
    const auto result = co_await run_on(any(tasks_), look_around());
    was_cancelled = *result;
  });
  cancel_soon();
  run(waiters_);
  run_all();
  EXPECT_EQ(was_cancelled, true);
}

// The second wait reuses the memory of the first one.
TEST_F(RunOnTest, ACancellationAfterTheEndIsIgnored) {
  bool first_ended = false;
  std::optional<bool> second_cancelled;
  start([&]() -> Awaitable<void> {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await run_on(any(tasks_), look_around());
    first_ended = true;
    const auto result = co_await run_on(any(tasks_), look_around());
    second_cancelled = *result;
  });
  cancel_soon();
  run(tasks_);  // the end of the task is queued after the cancellation
  EXPECT_FALSE(first_ended);
  run(waiters_);
  EXPECT_TRUE(first_ended);
  run_all();
  EXPECT_EQ(second_cancelled, false);
}

TEST_F(RunOnTest, CountsAsWorkOfTheWaitersContext) {
  start([&]() -> Awaitable<void> { co_await run_on(any(tasks_), look_around()); });
  EXPECT_FALSE(waiters_.stopped());
  run_all();
  EXPECT_TRUE(waiters_.stopped());
}

TEST_F(RunOnTest, ADroppedTaskDestroysItsWaiter) {
  auto tasks = std::make_unique<asio::io_context>();
  const auto held = std::make_shared<int>(0);
  start([&]() -> Awaitable<void> {
    const auto copy = held;
    co_await run_on(any(*tasks), look_around());
  });
  EXPECT_EQ(held.use_count(), 2);
  tasks.reset();
  run(waiters_);
  EXPECT_EQ(held.use_count(), 1);
}

Awaitable<void> sleep_for(std::chrono::microseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

TEST(RunOnRaceTest, ATaskMayEndDuringItsCancellation) {
  using namespace asio::experimental::awaitable_operators;
  constexpr int kRounds = 2000;
  EventLoop loop(2);
  const auto race = [](EventLoop& on) -> Awaitable<int> {
    int rounds = 0;
    for (; rounds < kRounds; ++rounds) {
      const auto strand = asio::make_strand(on.context());
      co_await (run_on(asio::any_io_executor(strand), sleep_for(std::chrono::microseconds(100))) ||
                sleep_for(std::chrono::microseconds(97 + rounds % 7)));
    }
    co_return rounds;
  };
  EXPECT_EQ(loop.run(race(loop)), kRounds);
}

}  // namespace
}  // namespace lookout
