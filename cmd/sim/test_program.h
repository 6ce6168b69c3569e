// Runs a program with GoogleTest tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/sim/seeds.h"
#include "lookout/base/pinned.h"

namespace lookout::cmd::sim {

/// The result of one test with some seeds.
struct TestResult {
  /// Whether it has run worlds, as a LOOKOUT_SIM_TEST reports.
  bool has_worlds = false;
  std::uint64_t worlds = 0;
  std::uint64_t requests = 0;
  bool passed = false;
  // If it failed:
  std::string report = {};
  std::optional<std::uint64_t> seed = {};
  /// It fails without faults, so it fails with every seed.
  bool without_faults = false;
};

/// A run of one test with some seeds, in its own process.
class TestRun : public base::Pinned {
 public:
  /// Creates files in `folder`. Throws lookout::Error if the program cannot be started.
  TestRun(const std::string& program, const std::string& test, Seeds seeds,
          const std::string& folder);
  /// Kills the process.
  ~TestRun();

  const std::string& test() const { return test_; }
  const Seeds& seeds() const { return seeds_; }

  /// nullopt while it runs. Do not call it again after it has returned a result.
  std::optional<TestResult> poll();

 private:
  const std::string test_;
  const Seeds seeds_;
  const std::string log_;
  const std::string json_;
  pid_t child_ = -1;
};

/// The names of the tests ("Suite.Name") that match GoogleTest's filter. Throws lookout::Error with
/// the program's output if it does not list tests.
std::vector<std::string> list_tests(const std::string& program, const std::string& filter,
                                    const std::string& folder);

/// Parses the output of --gtest_list_tests.
std::vector<std::string> parse_list(std::string_view text);

/// Reads GoogleTest's JSON report of a single test.
TestResult parse_result(const std::string& json);

}  // namespace lookout::cmd::sim
