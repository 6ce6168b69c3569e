#include "lookout/testing/fake_clock.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <optional>

namespace lookout::test {
namespace {

using namespace std::chrono_literals;

class FakeClockTest : public testing::Test {
 protected:
  /// Starts a sleep; returns its result.
  std::shared_ptr<std::optional<bool>> sleep(Clock::Duration duration) {
    auto result = std::make_shared<std::optional<bool>>();
    boost::asio::co_spawn(boost::asio::make_strand(context_),
                          clock_->sleep(duration, stop_.get_token()),
                          [result](std::exception_ptr, bool passed) { *result = passed; });
    settle();
    return result;
  }
  void settle() {
    context_.restart();
    context_.poll();
  }
  void advance(Clock::Duration duration) {
    clock_->advance(duration);
    settle();
  }

  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::stop_source stop_;
  boost::asio::io_context context_;  // destroyed first, with pending sleeps
};

TEST_F(FakeClockTest, StandsStillUntilItIsMoved) {
  const auto begin = clock_->now();
  EXPECT_EQ(clock_->now(), begin);
  clock_->advance(5s);
  EXPECT_EQ(clock_->now(), begin + 5s);
}

TEST_F(FakeClockTest, WakesSleepersThatAreDue) {
  const auto soon = sleep(1s);
  const auto late = sleep(3s);
  EXPECT_EQ(clock_->sleepers(), 2u);
  EXPECT_EQ(clock_->next_wake(), 1s);
  advance(1s - 1ns);
  EXPECT_EQ(*soon, std::nullopt);
  advance(1ns);
  EXPECT_EQ(*soon, true);
  EXPECT_EQ(*late, std::nullopt);
  EXPECT_EQ(clock_->next_wake(), 2s);
  advance(1h);
  EXPECT_EQ(*late, true);
  EXPECT_EQ(clock_->next_wake(), std::nullopt);
  EXPECT_EQ(clock_->slept(), (std::vector<Clock::Duration>{1s, 3s}));
}

TEST_F(FakeClockTest, AStopEndsASleep) {
  const auto sleeping = sleep(1h);
  stop_.request_stop();
  settle();
  EXPECT_EQ(*sleeping, false);
  EXPECT_EQ(clock_->sleepers(), 0u);
}

TEST_F(FakeClockTest, MaySkipShortSleeps) {
  clock_->skip_sleeps_below(10s);
  const auto begin = clock_->now();
  EXPECT_EQ(*sleep(9s), true);
  EXPECT_EQ(clock_->now(), begin + 9s) << "time has passed";
  EXPECT_EQ(*sleep(10s), std::nullopt);
}

TEST_F(FakeClockTest, ASkippedSleepWakesSleepersThatAreDue) {
  const auto sleeping = sleep(10s);
  clock_->skip_sleeps_below(1min);
  EXPECT_EQ(*sleep(30s), true);
  settle();
  EXPECT_EQ(*sleeping, true);
  EXPECT_EQ(clock_->sleepers(), 0u);
}

TEST_F(FakeClockTest, ASleepMayHaveNoEnd) {
  const auto sleeping = sleep(Clock::Duration::max());
  advance(24h);
  EXPECT_EQ(*sleeping, std::nullopt);
  EXPECT_GT(clock_->next_wake(), 24h);
  advance(Clock::Duration::max());
  EXPECT_EQ(clock_->now(), Clock::TimePoint::max());
  EXPECT_EQ(*sleeping, true);
}

}  // namespace
}  // namespace lookout::test
