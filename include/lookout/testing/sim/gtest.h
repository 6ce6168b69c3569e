// Simulated worlds as GoogleTest tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lookout/testing/sim/explore.h"

namespace lookout::sim::detail {

inline const testing::TestResult& current_result() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const testing::TestInfo* const test = all.current_test_info();
  return test != nullptr ? *test->result() : all.ad_hoc_test_result();
}

inline std::string failed_assertion(int from) {
  const testing::TestResult& result = current_result();
  for (int i = from; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.passed()) continue;
    const std::string place =
        part.file_name() == nullptr
            ? std::string()
            : std::string(part.file_name()) + ":" + std::to_string(part.line_number()) + ": ";
    return part.skipped() ? place + "a world cannot be skipped (GTEST_SKIP)"
                          : place + "an assertion has failed: " + part.message();
  }
  return {};
}

/// A world runs in its own process, so GoogleTest would miss assertions that fail there.
inline const bool kNotesAssertions =
    note_assertions({[] { return current_result().total_part_count(); }, &failed_assertion});

}  // namespace lookout::sim::detail

/// A test whose body fills `world` (sim::Scenario) and runs with many seeds. The names are followed by
/// the options (ExploreOptions), an expression or braces:
///
///     LOOKOUT_SIM_TEST(Website, IsEventuallyStable, {.seeds = 200}) {
///       world.start("website", [](lookout::sim::Process& p) { ... });
///       world.run(std::chrono::minutes(2));
///     }
///
/// An assertion (EXPECT_EQ, ASSERT_TRUE) that fails in a world, in the body or in a process, is a
/// violation.
#define LOOKOUT_SIM_TEST(suite, name, ...)                                            \
  static void suite##_##name##_scenario(lookout::sim::World& world);                  \
  TEST(suite, name) {                                                                 \
    const lookout::sim::ExploreOptions options = __VA_ARGS__;                         \
    const lookout::sim::Outcome outcome =                                             \
        lookout::sim::explore(#suite "." #name, &suite##_##name##_scenario, options); \
    RecordProperty("worlds", std::to_string(outcome.worlds));                         \
    RecordProperty("requests", std::to_string(outcome.requests));                     \
    if (!outcome.passed) FAIL() << outcome.report;                                    \
  }                                                                                   \
  static void suite##_##name##_scenario([[maybe_unused]] lookout::sim::World& world)
