#pragma once

#include <lookout/base/cron_schedule.h>
#include <lookout/controller/manager.h>

#include <chrono>
#include <functional>
#include <optional>

namespace cronjob {

using lookout::CronSchedule;
using lookout::CronScheduleError;
using Time = CronSchedule::Time;

/// The default clock, which tests replace.
using Now = std::function<Time()>;
inline Time machine_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

/// The last missed run of a CronJob, if any, and its next run.
struct Runs {
  std::optional<Time> missed;
  Time next;
};
/// `earliest`: the last run, or the creation. Ignores missed runs before `deadline`. Throws
/// CronScheduleError if there are more than 100 missed runs, or no next run.
Runs runs_of(const CronSchedule& schedule, Time earliest,
             std::optional<std::chrono::seconds> deadline, Time now);

/// Adds the controller of CronJobs, which starts their Jobs.
void add_cronjob_controller(lookout::controller::Manager& manager, Now now = machine_time);

}  // namespace cronjob
