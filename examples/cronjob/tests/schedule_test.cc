#include "schedule.h"

#include <gtest/gtest.h>
#include <lookout/api/time.h>

#include <string>
#include <string_view>

#include "cronjob_controller.h"

namespace cronjob {
namespace {

using namespace std::chrono_literals;

Time at(std::string_view text) {
  return std::chrono::floor<std::chrono::seconds>(lookout::api::parse_time(text).value());
}

std::string next(std::string_view schedule, std::string_view after) {
  const auto time = Schedule::parse(schedule).next(at(after));
  return time ? lookout::api::format_time(*time) : "never";
}

TEST(ScheduleTest, FindsTheNextTime) {
  // After the given time, also when that matches.
  EXPECT_EQ(next("* * * * *", "2026-03-01T10:00:00Z"), "2026-03-01T10:01:00Z");
  EXPECT_EQ(next("* * * * *", "2026-03-01T10:00:59Z"), "2026-03-01T10:01:00Z");
  EXPECT_EQ(next("*/15 * * * *", "2026-03-01T10:14:59Z"), "2026-03-01T10:15:00Z");
  EXPECT_EQ(next("5/20 * * * *", "2026-03-01T10:26:00Z"), "2026-03-01T10:45:00Z");
  EXPECT_EQ(next("10-20/5,50 * * * *", "2026-03-01T10:15:00Z"), "2026-03-01T10:20:00Z");
  EXPECT_EQ(next("10-20/5,50 * * * *", "2026-03-01T10:20:00Z"), "2026-03-01T10:50:00Z");
  EXPECT_EQ(next("30 3 * * *", "2026-03-01T10:00:00Z"), "2026-03-02T03:30:00Z");
  EXPECT_EQ(next("0 0 1 jan *", "2026-03-01T10:00:00Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next("0 0 29 2 ?", "2026-03-01T10:00:00Z"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(next("0 12 * * MON-fri", "2026-03-06T12:00:00Z"), "2026-03-09T12:00:00Z");
}

TEST(ScheduleTest, OneOfBothDaysIsEnoughUnlessOneIsAStar) {
  // The 13th of March 2026 is a Friday.
  EXPECT_EQ(next("0 0 15 * fri", "2026-03-10T00:00:00Z"), "2026-03-13T00:00:00Z");
  EXPECT_EQ(next("0 0 15 * fri", "2026-03-13T00:00:00Z"), "2026-03-15T00:00:00Z");
  EXPECT_EQ(next("0 0 15 * *", "2026-03-10T00:00:00Z"), "2026-03-15T00:00:00Z");
  EXPECT_EQ(next("0 0 * * fri", "2026-03-13T00:00:00Z"), "2026-03-20T00:00:00Z");
}

TEST(ScheduleTest, KnowsDescriptors) {
  EXPECT_EQ(next("@yearly", "2026-03-01T10:00:00Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next("@monthly", "2026-03-01T10:00:00Z"), "2026-04-01T00:00:00Z");
  EXPECT_EQ(next("@weekly", "2026-03-02T10:00:00Z"), "2026-03-08T00:00:00Z");
  EXPECT_EQ(next("@midnight", "2026-03-01T10:00:00Z"), "2026-03-02T00:00:00Z");
  EXPECT_EQ(next("@hourly", "2026-03-01T10:00:00Z"), "2026-03-01T11:00:00Z");
  EXPECT_EQ(next("@every 1h30m", "2026-03-01T10:00:10Z"), "2026-03-01T11:30:10Z");
}

TEST(ScheduleTest, NeverComes) { EXPECT_EQ(next("0 0 30 2 *", "2026-03-01T10:00:00Z"), "never"); }

TEST(ScheduleTest, SaysWhichFieldIsWrong) {
  const auto error = [](std::string_view text) -> std::string {
    try {
      Schedule::parse(text);
    } catch (const ScheduleError& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(error(""), "expected exactly 5 fields, found 0");
  EXPECT_EQ(error("* * * *"), "expected exactly 5 fields, found 4");
  EXPECT_EQ(error("60 * * * *"), "minute \"60\": not within 0 to 59");
  EXPECT_EQ(error("* 24 * * *"), "hour \"24\": not within 0 to 23");
  EXPECT_EQ(error("* * 0 * *"), "day of month \"0\": not within 1 to 31");
  EXPECT_EQ(error("* * * 13 *"), "month \"13\": not within 1 to 12");
  EXPECT_EQ(error("* * * * 7"), "day of week \"7\": not within 0 to 6");
  EXPECT_EQ(error("20-10 * * * *"), "minute \"20-10\": the range ends before it begins");
  EXPECT_EQ(error("*/0 * * * *"), "minute \"*/0\": the step is not a positive number");
  EXPECT_EQ(error("1-2-3 * * * *"), "minute \"1-2-3\": too many hyphens");
  EXPECT_EQ(error("*/2/3 * * * *"), "minute \"*/2/3\": too many slashes");
  EXPECT_EQ(error("1,,2 * * * *"), "minute \"\": no number");
  EXPECT_EQ(error("-1 * * * *"), "minute \"\": no number");
  EXPECT_EQ(error("99999999999 * * * *"), "minute \"99999999999\": no number");
  EXPECT_EQ(error("* * * foo *"), "month \"foo\": no number");
  EXPECT_EQ(error("@often"), "\"@often\" is not a descriptor");
  EXPECT_EQ(error("@every soon"), "@every \"soon\": expected a duration such as 1h30m");
  EXPECT_EQ(error("@every 99999999999999999h"),
            "@every \"99999999999999999h\": expected a duration such as 1h30m");
  EXPECT_EQ(error("TZ=Asia/Tokyo * * * * *"), "time zones are not supported: schedules are in UTC");
}

TEST(RunsTest, ComeAfterTheLastRunAndWithinTheDeadline) {
  const auto hourly = Schedule::parse("0 * * * *");
  const Time last = at("2026-03-01T10:00:00Z");
  const Time now = at("2026-03-01T13:00:30Z");
  const Runs all = runs_of(hourly, last, std::nullopt, now);
  EXPECT_EQ(all.missed, at("2026-03-01T13:00:00Z")) << "the latest of three";
  EXPECT_EQ(all.next, at("2026-03-01T14:00:00Z"));
  EXPECT_EQ(runs_of(hourly, last, 60s, now).missed, at("2026-03-01T13:00:00Z"));
  EXPECT_EQ(runs_of(hourly, last, 10s, now).missed, std::nullopt);
  EXPECT_EQ(runs_of(hourly, now, std::nullopt, now).missed, std::nullopt);
  // A clock that was wrong once.
  const Runs early = runs_of(hourly, now + 24h, std::nullopt, now);
  EXPECT_EQ(early.missed, std::nullopt);
  EXPECT_EQ(early.next, at("2026-03-01T14:00:00Z"));
}

TEST(RunsTest, AHundredMissedOnesAreTooMany) {
  const auto hourly = Schedule::parse("0 * * * *");
  const Time now = at("2026-03-01T10:00:00Z");
  EXPECT_EQ(runs_of(hourly, now - 100h, std::nullopt, now).missed, now);
  EXPECT_THROW(runs_of(hourly, now - 101h, std::nullopt, now), ScheduleError);
  EXPECT_EQ(runs_of(hourly, now - 101h, 60s, now).missed, now) << "a deadline helps";
}

}  // namespace
}  // namespace cronjob
