#include "lookout/base/cron_schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tests/support/text_case.h"
#include "tests/support/thrown.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using Time = CronSchedule::Time;

Time at(const std::string& text) {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  EXPECT_EQ(
      std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &year, &month, &day,  // NOLINT(cert-err34-c)
                  &hour, &minute, &second),
      6);
  return std::chrono::sys_days(std::chrono::year(year) / month / day) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

std::string show(std::optional<Time> time) {
  if (!time) return "never";
  const auto day = std::chrono::floor<std::chrono::days>(*time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(*time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string next(std::string_view schedule, const std::string& after) {
  return show(CronSchedule::parse(schedule).next(at(after)));
}

struct NextTime {
  const char* schedule;
  const char* after;
  const char* next;
};
void expect_next(std::initializer_list<NextTime> cases) {
  for (const NextTime& c : cases) EXPECT_EQ(next(c.schedule, c.after), c.next) << c.schedule;
}

TEST(CronScheduleTest, FindsTheNextTime) {
  expect_next({
      // Strictly after the given time, even if that time matches.
      {"* * * * *", "2026-03-01T10:00:00", "2026-03-01T10:01:00"},
      {"* * * * *", "2026-03-01T10:00:59", "2026-03-01T10:01:00"},
      {"*/15 * * * *", "2026-03-01T10:14:59", "2026-03-01T10:15:00"},
      {"5/20 * * * *", "2026-03-01T10:26:00", "2026-03-01T10:45:00"},
      {"10-20/5,50 * * * *", "2026-03-01T10:15:00", "2026-03-01T10:20:00"},
      {"10-20/5,,50 * * * *", "2026-03-01T10:20:00", "2026-03-01T10:50:00"},
      {"30 3 * * *", "2026-03-01T10:00:00", "2026-03-02T03:30:00"},
      {" 0\t0 1 jan * ", "2026-03-01T10:00:00", "2027-01-01T00:00:00"},
      {"0 0 29 2 ?", "2026-03-01T10:00:00", "2028-02-29T00:00:00"},
      {"0 12 * * MON-fri", "2026-03-06T12:00:00", "2026-03-09T12:00:00"},
      {"59 23 31 12 *", "2026-12-31T23:59:00", "2027-12-31T23:59:00"},
  });
}

TEST(CronScheduleTest, EitherDayMatchesUnlessOneIsAStar) {
  expect_next({
      // The 13th of March 2026 is a Friday.
      {"0 0 15 * fri", "2026-03-10T00:00:00", "2026-03-13T00:00:00"},
      {"0 0 15 * fri", "2026-03-13T00:00:00", "2026-03-15T00:00:00"},
      {"0 0 15 * *", "2026-03-10T00:00:00", "2026-03-15T00:00:00"},
      {"0 0 * * fri", "2026-03-13T00:00:00", "2026-03-20T00:00:00"},
  });
}

TEST(CronScheduleTest, ParsesDescriptors) {
  expect_next({
      {"@yearly", "2026-03-01T10:00:00", "2027-01-01T00:00:00"},
      {"@monthly", "2026-03-01T10:00:00", "2026-04-01T00:00:00"},
      {"@weekly", "2026-03-02T10:00:00", "2026-03-08T00:00:00"},
      {"@midnight", "2026-03-01T10:00:00", "2026-03-02T00:00:00"},
      {"@hourly", "2026-03-01T10:00:00", "2026-03-01T11:00:00"},
      {"@every 1h30m", "2026-03-01T10:00:10", "2026-03-01T11:30:10"},
      {"@every 0s", "2026-03-01T10:00:10", "2026-03-01T10:00:11"},
  });
}

// As in Go's time.ParseDuration; less than a second becomes one second.
TEST(CronScheduleTest, ParsesGoDurations) {
  for (const char* second :
       {"500ms", "1us", "1\u00b5s", "3ns", "-1h", "0", "1.9s", "+1s", "0.5s500ms"})
    EXPECT_EQ(next(std::string("@every ") + second, "2026-03-01T10:00:10"), "2026-03-01T10:00:11")
        << second;
  EXPECT_EQ(next("@every 1.5h", "2026-03-01T10:00:10"), "2026-03-01T11:30:10");
  EXPECT_EQ(next("@every .5m1500ms", "2026-03-01T10:00:10"), "2026-03-01T10:00:41");
}

TEST(CronScheduleTest, ReportsTimesThatNeverCome) {
  EXPECT_EQ(next("0 0 30 2 *", "2026-03-01T10:00:00"), "never");
  EXPECT_EQ(next(", * * * *", "2026-03-01T10:00:00"), "never");
}

TEST(CronScheduleTest, FindsTheLastTime) {
  const auto last = [](std::string_view schedule, const std::string& after,
                       const std::string& until) {
    return show(CronSchedule::parse(schedule).last(at(after), at(until)));
  };
  EXPECT_EQ(last("*/5 * * * *", "2026-03-01T10:00:00", "2026-03-01T10:13:00"),
            "2026-03-01T10:10:00");
  EXPECT_EQ(last("*/5 * * * *", "2026-03-01T10:00:00", "2026-03-01T10:05:00"),
            "2026-03-01T10:05:00");
  EXPECT_EQ(last("*/5 * * * *", "2026-03-01T10:00:00", "2026-03-01T10:04:59"), "never");
  EXPECT_EQ(last("* * * * *", "1970-01-01T00:00:00", "2026-03-01T10:04:59"), "2026-03-01T10:04:00");
  EXPECT_EQ(last("0 0 29 2 *", "1970-01-01T00:00:00", "2027-03-01T10:04:59"),
            "2024-02-29T00:00:00");
  EXPECT_EQ(last("0 0 30 2 *", "1970-01-01T00:00:00", "2027-03-01T10:04:59"), "never");
  EXPECT_EQ(last("0 0 * * *", "2026-03-01T10:00:00", "2026-03-01T09:00:00"), "never");
  EXPECT_EQ(last("@every 7s", "2026-03-01T10:00:00", "2026-03-01T10:00:20"), "2026-03-01T10:00:14");
  EXPECT_EQ(last("@every 7s", "2026-03-01T10:00:00", "2026-03-01T10:00:06"), "never");
}

TEST(CronScheduleTest, AppliesTheTimeZone) {
  if (!std::filesystem::exists("/usr/share/zoneinfo/America/New_York"))
    GTEST_SKIP() << "no package tzdata";
  const std::string zone = "TZ=America/New_York ";
  EXPECT_EQ(next(zone + "30 9 * * *", "2026-01-05T00:00:00"), "2026-01-05T14:30:00");
  EXPECT_EQ(next(zone + "30 9 * * *", "2026-07-05T00:00:00"), "2026-07-05T13:30:00");
  EXPECT_EQ(next("CRON_TZ=America/New_York 0 0 1 * *", "2026-07-05T00:00:00"),
            "2026-08-01T04:00:00");
  EXPECT_EQ(next("TZ=America/New_York @daily", "2026-07-05T00:00:00"), "2026-07-05T04:00:00");
  // On March 11, 2012, 2:00 is followed by 3:00.
  EXPECT_EQ(next(zone + "30 2 11 mar *", "2012-03-11T00:00:00"), "2013-03-11T06:30:00");
  EXPECT_EQ(next(zone + "0 * * * *", "2012-03-11T06:00:00"), "2012-03-11T07:00:00");
  EXPECT_EQ(next(zone + "0 3 * * *", "2012-03-11T06:00:00"), "2012-03-11T07:00:00");
  // On November 4, 1:00 to 2:00 occurs twice.
  EXPECT_EQ(next(zone + "30 1 4 nov *", "2012-11-04T04:00:00"), "2012-11-04T05:30:00");
  EXPECT_EQ(next(zone + "30 1 4 nov *", "2012-11-04T05:30:00"), "2012-11-04T06:30:00");
  EXPECT_EQ(next(zone + "30 1 4 nov *", "2012-11-04T06:30:00"), "2013-11-04T06:30:00");
  // Midnight is skipped in Brazil's spring of 2012.
  EXPECT_EQ(next("TZ=America/Sao_Paulo 0 0 9 10 *", "2012-10-08T12:00:00"), "2012-10-09T03:00:00");
  EXPECT_EQ(next("TZ=America/Sao_Paulo 0 0 21 10 *", "2012-10-20T12:00:00"), "2013-10-21T02:00:00");
  // Half an hour, and a zone that is 45 minutes off.
  EXPECT_EQ(next("TZ=Australia/Lord_Howe 0 12 * * *", "2026-07-01T00:00:00"),
            "2026-07-01T01:30:00");
  EXPECT_EQ(next("TZ=Asia/Kathmandu 0 12 * * *", "2026-07-01T00:00:00"), "2026-07-01T06:15:00");
  const auto tokyo = CronSchedule::parse("0 9 * * *", TimeZone::load("Asia/Tokyo"));
  EXPECT_EQ(show(tokyo.next(at("2026-07-01T00:00:00"))), "2026-07-02T00:00:00");
}

TEST(CronScheduleTest, ReportsErrors) {
  const auto error = [](std::string_view text) {
    return test::refusal<CronScheduleError>([&] { CronSchedule::parse(text); });
  };
  const test::TextCase cases[] = {
      {"", "empty spec string"},
      {" ", "expected exactly 5 fields, found 0: []"},
      {"* *  * *", "expected exactly 5 fields, found 4: [* * * *]"},
      {"60 * * * *", "end of range (60) above maximum (59): 60"},
      {"* 24 * * *", "end of range (24) above maximum (23): 24"},
      {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
      {"* * * * 7", "end of range (7) above maximum (6): 7"},
      {"20-10 * * * *", "beginning of range (20) beyond end of range (10): 20-10"},
      {"*/0 * * * *", "step of range should be a positive number: */0"},
      {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
      {"*/2/3 * * * *", "too many slashes: */2/3"},
      {"-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"},
      {"*/-5 * * * *", "negative number (-5) not allowed: -5"},
      {"99999999999999999999 * * * *",
       "failed to parse int from 99999999999999999999: strconv.Atoi: parsing "
       "\"99999999999999999999\": value out of range"},
      {"* * * foo *",
       "failed to parse int from foo: strconv.Atoi: parsing \"foo\": invalid syntax"},
      {"@often", "unrecognized descriptor: @often"},
      {"@every soon", "failed to parse duration @every soon: time: invalid duration \"soon\""},
      {"@every 99999999999999999h",
       "failed to parse duration @every 99999999999999999h: time: invalid duration "
       "\"99999999999999999h\""},
      {"TZ=Mars/Phobos * * * * *",
       "provided bad location Mars/Phobos: unknown time zone Mars/Phobos"},
      {"TZ=UTC", "expected exactly 5 fields, found 0: []"},
  };
  for (const auto& c : cases) EXPECT_EQ(error(c.text), c.expected) << c.text;
  for (const char* bad : {"1", "1.5", "1..5s", ".s", "s", "1d", "1 s", "--1s", ""})
    EXPECT_THAT(error(std::string("@every ") + bad), testing::HasSubstr("invalid duration")) << bad;
}

}  // namespace
}  // namespace lookout
