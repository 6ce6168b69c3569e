// Runs of a program of GoogleTest tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/sim/seeds.h"

namespace lookout::cmd::sim {

/// How the run of one test over some seeds has ended.
struct TestResult {
  /// Whether it has run worlds: what a LOOKOUT_SIM_TEST reports.
  bool has_worlds = false;
  std::uint64_t worlds = 0;
  std::uint64_t requests = 0;
  bool passed = false;
  // If it failed:
  std::string report = {};
  std::optional<std::uint64_t> seed = {};
  /// It fails without any fault, so it does with every seed.
  bool without_faults = false;
};

/// One test that runs over some seeds, in a process of its own.
class TestRun {
 public:
  /// Files are made in `folder`. Throws lookout::Error if the program cannot be started.
  TestRun(const std::string& program, const std::string& test, Seeds seeds,
          const std::string& folder);
  /// Ends the process.
  ~TestRun();
  TestRun(const TestRun&) = delete;
  TestRun& operator=(const TestRun&) = delete;

  const std::string& test() const { return test_; }
  const Seeds& seeds() const { return seeds_; }

  /// Nothing while it runs. To be called once after it has ended.
  std::optional<TestResult> poll();

 private:
  const std::string test_;
  const Seeds seeds_;
  const std::string log_;
  const std::string json_;
  pid_t child_ = -1;
};

/// The names of the tests ("Suite.Name") that pass GoogleTest's filter. Throws lookout::Error with
/// what the program has said if it cannot say.
std::vector<std::string> list_tests(const std::string& program, const std::string& filter,
                                    const std::string& folder);

/// The tests in what --gtest_list_tests prints.
std::vector<std::string> parse_list(std::string_view text);

/// Reads GoogleTest's JSON file about the one test that has run.
TestResult parse_result(const std::string& json);

}  // namespace lookout::cmd::sim
