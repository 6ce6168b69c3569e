// EventLoop: what its end does with the work that it has.
#include "lookout/base/event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>

#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"

namespace lookout {
namespace {

namespace asio = boost::asio;

TEST(EventLoopTest, WhatIsReadyRunsBeforeTheEnd) {
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

TEST(EventLoopTest, WhatIsReadyRunsWhenTheLoopEndsOnItsOwnThread) {
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

TEST(EventLoopTest, WorkThatMakesMoreWorkForEverDoesNotHoldUpTheEnd) {
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
