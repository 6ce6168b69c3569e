// lookout demo.
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

using testing::ContainsRegex;

constexpr const char* kEvent =
    "[0-9:]{8} (ADDED|MODIFIED|DELETED) +(Pod|Deployment|Service) +shop/.*";

TEST(Demo, TellsOfTheWorkloadAndEndsWithACacheThatEqualsTheServer) {
  const test::ProgramEnvironment environment;
  const auto result = environment.run(test::lookout_program(), {"demo", "--for", "2s"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  const auto lines = test::lines(result.output);
  ASSERT_GT(lines.size(), 10u);
  EXPECT_THAT(lines[lines.size() - 4],
              MatchesRegex("The workload ran for [0-9.]+ s; the informers saw [0-9]+ events."));
  const char* const kinds[] = {"pods", "deployments", "services"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(lines[lines.size() - 3 + i],
                MatchesRegex("  " + std::string(kinds[i]) +
                             " +([0-9]+) in the cache, +([0-9]+) on the server: equal, byte by "
                             "byte"));
  }
  EXPECT_THAT(lines, testing::Contains(ContainsRegex(kEvent)));
  EXPECT_THAT(lines, testing::Contains(ContainsRegex("^[0-9:]{8} CACHE +[0-9]+ pods,")));
}

TEST(Demo, EndsInTheSameWayWhenItIsInterrupted) {
  const test::ProgramEnvironment environment;
  const test::TempDir dir;
  const auto log = dir / "log";
  test::Process demo = environment.start(test::lookout_program(), {"demo"}, log);
  ASSERT_TRUE(
      test::eventually([&] { return test::read_file(log).find("CACHE") != std::string::npos; }));
  demo.signal(SIGINT);
  EXPECT_EQ(demo.wait(), 0);
  EXPECT_THAT(test::read_file(log), HasSubstr("equal, byte by byte"));
}

}  // namespace
}  // namespace lookout::cmd
