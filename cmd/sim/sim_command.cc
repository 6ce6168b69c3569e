// lookout sim: runs the simulated worlds of a test program with many seeds.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/colours.h"
#include "cmd/commands.h"
#include "cmd/duration.h"
#include "cmd/scratch_folder.h"
#include "cmd/sim/explorer.h"
#include "cmd/stop_signals.h"
#include "cmd/terminal.h"
#include "lookout/base/error.h"
#include "lookout/base/processors.h"

namespace lookout::cmd {
namespace {

using sim::Explorer;
using sim::ExplorerOptions;

constexpr std::uint64_t kDefaultSeeds = 1000;

struct SimFlags {
  ExplorerOptions options;
  std::string seeds;
};

/// "4,350".
std::string grouped(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
  return out;
}

/// "1h02m03s".
std::string readable(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m{:02}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/// A progress line on standard error, if it is a terminal.
class ProgressBar {
 public:
  ~ProgressBar() { clear(); }

  void show(const Explorer& explorer) {
    if (!terminal_ || explorer.elapsed() < next_) return;
    next_ = explorer.elapsed() + std::chrono::milliseconds(200);
    const auto& options = explorer.options();
    const double share = share_of(explorer);
    constexpr std::size_t kWidth = 24;
    const auto filled = static_cast<std::size_t>(share * kWidth);
    std::string line =
        fmt::format("[{}{}] {:3.0f} %  {} worlds, {} failed, {}", std::string(filled, '='),
                    std::string(kWidth - filled, ' '), share * 100, grouped(explorer.worlds()),
                    explorer.failures(), readable(explorer.elapsed()));
    if (options.time.count() > 0) line += " of " + readable(options.time);
    fmt::print(stderr, "\r{}\x1b[K", line.substr(0, terminal_columns() - 1));
    std::fflush(stderr);
    shown_ = true;
  }

  void clear() {
    if (!std::exchange(shown_, false)) return;
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }

 private:
  /// The larger one of the shares of seeds and of time used.
  static double share_of(const Explorer& explorer) {
    const auto& options = explorer.options();
    double out = 0;
    if (!options.seeds.endless()) {
      const auto all = options.seeds.count() * explorer.world_tests();
      out = static_cast<double>(explorer.worlds()) /
            static_cast<double>(std::max<std::uint64_t>(all, 1));
    }
    if (options.time.count() > 0)
      out = std::max(out, static_cast<double>(explorer.elapsed().count()) /
                              static_cast<double>(options.time.count()));
    return std::min(out, 1.0);
  }

  const bool terminal_ = isatty(STDERR_FILENO) == 1 && has_cursor();
  std::chrono::milliseconds next_{0};
  bool shown_ = false;
};

/// The tests that have run no world because the time was over.
std::vector<std::string> untried(const Explorer& explorer) {
  std::vector<std::string> out;
  for (const auto& test : explorer.tests()) {
    if (!test.other && test.worlds == 0) out.push_back(test.name);
  }
  return out;
}

std::string verdict(const Explorer& explorer) {
  if (explorer.failures() > 0) return fmt::format("{} failed", explorer.failures());
  const auto none = untried(explorer);
  if (none.empty()) return "all passed";
  return fmt::format("no world of {} was run", fmt::join(none, ", "));
}

void print_summary(const Explorer& explorer, bool stopped) {
  std::size_t width = 4;
  for (const auto& test : explorer.tests()) {
    if (!test.other) width = std::max(width, test.name.size());
  }
  fmt::print("{:<{}}  {:>10}  {:>12}  {:>8}\n", "test", width, "worlds", "requests", "failures");
  for (const auto& test : explorer.tests()) {
    if (test.other) continue;
    fmt::print("{:<{}}  {:>10}  {:>12}  {:>8}", test.name, width, grouped(test.worlds),
               grouped(test.requests), test.failures);
    if (!test.failed_seeds.empty()) fmt::print("  seeds {}", fmt::join(test.failed_seeds, ", "));
    fmt::print("\n");
  }
  const double seconds = std::max(static_cast<double>(explorer.elapsed().count()) / 1000, 0.001);
  fmt::print("\n{} worlds in {}, {:.0f} a second; {}{}\n", grouped(explorer.worlds()),
             readable(explorer.elapsed()), static_cast<double>(explorer.worlds()) / seconds,
             verdict(explorer), stopped ? ", stopped by a signal" : "");
}

int run(const ExplorerOptions& options) {
  const StopSignals signals;
  const ScratchFolder folder;
  Explorer explorer(options, folder.file(""));
  ProgressBar bar;
  explorer.on_progress = [&] { bar.show(explorer); };
  explorer.on_failure = [&](const std::string& test, const sim::TestResult& result) {
    bar.clear();
    fmt::print("{}\n", result.report);
    if (result.seed)
      fmt::print("LOOKOUT_SIM_SEED={} {} --gtest_filter={}\n\n", *result.seed, options.program,
                 test);
    std::fflush(stdout);
  };
  explorer.run(signals.token());
  bar.clear();
  if (explorer.world_tests() == 0)
    throw Error(
        fmt::format("none of the tests of {} that pass the filter {} runs worlds "
                    "(LOOKOUT_SIM_TEST)",
                    options.program, options.filter));
  print_summary(explorer, signals.token().stop_requested());
  return explorer.failures() == 0 && untried(explorer).empty() ? 0 : 1;
}

}  // namespace

void add_sim(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("sim", "Run the simulated worlds of a test program for many seeds");
  const auto flags = std::make_shared<SimFlags>();
  command->add_option("PROGRAM", flags->options.program, "A program with LOOKOUT_SIM_TESTs")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->required();
  command->add_option("--filter", flags->options.filter, "The tests to run, as for --gtest_filter")
      ->type_name("PATTERN")
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--seeds",
          [flags](const std::string& text) {
            const auto seeds = sim::parse_seeds(text);
            if (!seeds)
              throw CLI::ValidationError(
                  "--seeds", "\"" + text + "\" is not a number or a range such as 5001-6000");
            flags->options.seeds = *seeds;
            flags->seeds = text;
          },
          "The number of seeds for each test, or a range: 10000, 5001-6000, 5001- (default: 1000, "
          "or as many as --for allows)")
      ->type_name("N|A-B");
  add_duration(*command, "--for", flags->options.time, "Begin no new worlds after this time");
  command->add_option("--jobs", flags->options.jobs, "Processes at a time (default: processors)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  flags->options.jobs = usable_processors();
  command->add_flag("--keep-going", flags->options.keep_going,
                    "Count failures instead of stopping at the first one");
  command->footer(
      "A seed determines everything in a world, so a failure can be repeated: the report says "
      "how.\n"
      "Tests that are not LOOKOUT_SIM_TESTs are skipped.\n\n"
      "Examples:\n"
      "  lookout sim build/my_test                                  # 1000 seeds of each\n"
      "  lookout sim build/my_test --filter Website.IsStable --seeds 100000\n"
      "  lookout sim build/my_test --for 8h --seeds 1000000- --keep-going   # a night\n\n"
      "Exit status: 0 all passed, 1 something failed or a test ran no world, 2 wrong usage.");
  on_chosen(*command, action, [flags] {
    ExplorerOptions options = flags->options;
    options.program = std::filesystem::absolute(options.program).string();
    if (flags->seeds.empty() && options.time.count() == 0) options.seeds.last = kDefaultSeeds;
    return run(options);
  });
}

}  // namespace lookout::cmd
