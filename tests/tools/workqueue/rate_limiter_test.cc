#include "lookout/tools/workqueue/rate_limiter.h"

#include <gtest/gtest.h>

#include "lookout/testing/fake_clock.h"

namespace lookout::workqueue {
namespace {

using namespace std::chrono_literals;

TEST(RateLimiterTest, ExponentialDoublesForEachItem) {
  ItemExponentialFailureRateLimiter<std::string> limiter(1ms, 1s);
  for (const auto wait : {1ms, 2ms, 4ms, 8ms, 16ms}) EXPECT_EQ(limiter.when("one"), wait);
  EXPECT_EQ(limiter.num_requeues("one"), 5);
  for (const auto wait : {1ms, 2ms}) EXPECT_EQ(limiter.when("two"), wait);
  EXPECT_EQ(limiter.num_requeues("two"), 2);
  limiter.forget("one");
  EXPECT_EQ(limiter.num_requeues("one"), 0);
  EXPECT_EQ(limiter.when("one"), 1ms);
}

TEST(RateLimiterTest, ExponentialOfZeroIsZero) {
  ItemExponentialFailureRateLimiter<std::string> limiter(0s, 1h);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(limiter.when("a"), 0s) << i;
}

TEST(RateLimiterTest, ExponentialIsLimited) {
  ItemExponentialFailureRateLimiter<std::string> limiter(1ms, 1000s);
  for (int i = 0; i < 5; ++i) limiter.when("one");
  EXPECT_EQ(limiter.when("one"), 32ms);
  for (int i = 0; i < 10'000; ++i) {
    const auto wait = limiter.when("overflow");
    EXPECT_LE(wait, 1000s);
    EXPECT_GT(wait, 0s);
  }
  EXPECT_EQ(limiter.when("overflow"), 1000s);
  ItemExponentialFailureRateLimiter<std::string> minutes(1min, 24h);
  for (int i = 0; i < 2; ++i) minutes.when("two");
  EXPECT_EQ(minutes.when("two"), 4min);
}

/// Expects an item to wait 5 ms three times, and `slow` from then on until it is forgotten.
void expect_fast_then_slow(RateLimiter<std::string>& limiter, Clock::Duration slow) {
  for (const auto wait :
       {Clock::Duration(5ms), Clock::Duration(5ms), Clock::Duration(5ms), slow, slow})
    EXPECT_EQ(limiter.when("one"), wait);
  EXPECT_EQ(limiter.num_requeues("one"), 5);
  EXPECT_EQ(limiter.when("two"), 5ms);
  limiter.forget("one");
  EXPECT_EQ(limiter.num_requeues("one"), 0);
}

TEST(RateLimiterTest, FastSlowIsFastAFewTimes) {
  ItemFastSlowRateLimiter<std::string> limiter(5ms, 10s, 3);
  expect_fast_then_slow(limiter, 10s);
  EXPECT_EQ(limiter.when("one"), 5ms);
}

TEST(RateLimiterTest, ABucketIsSharedByAllItems) {
  const auto clock = std::make_shared<test::FakeClock>();
  BucketRateLimiter<std::string> limiter(10, 3, clock);
  for (const char* item : {"a", "b", "c"}) EXPECT_EQ(limiter.when(item), 0s);
  EXPECT_EQ(limiter.when("a"), 100ms);
  EXPECT_EQ(limiter.when("b"), 200ms) << "what is promised is gone";
  clock->advance(200ms);
  EXPECT_EQ(limiter.when("c"), 100ms);
  clock->advance(1h);
  for (const char* item : {"a", "b", "c"}) EXPECT_EQ(limiter.when(item), 0s);
  EXPECT_EQ(limiter.when("a"), 100ms) << "it holds no more than fits in";
  EXPECT_EQ(limiter.num_requeues("a"), 0);
  limiter.forget("a");
}

TEST(RateLimiterTest, ABucketThatIsNeverFilledReturnsAVeryLongDelay) {
  BucketRateLimiter<std::string> limiter(0, 1);
  EXPECT_EQ(limiter.when("a"), 0s);
  EXPECT_GE(limiter.when("a"), 24h);
}

TEST(RateLimiterTest, MaxOfReturnsTheLongestDelay) {
  using Limiters = std::vector<std::shared_ptr<RateLimiter<std::string>>>;
  MaxOfRateLimiter<std::string> limiter(
      Limiters{std::make_shared<ItemFastSlowRateLimiter<std::string>>(5ms, 3s, 3),
               std::make_shared<ItemExponentialFailureRateLimiter<std::string>>(1ms, 1s)});
  expect_fast_then_slow(limiter, 3s);
}

TEST(RateLimiterTest, MaxOfAcceptsAnyLimiters) {
  const auto limiter = std::make_shared<MaxOfRateLimiter<std::string>>(
      std::make_shared<ItemFastSlowRateLimiter<std::string>>(5ms, 3s, 3),
      std::make_shared<ItemExponentialFailureRateLimiter<std::string>>(1ms, 1s));
  expect_fast_then_slow(*limiter, 3s);
}

TEST(RateLimiterTest, NoDelayExceedsItsMaximum) {
  WithMaxWaitRateLimiter<std::string> limiter(
      std::make_shared<ItemExponentialFailureRateLimiter<std::string>>(1s, 1000s), 3s);
  for (const auto wait : {1s, 2s, 3s, 3s}) EXPECT_EQ(limiter.when("one"), wait);
  EXPECT_EQ(limiter.num_requeues("one"), 4);
  limiter.forget("one");
  EXPECT_EQ(limiter.when("one"), 1s);
}

TEST(RateLimiterTest, HasADefaultForControllers) {
  const auto clock = std::make_shared<test::FakeClock>();
  const auto limiter = default_controller_rate_limiter<std::string>(clock);
  EXPECT_EQ(limiter->when("one"), 5ms);
  EXPECT_EQ(limiter->when("one"), 10ms);
  for (int i = 0; i < 98; ++i) EXPECT_EQ(limiter->when(std::to_string(i)), 5ms);
  EXPECT_EQ(limiter->when("much"), 100ms) << "a hundred at once, then ten a second";
}

}  // namespace
}  // namespace lookout::workqueue
