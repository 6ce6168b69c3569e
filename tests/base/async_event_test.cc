#include "lookout/base/async_event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/bounded_wait.h"

namespace lookout {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// A coroutine that waits until a flag is set.
struct Gate {
  explicit Gate(EventLoop& loop) : event(asio::make_strand(loop.context())) {}

  std::future<void> pass(SteadyClock::time_point until = SteadyClock::time_point::max()) {
    auto passed = std::make_shared<std::promise<void>>();
    auto future = passed->get_future();
    asio::co_spawn(event.executor(), run(passed, until), asio::detached);
    return future;
  }

  Awaitable<void> run(std::shared_ptr<std::promise<void>> passed, SteadyClock::time_point until) {
    while (!open && SteadyClock::now() < until) {
      ++waits;
      co_await event.wait(until);
    }
    passed->set_value();
  }

  AsyncEvent event;
  std::atomic<bool> open{false};
  std::atomic<int> waits{0};
};

TEST(AsyncEventTest, AnyThreadWakesTheWaiter) {
  EventLoop loop(2);
  for (int round = 0; round < 200; ++round) {
    Gate gate(loop);
    auto passed = gate.pass();
    gate.open = true;
    gate.event.ring();
    test::get(passed);
  }
}

TEST(AsyncEventTest, CodeOnTheLoopWakesTheWaiter) {
  EventLoop loop(2);
  for (const bool here : {true, false}) {
    Gate gate(loop);
    auto passed = gate.pass();
    asio::post(gate.event.executor(), [&] {
      gate.open = true;
      here ? gate.event.ring_here() : gate.event.ring_next();
    });
    test::get(passed);
  }
}

Awaitable<void> wait_and_note(AsyncEvent event, int number, std::vector<int>& order) {
  co_await event.wait();
  order.push_back(number);
}

TEST(AsyncEventTest, EventsWakeTheirWaitersInTheOrderOfRings) {
  constexpr int kEvents = 100;
  asio::io_context context(1);
  std::vector<AsyncEvent> events;
  std::vector<int> order;
  std::vector<int> expected;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kEvents; ++i) {
      events.emplace_back(context.get_executor());
      asio::co_spawn(context, wait_and_note(events.back(), i, order), asio::detached);
    }
    context.restart();
    context.poll();
    EXPECT_TRUE(order.empty());
    std::thread other([&] {
      for (int i = kEvents; i-- > 0;) {
        events[static_cast<std::size_t>(i)].ring();
        expected.push_back(i);
      }
    });
    other.join();
    EXPECT_TRUE(order.empty()) << "they wake on their own thread";
    context.restart();
    context.poll();
    EXPECT_EQ(order, expected);
    events.clear();
    order.clear();
    expected.clear();
  }
}

Awaitable<void> ring_twice(AsyncEvent event, AsyncEvent other, int& rounds) {
  for (; rounds < 2; ++rounds) {
    other.ring();
    co_await event.wait();
  }
}

TEST(AsyncEventTest, AWaiterThatWakesMayRingOthers) {
  asio::io_context context(1);
  const AsyncEvent a(context.get_executor());
  const AsyncEvent b(context.get_executor());
  int rounds_of_a = 0;
  int rounds_of_b = 0;
  asio::co_spawn(context, ring_twice(a, b, rounds_of_a), asio::detached);
  asio::co_spawn(context, ring_twice(b, a, rounds_of_b), asio::detached);
  context.poll();
  EXPECT_EQ(rounds_of_a, 2);
  EXPECT_EQ(rounds_of_b, 2);
}

TEST(AsyncEventTest, ARingWithoutAWaiterIsLost) {
  EventLoop loop(1);
  Gate gate(loop);
  std::promise<void> rung;
  asio::post(gate.event.executor(), [&] {
    gate.event.ring_here();
    rung.set_value();
  });
  test::get(rung.get_future());
  const auto begin = SteadyClock::now();
  auto passed = gate.pass(begin + 20ms);
  test::get(passed);
  EXPECT_GE(SteadyClock::now() - begin, 20ms);
  EXPECT_EQ(gate.waits, 1);
}

TEST(AsyncEventTest, AWaitEndsAtItsOwnTime) {
  EventLoop loop(1);
  AsyncEvent event(asio::make_strand(loop.context()));
  const auto wait = [&](SteadyClock::duration time) -> Awaitable<void> {
    co_await event.wait(SteadyClock::now() + time);
  };
  const auto on_executor = [&](Awaitable<void> task) {
    std::promise<void> done;
    asio::co_spawn(event.executor(), std::move(task),
                   [&done](const std::exception_ptr&) { done.set_value(); });
    test::get(done.get_future());
  };
  const auto rung = [&](SteadyClock::duration time) -> Awaitable<void> {
    asio::post(event.executor(), [&] { event.ring_here(); });
    co_await event.wait(SteadyClock::now() + time);
  };
  for (const auto& [left_over, time] :
       {std::pair<SteadyClock::duration, SteadyClock::duration>{1ms, 30ms},
        {1h, 10ms},
        {10ms, 10ms},
        {5ms, 0ms}}) {
    const auto begin = SteadyClock::now();
    on_executor(rung(left_over));
    EXPECT_LT(SteadyClock::now() - begin, 1h);
    const auto again = SteadyClock::now();
    on_executor(wait(time));
    EXPECT_GE(SteadyClock::now() - again, time);
  }
  on_executor(rung(1h));
  on_executor(wait(-1h));
}

TEST(AsyncEventTest, TheDestructorWakesTheWaiter) {
  EventLoop loop(1);
  std::optional<AsyncEvent> event(asio::make_strand(loop.context()));
  std::promise<void> done;
  asio::co_spawn(event->executor(), event->wait(),
                 [&done](const std::exception_ptr&) { done.set_value(); });
  asio::post(event->executor(), [&] { event.reset(); });
  test::get(done.get_future());
}

TEST(AsyncEventTest, CancellationEndsAWait) {
  using namespace asio::experimental::awaitable_operators;
  EventLoop loop(1);
  const auto first_of_both = [](SteadyClock::time_point until) -> Awaitable<std::size_t> {
    const auto executor = co_await asio::this_coro::executor;
    AsyncEvent event(executor);
    asio::steady_timer timer(executor, 5ms);
    const auto first = co_await (event.wait(until) || timer.async_wait(asio::use_awaitable));
    co_return first.index();
  };
  EXPECT_EQ(loop.run(first_of_both(SteadyClock::time_point::max())), 1u);
  EXPECT_EQ(loop.run(first_of_both(SteadyClock::now() + 1h)), 1u);
  EXPECT_EQ(loop.run(first_of_both(SteadyClock::now())), 0u);
}

struct Notes {
  std::atomic<int>& ended;
  ~Notes() { ++ended; }
};

Awaitable<void> wait_for_ever(AsyncEvent* others, std::atomic<int>& ended) {
  const Notes notes{ended};
  AsyncEvent own(co_await asio::this_coro::executor);
  AsyncEvent event = others != nullptr ? *others : own;
  co_await event.wait();
}

TEST(AsyncEventTest, TheEndOfTheLoopDropsWaiters) {
  std::atomic<int> ended{0};
  auto loop = std::make_optional<EventLoop>(1u);
  const auto executor = loop->context().get_executor();  // (A strand may not outlive its loop.)
  auto outlives = std::make_optional<AsyncEvent>(executor);
  for (AsyncEvent* event : {static_cast<AsyncEvent*>(nullptr), &*outlives})
    asio::co_spawn(executor, wait_for_ever(event, ended), asio::detached);
  std::promise<void> waiting;
  asio::post(executor, [&] { waiting.set_value(); });
  test::get(waiting.get_future());
  loop.reset();
  EXPECT_EQ(ended, 2);
  outlives.reset();
}

TEST(AsyncEventTest, TheEndOfTheLoopDropsRungWaiters) {
  std::atomic<int> ended{0};
  auto context = std::make_optional<asio::io_context>(1);
  AsyncEvent event(context->get_executor());
  asio::co_spawn(*context, wait_for_ever(&event, ended), asio::detached);
  context->poll();
  event.ring();
  context.reset();
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace lookout
