#include "lookout/base/signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "tests/support/gate.h"

namespace lookout {
namespace {

TEST(StopOnSignalsTest, TheSecondSignalExitsWhileAStopCallbackBlocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto stop = stop_on_signals();
        test::Gate stopping;
        const std::stop_callback blocks(stop, [&] {
          stopping.open();
          std::this_thread::sleep_for(std::chrono::minutes(1));
        });
        std::raise(SIGTERM);
        if (!stopping.wait()) std::_Exit(4);
        std::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::seconds(30));
        std::_Exit(6);
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace lookout
