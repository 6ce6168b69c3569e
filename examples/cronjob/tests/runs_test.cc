#include <gtest/gtest.h>
#include <lookout/api/time.h>

#include <string_view>

#include "cronjob_controller.h"

namespace cronjob {
namespace {

using namespace std::chrono_literals;

Time at(std::string_view text) {
  return std::chrono::floor<std::chrono::seconds>(lookout::api::parse_time(text).value());
}

TEST(RunsTest, ComeAfterTheLastRunAndWithinTheDeadline) {
  const auto hourly = lookout::CronSchedule::parse("0 * * * *");
  const Time last = at("2026-03-01T10:00:00Z");
  const Time now = at("2026-03-01T13:00:30Z");
  const Runs all = runs_of(hourly, last, std::nullopt, now);
  EXPECT_EQ(all.missed, at("2026-03-01T13:00:00Z")) << "the latest of three";
  EXPECT_EQ(all.next, at("2026-03-01T14:00:00Z"));
  EXPECT_EQ(runs_of(hourly, last, 60s, now).missed, at("2026-03-01T13:00:00Z"));
  EXPECT_EQ(runs_of(hourly, last, 10s, now).missed, std::nullopt);
  EXPECT_EQ(runs_of(hourly, now, std::nullopt, now).missed, std::nullopt);
  // The clock was wrong at the last run.
  const Runs early = runs_of(hourly, now + 24h, std::nullopt, now);
  EXPECT_EQ(early.missed, std::nullopt);
  EXPECT_EQ(early.next, at("2026-03-01T14:00:00Z"));
}

TEST(RunsTest, MoreThanAHundredMissedRunsAreAnError) {
  const auto hourly = lookout::CronSchedule::parse("0 * * * *");
  const Time now = at("2026-03-01T10:00:00Z");
  EXPECT_EQ(runs_of(hourly, now - 100h, std::nullopt, now).missed, now);
  EXPECT_THROW(runs_of(hourly, now - 101h, std::nullopt, now), lookout::CronScheduleError);
  EXPECT_EQ(runs_of(hourly, now - 101h, 60s, now).missed, now) << "a deadline helps";
}

}  // namespace
}  // namespace cronjob
