#include "controller/hot_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::controller::detail {
namespace {

using namespace std::chrono_literals;

class HotLoopTest : public testing::Test {
 protected:
  bool run() { return detector_.note(request_, generation_, now_); }

  HotLoopDetector detector_{6};
  Request request_{"ns", std::string_view("a")};
  Clock::TimePoint now_{1h};
  std::optional<std::int64_t> found_ = 1;
  int looks_ = 0;
  const HotLoopDetector::Generation generation_ = [this] {
    ++looks_;
    return found_;
  };
};

TEST_F(HotLoopTest, ReadsTheObjectAfterHalfOfTheRuns) {
  EXPECT_FALSE(run());
  EXPECT_FALSE(run());
  EXPECT_EQ(looks_, 0);
  for (int i = 3; i < 6; ++i) EXPECT_FALSE(run()) << i;
  EXPECT_EQ(looks_, 3);
  EXPECT_TRUE(run());
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(run()) << "it is said once";
}

TEST_F(HotLoopTest, AChangeOfTheGenerationResetsTheCount) {
  for (int i = 0; i < 40; ++i) {
    found_ = i / 3;
    EXPECT_FALSE(run()) << i;
  }
}

TEST_F(HotLoopTest, AnAbsentObjectCountsAsUnchanged) {
  found_.reset();
  for (int i = 1; i < 6; ++i) EXPECT_FALSE(run()) << i;
  EXPECT_TRUE(run());
}

TEST_F(HotLoopTest, SlowRunsAreNoHotLoop) {
  for (int i = 0; i < 40; ++i, now_ += 250ms) EXPECT_FALSE(run()) << i;
  EXPECT_EQ(looks_, 20) << "the third and the fourth of each second";
}

TEST_F(HotLoopTest, ReportsAgainAfterAQuietMinute) {
  for (int i = 1; i < 6; ++i) EXPECT_FALSE(run()) << i;
  EXPECT_TRUE(run());
  now_ += 2min;
  for (int i = 1; i < 6; ++i) EXPECT_FALSE(run()) << i;
  EXPECT_TRUE(run());
}

TEST_F(HotLoopTest, IsNotReportedAgainBecauseOfManyOtherRequests) {
  for (int i = 1; i < 6; ++i) EXPECT_FALSE(run()) << i;
  EXPECT_TRUE(run());
  now_ += 2s;
  // More than the detector keeps without looking for old ones.
  for (int i = 0; i < 2000; ++i) {
    detector_.note(Request("ns", std::to_string(i)), generation_, now_);
  }
  for (int i = 1; i < 20; ++i) EXPECT_FALSE(run()) << i;
}

TEST(HotLoopLimitTest, OneRunMayBeEnough) {
  HotLoopDetector detector(1);
  const Request request("ns", std::string_view("a"));
  const auto generation = [] { return std::optional<std::int64_t>(1); };
  EXPECT_TRUE(detector.note(request, generation, Clock::TimePoint(1h)));
}

}  // namespace
}  // namespace lookout::controller::detail
