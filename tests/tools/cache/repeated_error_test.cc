#include "lookout/tools/cache/detail/repeated_error.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/base/error.h"
#include "lookout/testing/fake_clock.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;

class RepeatedErrorTest : public testing::Test {
 protected:
  bool repeats(const std::string& text) { return logged_.repeats(Error(text)); }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  RepeatedError logged_{clock_};
};

TEST_F(RepeatedErrorTest, TheSameErrorIsARepetitionForHalfAMinute) {
  EXPECT_FALSE(repeats("no route"));
  EXPECT_TRUE(repeats("no route"));
  clock_->advance(kLogAgain - 1ns);
  EXPECT_TRUE(repeats("no route"));
  clock_->advance(1ns);
  EXPECT_FALSE(repeats("no route"));
  EXPECT_TRUE(repeats("no route"));
}

TEST_F(RepeatedErrorTest, AnotherErrorIsNoRepetition) {
  EXPECT_FALSE(repeats("no route"));
  EXPECT_FALSE(repeats("connection refused"));
  EXPECT_FALSE(repeats("no route"));
}

TEST_F(RepeatedErrorTest, QueriesAndDurationsAreIgnored) {
  EXPECT_FALSE(
      repeats("GET http://a:1/pods?watch=true&timeoutSeconds=465: connect failed after 0 ms: no"));
  EXPECT_TRUE(
      repeats("GET http://a:1/pods?watch=true&timeoutSeconds=584: connect failed after 12 ms: no"));
  EXPECT_TRUE(repeats("GET http://a:1/pods: connect failed after 3 ms: no"));
  EXPECT_TRUE(repeats("GET http://a:1/pods?limit=500: connect failed after 3 ms: no"));
}

TEST_F(RepeatedErrorTest, AnotherMessageOrPathIsAnotherError) {
  EXPECT_FALSE(repeats("GET http://a:1/pods?watch=true: connection refused"));
  EXPECT_FALSE(repeats("GET http://a:1/pods?watch=true: timed out"));
  EXPECT_FALSE(repeats("GET http://a:1/nodes?watch=true: timed out"));
  EXPECT_FALSE(repeats("GET http://a:1/nodes?watch=true"));
  EXPECT_TRUE(repeats("GET http://a:1/nodes?watch=true"));
  EXPECT_FALSE(repeats("closed after"));
  EXPECT_FALSE(repeats(""));
}

}  // namespace
}  // namespace lookout::cache
