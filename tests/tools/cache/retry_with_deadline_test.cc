#include "tools/cache/retry_with_deadline.h"

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <memory>

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
  struct Failure {
    Clock::Duration after;
    const std::exception& error;
    bool is_retried;
  };
  /// Fails repeatedly, each time after the last failure.
  void expect_retries(Clock::Duration deadline, std::initializer_list<Failure> failures) {
    auto retry = this->retry(deadline);
    int number = 0;
    for (const Failure& failure : failures) {
      clock_->advance(failure.after);
      retry.failed(failure.error);
      EXPECT_EQ(retry.should_retry(), failure.is_retried) << number;
      ++number;
    }
  }

  const api::StatusError internal_ = api::StatusError::internal_error("no leader");
  const api::StatusError other_ = api::StatusError::bad_request("what?");
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
};

TEST_F(RetryWithDeadlineTest, DoesNotRetryWithoutADeadline) {
  EXPECT_FALSE(retry(0s).should_retry());
  expect_retries(0s, {{1s, internal_, false}, {0s, internal_, false}});
}

TEST_F(RetryWithDeadlineTest, RetriesUntilTheDeadline) {
  expect_retries(1s, {{1s, internal_, true},
                      {1s, internal_, true},
                      {1ns, internal_, false},
                      // The next failure is a first one again.
                      {1ns, internal_, true}});
}

TEST_F(RetryWithDeadlineTest, OtherErrorsAreNotRetried) {
  expect_retries(1s, {{0s, other_, false},
                      {5s, internal_, true},
                      {500ms, other_, true},
                      {500ms, internal_, true},
                      {1ms, internal_, false}});
}

TEST_F(RetryWithDeadlineTest, AQuietPeriodResetsTheDeadline) {
  expect_retries(60s, {{0s, internal_, true},
                       {29s, internal_, true},
                       {29s, internal_, true},
                       {29s, internal_, false},
                       {0s, internal_, true},
                       {30s, internal_, true},
                       // 30 quiet seconds are enough.
                       {59s, internal_, true}});
}

}  // namespace
}  // namespace lookout::cache
