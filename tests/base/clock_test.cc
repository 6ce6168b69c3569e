#include "lookout/base/clock.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/bounded_wait.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, TheRealClockIsTheSteadyClock) {
  const auto before = std::chrono::steady_clock::now();
  const auto now = Clock::real()->now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, std::chrono::steady_clock::now());
}

TEST(ClockTest, SleepsAtLeastThatLong) {
  EventLoop loop(1);
  const auto clock = Clock::real();
  const auto begin = clock->now();
  EXPECT_TRUE(loop.run(clock->sleep(5ms, {})));
  EXPECT_GE(clock->now() - begin, 5ms);
  EXPECT_TRUE(loop.run(clock->sleep(0ms, {})));
  EXPECT_TRUE(loop.run(clock->sleep(-1h, {})));
}

TEST(ClockTest, AStopEndsASleep) {
  EventLoop loop(1);
  const auto clock = Clock::real();
  std::stop_source stop;
  auto sleep =
      std::async(std::launch::async, [&] { return loop.run(clock->sleep(24h, stop.get_token())); });
  stop.request_stop();
  EXPECT_FALSE(lookout::test::get(sleep));
  EXPECT_FALSE(loop.run(clock->sleep(24h, stop.get_token()))) << "one that came before, too";
}

TEST(ClockTest, ManySleepsCanBeStoppedAtOnce) {
  EventLoop loop(2);
  const auto clock = Clock::real();
  for (int round = 0; round < 50; ++round) {
    std::stop_source stop;
    std::vector<std::future<bool>> sleeps;
    for (int i = 0; i < 4; ++i) {
      sleeps.push_back(std::async(std::launch::async,
                                  [&] { return loop.run(clock->sleep(24h, stop.get_token())); }));
    }
    stop.request_stop();
    for (auto& sleep : sleeps) EXPECT_FALSE(lookout::test::get(sleep));
  }
}

}  // namespace
}  // namespace lookout
