#include "lookout/base/sleep.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

namespace lookout {
namespace {

using namespace std::chrono_literals;

TEST(SleepFor, EndsWhenTheTimeHasPassed) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(lookout::sleep_for(20ms, {}));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_TRUE(lookout::sleep_for(0ms, {}));
  EXPECT_TRUE(lookout::sleep_for(-1s, {}));
}

// A wait that ignored the stop would exceed the time limit of the tests.
TEST(SleepFor, EndsWhenAStopIsRequested) {
  std::stop_source stop;
  std::jthread other([&] {
    lookout::sleep_for(20ms, {});
    stop.request_stop();
  });
  EXPECT_FALSE(lookout::sleep_for(24h, stop.get_token()));
  EXPECT_FALSE(lookout::sleep_for(24h, stop.get_token()));
}

TEST(SleepFor, AcceptsTheLongestDuration) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(lookout::sleep_for(Clock::Duration::max(), stop.get_token()));
}

}  // namespace
}  // namespace lookout
