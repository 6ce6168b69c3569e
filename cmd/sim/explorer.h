// Runs the tests of a program with many seeds, in several processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cmd/sim/seeds.h"
#include "cmd/sim/test_program.h"

namespace lookout::cmd::sim {

struct ExplorerOptions {
  std::string program;
  std::string filter = "*";
  Seeds seeds;
  /// Zero: no limit.
  std::chrono::milliseconds time{0};
  unsigned jobs = 1;
  bool keep_going = false;
};

/// Figures of one test.
struct TestFigures {
  std::string name;
  std::uint64_t worlds = 0;
  std::uint64_t requests = 0;
  std::vector<std::uint64_t> failed_seeds = {};
  std::uint64_t failures = 0;
  /// Runs no worlds, so it was skipped.
  bool other = false;
};

/// Distributes the seeds, in order and over all tests in turn, to processes. Each process runs one
/// test with several seeds.
class Explorer {
 public:
  /// Lists the tests. Throws lookout::Error if there is none.
  Explorer(ExplorerOptions options, std::string folder);

  /// Called with the report of each failure.
  std::function<void(const std::string& test, const TestResult& result)> on_failure;
  /// Called regularly during run().
  std::function<void()> on_progress;

  /// Runs until the seeds or the time are used up, a stop is requested, or a test fails.
  void run(const std::stop_token& stop);

  const std::vector<TestFigures>& tests() const { return tests_; }
  const ExplorerOptions& options() const { return options_; }
  std::chrono::milliseconds elapsed() const;
  std::uint64_t worlds() const;
  std::uint64_t failures() const;
  /// The number of tests that run worlds or have not run yet.
  std::uint64_t world_tests() const;

 private:
  struct Work {
    Seeds seeds;
    /// Its first seed shows whether the test runs worlds.
    bool probed = false;
  };
  struct Running {
    std::size_t test;
    std::unique_ptr<TestRun> run;
  };

  bool start_one();
  void finish(std::size_t test, const Seeds& seeds, const TestResult& result);
  bool time_is_over() const;

  const ExplorerOptions options_;
  const std::string folder_;
  std::chrono::steady_clock::time_point begin_;  // the start of run()
  std::vector<TestFigures> tests_;
  std::vector<Work> work_;                           // by test
  std::deque<std::pair<std::size_t, Seeds>> again_;  // the seeds after a failure
  std::vector<Running> running_;
  std::size_t next_ = 0;
  bool over_ = false;
};

}  // namespace lookout::cmd::sim
