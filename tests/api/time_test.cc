#include "lookout/api/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

using namespace std::chrono_literals;

std::string read(std::string_view text) {
  const auto time = parse_time(text);
  return time ? format_micro_time(*time) : "nothing";
}

TEST(TimeTest, ReadsRfc3339) {
  const lookout::test::TextCase cases[] = {
      {"2026-11-20T11:14:57Z", "2026-11-20T11:14:57.000000Z"},
      {"2026-11-20T11:14:57.1Z", "2026-11-20T11:14:57.100000Z"},
      {"2026-11-20T11:14:57.123456Z", "2026-11-20T11:14:57.123456Z"},
      {"2026-11-20T11:14:57.1234569999Z", "2026-11-20T11:14:57.123456Z"},
      {"2026-11-20T11:14:57+01:00", "2026-11-20T10:14:57.000000Z"},
      {"2026-11-20T11:14:57-01:30", "2026-11-20T12:44:57.000000Z"},
      {"2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"},
      {"2026-12-31T23:59:59-23:59", "2027-01-01T23:58:59.000000Z"},
      {"2026-11-20T11:14:57+24:00", "2026-11-19T11:14:57.000000Z"},
      {"2026-11-20T11:14:57-00:60", "2026-11-20T12:14:57.000000Z"},
      {"2026-11-20T1:14:57Z", "2026-11-20T01:14:57.000000Z"},
      {"2026-11-20T11:14:57,5Z", "2026-11-20T11:14:57.500000Z"},
      {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
      {"2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
      {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
      {"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"},
      {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
      {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
  };
  for (const auto& [text, utc] : cases) {
    EXPECT_EQ(read(text), utc);
    EXPECT_EQ(read(utc), utc);
  }
}

TEST(TimeTest, RejectsOtherText) {
  for (const char* text : {"",
                           "Z",
                           "2026-11-20",
                           "2026-11-20T11:14:57",
                           "2026-11-20 11:14:57Z",
                           "2026-11-20T11:14Z",
                           "2026-11-20T11:14:57.Z",
                           "2026-11-20T11:14:57,Z",
                           "2026-11-20t11:14:57Z",
                           "2026-11-20T11:14:57z",
                           "2026-11-20T111:14:57Z",
                           "2026-11-20T1:1:57Z",
                           "2026-11-20T11:14:57ZZ",
                           " 2026-11-20T11:14:57Z",
                           "2026-11-20T11:14:57Z ",
                           "26-11-20T11:14:57Z",
                           "2026-1-20T11:14:57Z",
                           "2026-00-20T11:14:57Z",
                           "2026-13-20T11:14:57Z",
                           "2026-11-00T11:14:57Z",
                           "2026-11-31T11:14:57Z",
                           "2026-02-29T11:14:57Z",
                           "1900-02-29T11:14:57Z",
                           "2026-11-20T24:00:00Z",
                           "2026-11-20T11:60:57Z",
                           "2026-11-20T11:14:60Z",
                           "2026-11-20T11:14:57+1:00",
                           "2026-11-20T11:14:57+01",
                           "2026-11-20T11:14:57+0100",
                           "2026-11-20T11:14:57+25:00",
                           "2026-11-20T11:14:57+00:61",
                           "2026-11-20T11:14:57UTC",
                           "+026-11-20T11:14:57Z",
                           "2026-11-20T1a:14:57Z",
                           "-2026-11-20T11:14:57Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(TimeTest, PrintsBothForms) {
  const Time time = *parse_time("2026-11-20T11:14:57.000042Z");
  EXPECT_EQ(format_time(time), "2026-11-20T11:14:57Z");
  EXPECT_EQ(format_micro_time(time), "2026-11-20T11:14:57.000042Z");
  EXPECT_EQ(format_time(Time(-500ms)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(Time(1s) - Time(0s), 1000000us);
}

TEST(TimeTest, NowIsTheSystemTime) {
  const auto before = std::chrono::system_clock::now();
  const Time time = now();
  EXPECT_GE(time, std::chrono::floor<std::chrono::microseconds>(before));
  EXPECT_LE(time, std::chrono::system_clock::now());
}

TEST(TimeTest, FormatsAgesLikeKubectl) {
  const struct {
    std::chrono::seconds age;
    const char* text;
  } cases[] = {
      {-2s, "<invalid>"},  {-1s, "0s"},
      {0s, "0s"},          {1s, "1s"},
      {119s, "119s"},      {120s, "2m"},
      {121s, "2m1s"},      {599s, "9m59s"},
      {600s, "10m"},       {659s, "10m"},
      {179min, "179m"},    {180min, "3h"},
      {181min, "3h1m"},    {479min, "7h59m"},
      {8h, "8h"},          {8h + 59min, "8h"},
      {47h, "47h"},        {48h, "2d"},
      {49h, "2d1h"},       {191h, "7d23h"},
      {192h, "8d"},        {215h, "8d"},
      {24h * 729, "729d"}, {24h * 730, "2y"},
      {24h * 731, "2y1d"}, {24h * 2919, "7y364d"},
      {24h * 2920, "8y"},  {24h * 4000, "10y"},
  };
  for (const auto& [age, text] : cases) EXPECT_EQ(format_age(age), text) << age.count();
}

}  // namespace
}  // namespace lookout::api
