// A user's test program, for the tests of `lookout sim`.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "lookout/testing/sim/gtest.h"

namespace {

using namespace std::chrono_literals;

LOOKOUT_SIM_TEST(GoodWorlds, Rest, {.seeds = 2}) { world.run(1s); }

LOOKOUT_SIM_TEST(UnluckyWorlds, FailNowAndThen, {.seeds = 2}) {
  if (world.seed() % 7 == 6) world.fail("it is an unlucky one");
  world.run(1s);
}

LOOKOUT_SIM_TEST(BrokenWorlds, AlwaysFail, {.seeds = 2}) {
  world.fail("nothing works");
  world.run(1s);
}

LOOKOUT_SIM_TEST(CrashingWorlds, EndTheProgram, {.seeds = 2}) {
  if (world.seed() == 3) {
    std::fprintf(stderr, "sim: seed 3: the last words\n");
    std::abort();
  }
  world.run(1s);
}

LOOKOUT_SIM_TEST(ExitingWorlds, EndTheProgram, {.seeds = 2}) {
  if (world.seed() == 3) std::exit(0);
  world.run(1s);
}

TEST(OtherTest, HasNoWorlds) { FAIL() << "not to be run for seeds"; }

}  // namespace
