// The times of a cron schedule.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace cronjob {

using Time = std::chrono::sys_seconds;

/// Text that is no schedule; the message names the field that is wrong.
class ScheduleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The format of robfig/cron's ParseStandard: five fields (minute, hour, day of month, month, day
/// of week) with lists, ranges, steps and English names, or @yearly, @monthly, @weekly, @daily,
/// @hourly, @every 1h30m. All in UTC.
class Schedule {
 public:
  /// Throws ScheduleError.
  static Schedule parse(std::string_view text);

  /// The first time after `time`; nothing if there is none within five years.
  std::optional<Time> next(Time time) const;

 private:
  bool day_matches(std::chrono::sys_days day) const;

  // Bit n: the field may be n.
  std::uint64_t minutes_ = 0;
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;
  // With a star in one of both fields of days, both must match; otherwise one is enough.
  bool both_days_ = false;
  std::optional<std::chrono::seconds> every_;
};

}  // namespace cronjob
