// EventLoop: pending work at the end of the loop.
#include "lookout/base/event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>

#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"

namespace lookout {
namespace {

namespace asio = boost::asio;

TEST(EventLoopTest, ReadyTasksRunBeforeTheEnd) {
  std::atomic<int> ran{0};
  auto loop = std::make_unique<EventLoop>(1);
  auto& context = loop->context();
  std::promise<void> started;
  asio::post(context, [&] {
    started.set_value();
    EXPECT_TRUE(test::eventually([&] { return context.stopped(); }));
    asio::post(context, [&] { asio::post(context, [&] { ++ran; }); });
  });
  test::get(started.get_future());
  asio::post(context, [&] { ++ran; });
  loop.reset();
  EXPECT_EQ(ran, 2);
}

TEST(EventLoopTest, ReadyTasksRunIfTheLoopEndsOnItsOwnThread) {
  std::promise<void> ran;
  test::Gate posted;
  auto loop = std::make_unique<EventLoop>(2);
  auto& context = loop->context();
  asio::post(context, [&ran, &posted, last = std::move(loop)]() mutable {
    EXPECT_TRUE(posted.wait());
    const auto executor = last->context().get_executor();
    last.reset();
    asio::post(executor, [&ran] { ran.set_value(); });
  });
  posted.open();
  test::get(ran.get_future());
}

TEST(EventLoopTest, RunReturnsTheResultOrThrowsTheError) {
  EventLoop loop(2);
  const auto twice = [](int n) -> Awaitable<int> {
    if (n < 0) throw std::out_of_range("too small");
    co_return 2 * n;
  };
  for (int i = 0; i < 200; ++i) EXPECT_EQ(loop.run(twice(i)), 2 * i);
  EXPECT_THROW(loop.run(twice(-1)), std::out_of_range);
}

TEST(EventLoopTest, RunThrowsIfItsTaskIsDropped) {
  auto loop = std::make_unique<EventLoop>(1);
  const auto forever = [](std::promise<void>& begun) -> Awaitable<void> {
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
    begun.set_value();
    co_await timer.async_wait(asio::use_awaitable);
  };
  std::promise<void> begun;
  auto waiting = std::async(std::launch::async, [&] { loop->run(forever(begun)); });
  test::get(begun.get_future());
  loop.reset();
  EXPECT_THROW(test::get(std::move(waiting)), std::future_error);
}

TEST(EventLoopTest, EndlessTasksDoNotBlockTheEnd) {
  auto loop = std::make_unique<EventLoop>(1);
  struct Again {
    asio::io_context& context;
    void operator()() const { asio::post(context, *this); }
  };
  asio::post(loop->context(), Again{loop->context()});
  loop.reset();
}

}  // namespace
}  // namespace lookout
