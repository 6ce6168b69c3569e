// A fleet on one machine: servers that register, use real sockets and leave in several ways, and
// callers that count failed calls. `lookout bench fleet` is the same at a larger scale.
#include "cmd/bench/fleet/fleet.h"

#include <gtest/gtest.h>

#include "lookout/api/error.h"
#include "tests/support/sanitizers.h"

namespace lookout::cmd::bench::fleet {
namespace {

using namespace std::chrono_literals;

class FleetTest : public testing::Test {
 protected:
  Outcome run(const char* fault) {
    Fleet fleet(options_);
    const Outcome out =
        fleet.under_load([&](Outcome& outcome) { fault_of(fault).run(fleet, outcome); });
    EXPECT_EQ(fleet.instances().size(), options_.instances) << "as before";
    EXPECT_GT(out.tally.calls, 20u);
    EXPECT_LE(out.tally.failed, out.may_fail);
    EXPECT_TRUE(out.holds());
    return out;
  }

  FleetOptions options_{.instances = 4,
                        .callers = 3,
                        .rate = 300,
                        .duration = 500ms,
                        .outage = 500ms,
                        // Far longer than a response takes on a busy machine.
                        .per_try = 20s,
                        .waves = 2,
                        .faulty = 1};
};

TEST_F(FleetTest, ARollingUpdateFailsNoCall) {
  const Outcome out = run("rolling");
  EXPECT_EQ(out.tally.failed, 0u);
  if (!lookout::test::kSanitized) {
    EXPECT_EQ(out.further_attempts(), 0u) << "nor a second attempt";
  }
}

TEST_F(FleetTest, ADrainFailsNoCall) { EXPECT_EQ(run("drain").tally.failed, 0u); }

TEST_F(FleetTest, AKilledInstanceCostsFewAttempts) {
  const Outcome out = run("kill");
  EXPECT_GE(out.further_attempts(), 1u);
  // Three in a row eject it, with each caller; on a busy machine others break off, too.
  EXPECT_LE(out.further_attempts(), 6 * options_.callers);
}

TEST_F(FleetTest, AFrozenInstanceCostsEachCallerOneAttempt) {
  options_.per_try = 2s;
  const Outcome out = run("freeze");
  EXPECT_EQ(out.tally.failed, 0u);
  EXPECT_EQ(out.worst_timeouts(), 1u);
  EXPECT_LE(out.further_attempts(), options_.callers);
}

TEST_F(FleetTest, ASlowInstanceFailsNoCall) { EXPECT_EQ(run("slow").tally.failed, 0u); }

TEST_F(FleetTest, AFailingInstanceCostsFewAttempts) {
  for (const char* fault : {"error", "reset"}) {
    const Outcome out = run(fault);
    EXPECT_EQ(out.tally.failed, 0u) << fault;
    EXPECT_GE(out.further_attempts(), 1u) << fault;
    // Three in a row eject it, with each caller; on a busy machine others break off, too.
    EXPECT_LE(out.further_attempts(), 6 * options_.callers) << fault;
  }
}

TEST_F(FleetTest, FlappingReadinessFailsNoCall) {
  const Outcome out = run("flap");
  EXPECT_EQ(out.tally.failed, 0u);
  EXPECT_EQ(out.further_attempts(), 0u);
}

TEST_F(FleetTest, AnOutageOfTheServerFailsNoCall) {
  const Outcome out = run("outage");
  EXPECT_EQ(out.tally.failed, 0u);
  EXPECT_EQ(out.further_attempts(), 0u);
}

TEST_F(FleetTest, TheComparisonFailsCalls) {
  options_.policies = Policies::kKratos;
  Fleet fleet(options_);
  const Outcome out =
      fleet.under_load([&](Outcome& outcome) { fault_of("kill").run(fleet, outcome); });
  EXPECT_EQ(out.further_attempts(), 0u);
  EXPECT_GT(out.tally.failed, out.may_fail) << "it goes on picking what was killed";
  EXPECT_FALSE(out.holds());
}

TEST_F(FleetTest, RejectsUnknownFaults) { EXPECT_THROW(fault_of("rain"), Error); }

}  // namespace
}  // namespace lookout::cmd::bench::fleet
