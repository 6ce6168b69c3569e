// lookout demo.
#include <gtest/gtest.h>

#include <cctype>
#include <csignal>

#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

using testing::ContainsRegex;

constexpr const char* kEvent =
    "[0-9:]{8} (ADDED|MODIFIED|DELETED) +(Pod|Deployment|Service) +shop/.*";

TEST(Demo, ShowsTheWorkloadAndEndsWithACacheThatEqualsTheServer) {
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

TEST(Demo, EndsInTheSameWayOnAnInterrupt) {
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

TEST(Demo, EndsWhenItsReaderEnds) {
  const test::ProgramEnvironment environment;
  const auto result =
      environment.run("sh", {"-c", R"({ timeout 60 "$0" demo; echo "status $?" >&2; } | head -n 1)",
                             test::lookout_program()});
  EXPECT_EQ(test::lines(result.output).size(), 1u);
  EXPECT_EQ(result.errors, "status 0\n");
}

/// The demo's output on a terminal of 12 rows and 40 columns.
std::string on_a_terminal(const std::string& type, const std::string& no_color) {
  test::ProgramEnvironment environment;
  environment.set("TERM", type);
  environment.set("NO_COLOR", no_color);
  return environment
      .run("script", {"-qec",
                      "stty rows 12 cols 40 && exec '" + test::lookout_program() +
                          "' demo --for 300ms -v off",
                      "/dev/null"})
      .output;
}

/// The width of a line: escape sequences and UTF-8 continuation bytes have no width.
std::size_t columns_of(const std::string& line) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i + 1 < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0) ++i;
    } else if (line[i] != '\r' && (static_cast<unsigned char>(line[i]) & 0xc0u) != 0x80u) {
      ++out;
    }
  }
  return out;
}

TEST(Demo, FitsASmallTerminal) {
  const std::string all = on_a_terminal("xterm", "");
  ASSERT_THAT(all, HasSubstr("\x1b[?1049h"));
  EXPECT_THAT(all, HasSubstr("\x1b[1mlookout demo\x1b[0m"));
  const auto lines = test::lines(all.substr(0, all.find("\x1b[?1049l")));
  EXPECT_GT(lines.size(), 5u);
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 40u) << line;
}

TEST(Demo, HonoursNoColor) {
  const std::string live = on_a_terminal("xterm", "1");
  EXPECT_THAT(live, HasSubstr("\x1b[?1049h"));
  EXPECT_THAT(live, Not(ContainsRegex("\x1b\\[[0-9]+m")));
  const std::string plain = on_a_terminal("dumb", "1");
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(plain, HasSubstr(" CACHE "));
}

}  // namespace
}  // namespace lookout::cmd
