// Simulated worlds as GoogleTest tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lookout/testing/sim/explore.h"

/// A test whose body fills `world` (sim::Scenario) and is run for many seeds. Behind the names come
/// the options (ExploreOptions), an expression or braces:
///
///     LOOKOUT_SIM_TEST(Website, IsEventuallyStable, {.seeds = 200}) {
///       world.start("website", [](lookout::sim::Process& p) { ... });
///       world.run(std::chrono::minutes(2));
///     }
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
