#include "tools/cache/retry_with_deadline.h"

#include <gtest/gtest.h>

#include "lookout/api/status.h"
#include "lookout/testing/fake_clock.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;

class RetryWithDeadlineTest : public testing::Test {
 protected:
  RetryWithDeadline retry(Clock::Duration deadline) {
    return {deadline, 30s, api::is_internal_error, clock_};
  }
  bool after(RetryWithDeadline& retry, Clock::Duration step, const std::exception& error) {
    clock_->advance(step);
    retry.failed(error);
    return retry.should_retry();
  }

  const api::StatusError internal_ = api::StatusError::internal_error("no leader");
  const api::StatusError other_ = api::StatusError::bad_request("what?");
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
};

TEST_F(RetryWithDeadlineTest, NeverWithoutADeadline) {
  auto never = retry(0s);
  EXPECT_FALSE(never.should_retry());
  EXPECT_FALSE(after(never, 1s, internal_));
  EXPECT_FALSE(after(never, 0s, internal_));
}

TEST_F(RetryWithDeadlineTest, UntilTheDeadline) {
  auto second = retry(1s);
  EXPECT_TRUE(after(second, 1s, internal_));
  EXPECT_TRUE(after(second, 1s, internal_));
  EXPECT_FALSE(after(second, 1ns, internal_));
  EXPECT_TRUE(after(second, 1ns, internal_)) << "what comes next is a first one again";
}

TEST_F(RetryWithDeadlineTest, OtherFailuresDoNotCount) {
  auto second = retry(1s);
  EXPECT_FALSE(after(second, 0s, other_));
  EXPECT_TRUE(after(second, 5s, internal_));
  EXPECT_TRUE(after(second, 500ms, other_));
  EXPECT_TRUE(after(second, 500ms, internal_));
  EXPECT_FALSE(after(second, 1ms, internal_));
}

TEST_F(RetryWithDeadlineTest, AQuietTimeBeginsItAnew) {
  auto minute = retry(60s);
  EXPECT_TRUE(after(minute, 0s, internal_));
  EXPECT_TRUE(after(minute, 29s, internal_));
  EXPECT_TRUE(after(minute, 29s, internal_));
  EXPECT_FALSE(after(minute, 29s, internal_));
  EXPECT_TRUE(after(minute, 0s, internal_));
  EXPECT_TRUE(after(minute, 30s, internal_));
  EXPECT_TRUE(after(minute, 59s, internal_)) << "30 quiet seconds were enough";
}

}  // namespace
}  // namespace lookout::cache
