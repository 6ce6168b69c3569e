#include "lookout/base/time_zone.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/thrown.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

sys_seconds utc(int year, unsigned month, unsigned day, seconds time = 0s) {
  return sys_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day)) + time;
}

/// A file with only a rule, like the "slim" files of the database.
std::string file_of_rule(std::string_view rule, std::int32_t offset = 0) {
  const auto header = [](char types) {
    return std::string("TZif2") + std::string(15 + 4 * 4, '\0') + std::string(3, '\0') + types +
           std::string("\0\0\0\4", 4);
  };
  const auto type = [&] {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8)
      out += static_cast<char>(static_cast<std::uint32_t>(offset) >> shift);
    return out + std::string("\0\0LMT\0", 6);
  };
  return header(1) + type() + header(1) + type() + "\n" + std::string(rule) + "\n";
}

seconds offset(std::string_view rule, sys_seconds time) {
  return TimeZone::parse(file_of_rule(rule)).offset_at(time);
}

std::string error(std::string_view file) {
  return test::refusal<TimeZoneError>([&] { TimeZone::parse(file); });
}

TEST(TimeZoneTest, IsUtcByDefault) {
  EXPECT_EQ(TimeZone().offset_at(utc(2026, 7, 1)), 0s);
  EXPECT_EQ(TimeZone::load("UTC").offset_at(utc(2026, 7, 1)), 0s);
}

TEST(TimeZoneTest, AppliesTheRuleOfAZone) {
  constexpr std::string_view kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
  // The last Sundays are March 29 and October 25, at 01:00 UTC.
  EXPECT_EQ(offset(kBerlin, utc(2026, 1, 1)), 1h);
  EXPECT_EQ(offset(kBerlin, utc(2026, 3, 29, 1h - 1s)), 1h);
  EXPECT_EQ(offset(kBerlin, utc(2026, 3, 29, 1h)), 2h);
  EXPECT_EQ(offset(kBerlin, utc(2026, 10, 25, 1h - 1s)), 2h);
  EXPECT_EQ(offset(kBerlin, utc(2026, 10, 25, 1h)), 1h);
  // Summer time in the southern hemisphere.
  constexpr std::string_view kLordHowe = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
  EXPECT_EQ(offset(kLordHowe, utc(2026, 1, 1)), 11h);
  EXPECT_EQ(offset(kLordHowe, utc(2026, 7, 1)), 10h + 30min);
  // Times before the day (a negative hour), and days of the year.
  EXPECT_EQ(offset("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", utc(2026, 3, 29, 1h - 1s)), -2h);
  EXPECT_EQ(offset("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", utc(2026, 3, 29, 1h)), -1h);
  EXPECT_EQ(offset("A0B,J60/0,J300/0", utc(2028, 2, 29, 12h)), 0h) << "March 1, in leap years, too";
  EXPECT_EQ(offset("A0B,J60/0,J300/0", utc(2028, 3, 1)), 1h);
  EXPECT_EQ(offset("A0B,59/0,300/0", utc(2028, 2, 29)), 1h) << "the 60th day";
  EXPECT_EQ(offset("<+0530>-5:30", utc(2026, 7, 1)), 5h + 30min);
}

TEST(TimeZoneTest, ReadsTheSystemsDatabase) {
  if (!std::filesystem::exists("/usr/share/zoneinfo/Europe/Berlin"))
    GTEST_SKIP() << "no package tzdata";
  const auto berlin = TimeZone::load("Europe/Berlin");
  EXPECT_EQ(berlin.offset_at(utc(1945, 6, 1)), 3h) << "double summer time";
  EXPECT_EQ(berlin.offset_at(utc(1979, 7, 1)), 1h) << "none before 1980";
  EXPECT_EQ(berlin.offset_at(utc(2026, 7, 1)), 2h);
  EXPECT_EQ(berlin.offset_at(utc(2070, 7, 1)), 2h) << "by the rule";
  EXPECT_EQ(berlin.offset_at(utc(1800, 1, 1)), 53min + 28s) << "before all transitions";
  EXPECT_EQ(TimeZone::load("Asia/Kathmandu").offset_at(utc(2026, 7, 1)), 5h + 45min);
}

TEST(TimeZoneTest, ReportsAnUnknownZone) {
  const auto load = [](std::string_view name) {
    return test::refusal<TimeZoneError>([&] { TimeZone::load(name); });
  };
  EXPECT_EQ(load("Mars/Phobos"), "unknown time zone Mars/Phobos");
  EXPECT_EQ(load("../../../etc/passwd"), "time: invalid location name");
  EXPECT_EQ(load("/etc/passwd"), "time: invalid location name");
  EXPECT_EQ(load(""), "time: invalid location name");
}

TEST(TimeZoneTest, RejectsMalformedFiles) {
  const std::string whole = file_of_rule("CET-1CEST,M3.5.0,M10.5.0/3");
  ASSERT_EQ(error(whole), "");
  for (std::size_t size = 0; size < whole.size() - 28; ++size)
    EXPECT_NE(error(whole.substr(0, size)), "") << size;
  EXPECT_EQ(error("PNG"), "malformed time zone file: it ends too early");
  EXPECT_EQ(error("PNGx"), "malformed time zone file: it does not begin with TZif");
  EXPECT_EQ(error(file_of_rule("-1")), "malformed time zone file: its rule has no name");
  EXPECT_EQ(error(file_of_rule("CET-1CEST")), "malformed time zone file: its rule has no days");
  EXPECT_EQ(error(file_of_rule("CET-1CEST,M13.5.0,M10.5.0")),
            "malformed time zone file: a number of its rule is out of bounds");
  EXPECT_EQ(error(file_of_rule("CET-1CEST,M3.5.0,M10.5.0x")),
            "malformed time zone file: its rule is followed by other text");
  EXPECT_EQ(error(file_of_rule("", 200'000)), "malformed time zone file: an offset is too large");
  std::string many = whole;
  many[20 + 4 * 3] = '\x7f';  // transitions
  EXPECT_EQ(error(many), "malformed time zone file: a count is out of bounds");
}

}  // namespace
}  // namespace lookout
