// CronSchedule: the times of a cron schedule.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lookout/base/error.h"
#include "lookout/base/time_zone.h"

namespace lookout {

/// The text is not a schedule. The messages are robfig/cron's, which Kubernetes shows.
class CronScheduleError : public Error {
 public:
  using Error::Error;
};

/// The schedule of a CronJob, in the format of robfig/cron's ParseStandard: five fields (minute, hour,
/// day of month, month, day of week) with lists, ranges, steps and English names, or @yearly,
/// @monthly, @weekly, @daily, @hourly, @every 1h30m. If one of the two day fields has a star, both
/// must match; otherwise one match is enough.
///
/// Fields are compared with the local time of a zone. A time that is skipped when clocks are set
/// forward does not match; a time that occurs twice when they are set back matches twice.
class CronSchedule {
 public:
  using Time = std::chrono::sys_seconds;

  /// "TZ=Asia/Tokyo " or "CRON_TZ=Asia/Tokyo " in front of the text has precedence over `zone`.
  /// Throws CronScheduleError.
  static CronSchedule parse(std::string_view text, TimeZone zone = {});

  /// The first time after `time`; nothing if there is none within five years.
  std::optional<Time> next(Time time) const;
  /// The last time after `after` and not after `until`. Takes fewer steps than repeated next().
  std::optional<Time> last(Time after, Time until) const;

 private:
  bool day_matches(std::chrono::sys_days day) const;

  TimeZone zone_;
  // Bit n: the field may be n.
  std::uint64_t minutes_ = 0;
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;
  bool both_days_ = false;
  std::optional<std::chrono::seconds> every_;
};

}  // namespace lookout
