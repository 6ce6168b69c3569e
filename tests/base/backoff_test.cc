#include "lookout/base/backoff.h"

#include <gtest/gtest.h>

#include <set>

#include "lookout/testing/fake_clock.h"
#include "tests/support/matchers.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using testing::Ge;
using testing::Le;

class BackoffTest : public testing::Test {
 protected:
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
};

TEST_F(BackoffTest, DoublesUpToALimit) {
  BackoffOptions options;
  options.jitter = 0;
  Backoff backoff(options, clock_);
  for (const auto expected : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms})
    EXPECT_EQ(backoff.next(), expected);
}

TEST_F(BackoffTest, JitterMakesItLonger) {
  Backoff backoff({}, clock_);
  std::set<Clock::Duration> seen;
  for (int i = 0; i < 100; ++i) {
    backoff.reset();
    const auto wait = backoff.next();
    EXPECT_THAT(wait, AllOf(Ge(800ms), Le(1600ms)));
    seen.insert(wait);
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST_F(BackoffTest, AcceptsAnyParameters) {
  BackoffOptions options;
  options.initial = 10ms;
  options.max = 50ms;
  options.factor = 3;
  options.jitter = 0;
  Backoff backoff(options, clock_);
  for (const auto expected : {10ms, 30ms, 50ms, 50ms}) EXPECT_EQ(backoff.next(), expected);
}

TEST_F(BackoffTest, AnUnreachableLimitIsNoLimit) {
  BackoffOptions options;
  options.jitter = 0;
  options.max = std::chrono::milliseconds::max();
  options.reset_after = std::chrono::milliseconds::max();
  Backoff backoff(options, clock_);
  for (const auto expected : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 51200ms}) {
    EXPECT_EQ(backoff.next(), expected);
    clock_->advance(1h);
  }
}

TEST_F(BackoffTest, ResetsAfterAQuietTime) {
  BackoffOptions options;
  options.jitter = 0;
  Backoff backoff(options, clock_);
  for (int i = 0; i < 5; ++i) backoff.next();
  clock_->advance(120s);
  EXPECT_EQ(backoff.next(), 25600ms) << "not yet";
  clock_->advance(120s + 1ms);
  EXPECT_EQ(backoff.next(), 800ms);
}

TEST_F(BackoffTest, RegularCallsAreNoQuietTime) {
  BackoffOptions options;
  options.jitter = 0;
  Backoff backoff(options, clock_);
  for (const auto expected : {800ms, 1600ms, 3200ms, 6400ms}) {
    clock_->advance(100s);
    EXPECT_EQ(backoff.next(), expected);
  }
}

TEST_F(BackoffTest, ResetsOnRequest) {
  BackoffOptions options;
  options.jitter = 0;
  Backoff backoff(options, clock_);
  for (int i = 0; i < 5; ++i) backoff.next();
  backoff.reset();
  EXPECT_EQ(backoff.next(), 800ms);
}

}  // namespace
}  // namespace lookout
