#include "lookout/tools/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>

#include "lookout/api/status.h"
#include "lookout/rest/error.h"
#include "lookout/testing/fake_clock.h"

namespace lookout::retry {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void conflict() { throw api::StatusError::conflict("", "tests", "other", "newer"); }

TEST(RetryOnConflictTest, GivesUpAfterTheLastAttempt) {
  int calls = 0;
  const Policy three{.attempts = 3, .pause = 0ms};
  EXPECT_THROW(on_conflict(
                   [&] {
                     ++calls;
                     conflict();
                   },
                   three),
               api::StatusError);
  EXPECT_EQ(calls, 3);
}

TEST(RetryOnConflictTest, SuccessAndOtherErrorsAreReturnedAtOnce) {
  int calls = 0;
  on_conflict([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(on_conflict([&] {
                 ++calls;
                 throw std::runtime_error("some other error");
               }),
               std::runtime_error);
  EXPECT_EQ(calls, 2);
  EXPECT_THROW(on_conflict([&] {
                 ++calls;
                 throw rest::TransportError(rest::TransportError::Kind::kCancelled, "cancelled");
               }),
               rest::TransportError);
  EXPECT_EQ(calls, 3);
}

TEST(RetryOnConflictTest, RetriesUntilItSucceeds) {
  int calls = 0;
  const Policy three{.attempts = 3, .pause = 0ms};
  on_conflict(
      [&] {
        if (++calls < 3) conflict();
      },
      three);
  EXPECT_EQ(calls, 3);
}

TEST(RetryOnConflictTest, AStopEndsThePause) {
  int calls = 0;
  std::stop_source stop;
  stop.request_stop();
  const Policy slow{.attempts = 5, .pause = 1h};
  EXPECT_THROW(on_conflict(
                   [&] {
                     ++calls;
                     conflict();
                   },
                   slow, stop.get_token()),
               api::StatusError);
  EXPECT_EQ(calls, 1);
}

TEST(RetryOnConflictTest, PausesGrowByTheFactor) {
  EventLoop loop(1);
  const auto clock = std::make_shared<test::FakeClock>();
  clock->skip_sleeps_below(1h);
  Policy policy = kDefaultBackoff;
  policy.jitter = 0;
  int calls = 0;
  const auto attempt = [&]() -> Awaitable<void> {
    ++calls;
    conflict();
    co_return;
  };
  EXPECT_THROW(loop.run(async_on_conflict(attempt, policy, std::stop_token(), clock)),
               api::StatusError);
  EXPECT_EQ(calls, 4);
  EXPECT_THAT(clock->slept(), testing::ElementsAre(10ms, 50ms, 250ms));
}

TEST(RetryOnConflictTest, AStopEndsThePauseOfACoroutine) {
  EventLoop loop(1);
  const auto clock = std::make_shared<test::FakeClock>();
  std::stop_source stop;
  int calls = 0;
  const auto attempt = [&]() -> Awaitable<void> {
    ++calls;
    stop.request_stop();
    conflict();
    co_return;
  };
  EXPECT_THROW(loop.run(async_on_conflict(attempt, kDefaultBackoff, stop.get_token(), clock)),
               api::StatusError);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lookout::retry
