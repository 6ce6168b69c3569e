#include "lookout/base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include "lookout/base/detail/tolerant_clock.h"
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

/// A clock that throws as long as it is broken.
class BreakableClock : public Clock {
 public:
  TimePoint now() const override {
    if (broken_) throw std::runtime_error("no time");
    return TimePoint(1h);
  }
  Awaitable<bool> sleep(Duration, std::stop_token stop) override {
    if (broken_) throw 7;
    co_return !stop.stop_requested();
  }
  void set_broken(bool broken) { broken_ = broken; }

 private:
  std::atomic<bool> broken_{false};
};

TEST(TolerantClockTest, StandsStillWhileTheClockThrows) {
  const auto faulty = std::make_shared<BreakableClock>();
  const auto clock = detail::tolerant(faulty);
  EXPECT_EQ(clock->now(), Clock::TimePoint(1h));
  faulty->set_broken(true);
  EXPECT_EQ(clock->now(), Clock::TimePoint(1h));
}

TEST(TolerantClockTest, SleepsByTheMachinesClockWhileTheClockThrows) {
  EventLoop loop(1);
  const auto faulty = std::make_shared<BreakableClock>();
  const auto clock = detail::tolerant(faulty);
  EXPECT_TRUE(loop.run(clock->sleep(24h, {})));
  faulty->set_broken(true);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop.run(clock->sleep(5ms, {})));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
  std::stop_source stop;
  auto sleep =
      std::async(std::launch::async, [&] { return loop.run(clock->sleep(24h, stop.get_token())); });
  stop.request_stop();
  EXPECT_FALSE(lookout::test::get(sleep));
}

TEST(TolerantClockTest, NullIsTheMachinesClock) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_GE(detail::tolerant(nullptr)->now(), before);
}

}  // namespace
}  // namespace lookout
