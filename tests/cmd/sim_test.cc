// lookout sim.
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "cmd/sim/seeds.h"
#include "cmd/sim/test_program.h"
#include "tests/cmd/program.h"
#include "tests/support/sanitizers.h"

namespace lookout::cmd {
namespace {

using sim::parse_list;
using sim::parse_result;
using sim::parse_seeds;
using sim::Seeds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SimSeeds, AreANumberOrARange) {
  EXPECT_EQ(parse_seeds("100"), (Seeds{1, 100}));
  EXPECT_EQ(parse_seeds("5-7"), (Seeds{5, 7}));
  EXPECT_EQ(parse_seeds("5-"), Seeds{.first = 5});
  for (const char* wrong : {"", "0", "x", "-5", "7-5", "1-2-3", "5-x", "1.5"})
    EXPECT_FALSE(parse_seeds(wrong)) << wrong;
}

TEST(SimSeeds, AreSplitFromTheFront) {
  Seeds seeds{1, 5};
  EXPECT_EQ(seeds.take(3), (Seeds{1, 3}));
  EXPECT_EQ(seeds.take(3), (Seeds{4, 5}));
  EXPECT_TRUE(seeds.empty());
  EXPECT_EQ(seeds.count(), 0u);
  const std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  seeds = {last, last};
  EXPECT_EQ(seeds.take(50), (Seeds{last, last}));
  EXPECT_TRUE(seeds.empty()) << "there is none behind the largest number";
}

TEST(SimTestProgram, ListsItsTests) {
  EXPECT_THAT(parse_list("Running main() from gtest_main.cc\n"
                         "Worlds.\n  Rest\n  DISABLED_Work\n"
                         "P/Many.  # TypeParam = int\n  Each/0  # GetParam() = 1\n"),
              ElementsAre("Worlds.Rest", "Worlds.DISABLED_Work", "P/Many.Each/0"));
}

TEST(SimTestProgram, ReportsHowATestHasEnded) {
  const auto result = parse_result(
      R"({"testsuites": [{"testsuite": [{"worlds": "17", "requests": "400", "failures": [
          {"failure": "a/b.cc:12\nFailed\nW.T: seed 23: it broke\n", "type": ""}]}]}]})");
  EXPECT_TRUE(result.has_worlds);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.worlds, 17u);
  EXPECT_EQ(result.requests, 400u);
  EXPECT_EQ(result.report, "W.T: seed 23: it broke\n");
  EXPECT_EQ(result.seed, 23u);
  EXPECT_FALSE(parse_result("").passed);
  EXPECT_FALSE(parse_result(R"({"testsuites": []})").passed);
}

class Sim : public testing::Test {
 protected:
  test::ProgramResult sim(const std::vector<std::string>& arguments) const {
    return environment_.lookout({"sim", SIM_PROGRAM}, arguments);
  }
  test::ProgramEnvironment environment_;
};

TEST_F(Sim, RunsEachSeedOfEachWorldTest) {
  const std::string seeds = test::kSanitized ? "12" : "120";
  const auto result = sim({"--filter", "Good*:Other*", "--seeds", seeds, "--jobs", "2"});
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  EXPECT_THAT(result.output, AllOf(ContainsRegex("GoodWorlds.Rest +" + seeds + " +0 +0\n"),
                                   HasSubstr(seeds + " worlds in "), HasSubstr("all passed")));
  EXPECT_THAT(result.output, Not(HasSubstr("OtherTest")));
  EXPECT_EQ(result.errors, "");
}

TEST_F(Sim, EndsWithTheFirstFailureAndPrintsIt) {
  const auto result = sim({"--filter", "Unlucky*", "--jobs", "1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("UnluckyWorlds.FailNowAndThen: seed 6: it is an unlucky one"),
                    HasSubstr("LOOKOUT_SIM_SEED=6 " SIM_PROGRAM " --gtest_filter=Unlucky"),
                    HasSubstr("1 failed")));
  EXPECT_THAT(result.output, Not(HasSubstr("seed 13:")));
}

TEST_F(Sim, CountsFailuresWithKeepGoing) {
  const auto result = sim({"--filter", "Unlucky*", "--seeds", "30", "--keep-going"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("  seeds 6, 13, 20, 27\n"));
  EXPECT_THAT(result.output, ContainsRegex("FailNowAndThen +30 "));
}

TEST_F(Sim, RunsOtherSeeds) {
  const auto result = sim({"--filter", "Unlucky*", "--seeds", "7-12"});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, ContainsRegex("FailNowAndThen +6 "));
}

TEST_F(Sim, EndsAfterTheGivenTime) {
  const auto result = sim({"--filter", "Good*", "--for", "500ms"});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("all passed"));
}

// One process at a time, and no time for a second process.
TEST_F(Sim, ATestWithoutWorldsHasNotPassed) {
  const auto result = sim({"--filter", "Good*:Unlucky*", "--for", "1ms", "--jobs", "1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("UnluckyWorlds.FailNowAndThen was run"),
                                   HasSubstr("no world of"), Not(HasSubstr("all passed"))));
}

TEST_F(Sim, TriesATestThatFailsWithoutFaultsOnlyOnce) {
  const auto result = sim({"--filter", "Broken*", "--seeds", "1000", "--keep-going"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("without any fault: nothing works"),
                                   ContainsRegex("AlwaysFail +1 ")));
}

TEST_F(Sim, ShowsTheLastOutputOfACrashedProgram) {
  const auto result = sim({"--filter", "Crashing*", "--seeds", "10", "--keep-going"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("signal 6"), HasSubstr("sim: seed 3: the last words"),
                                   HasSubstr("  seeds 3\n")));
  // A single world runs in the program's process.
  const auto alone = sim({"--filter", "Crashing*", "--seeds", "3-3"});
  EXPECT_EQ(alone.status, 1);
  EXPECT_THAT(alone.output, AllOf(HasSubstr("signal 6"), HasSubstr("sim: seed 3: the last words"),
                                  HasSubstr("LOOKOUT_SIM_SEED=3 ")));
}

// exit(0) in the program's process must not look like a program without worlds.
TEST_F(Sim, AWorldThatEndsItsProgramFails) {
  for (const char* seeds : {"10", "3-3"}) {
    const auto result = sim({"--filter", "Exiting*", "--seeds", seeds, "--keep-going"});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.output, AllOf(HasSubstr("sim: seed 3: the world has called exit(0)"),
                                     HasSubstr("  seeds 3\n")))
        << result.errors;
  }
}

TEST_F(Sim, ReportsThatThereIsNothingToRun) {
  const auto none = sim({"--filter", "Nothing.*"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.errors, HasSubstr("has no test that passes the filter Nothing.*"));
  const auto other = sim({"--filter", "OtherTest.*"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.errors, HasSubstr("LOOKOUT_SIM_TEST"));
  const auto program = environment_.run(test::lookout_program(), {"sim", "/etc/hostname"});
  EXPECT_EQ(program.status, 1);
  EXPECT_THAT(program.errors, HasSubstr("does not list its tests"));
}

TEST_F(Sim, WrongUsageEndsWithStatus2) {
  EXPECT_EQ(sim({"--seeds", "some"}).status, 2);
  EXPECT_EQ(sim({"--for", "long"}).status, 2);
  EXPECT_EQ(sim({"--jobs", "0"}).status, 2);
  EXPECT_EQ(environment_.run(test::lookout_program(), {"sim"}).status, 2);
  EXPECT_EQ(environment_.run(test::lookout_program(), {"sim", "/none/test"}).status, 2);
}

TEST_F(Sim, HelpHasExamples) {
  const auto result = environment_.run(test::lookout_program(), {"sim", "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("Examples:\n  lookout sim "));
  for (const char* flag : {"--filter", "--seeds", "--for", "--jobs", "--keep-going"})
    EXPECT_THAT(result.output, HasSubstr(flag));
}

}  // namespace
}  // namespace lookout::cmd
